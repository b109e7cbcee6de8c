#!/usr/bin/env bash
# Installs what the checks need, then runs all of them. For a Debian machine with Rust by rustup; as root where
# something has to be installed. One build profile, release, serves the tests and the lints.
set -euo pipefail
cd "$(dirname "$0")/.."

started=$(date +%s)
step() { printf '\n== %s (%ss)\n' "$1" "$(($(date +%s) - started))"; }

step 'tools'
bash scripts/install-tools.sh
CLIENTS_PYTHON="$(bash scripts/install-tools.sh --python)"
export CLIENTS_PYTHON

step 'format'
cargo fmt --all --check

step 'lints, warnings denied'
cargo clippy --release --workspace --all-targets --quiet -- -D warnings

step 'directions between crates, length of files'
cargo xtask layers

step 'documentation, warnings denied'
RUSTDOCFLAGS='-D warnings' cargo doc --release --workspace --no-deps --quiet

step 'the binary'
cargo build --release --bin floe --quiet


step 'tests'
cargo test --release --workspace

step 'done'
