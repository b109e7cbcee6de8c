#!/usr/bin/env bash
# Builds Floe, starts it with its defaults over a throw-away directory, loads a month of real flights, reads them back
# through a consumer group, checks them, and stops it. Leaves nothing behind but the build.
# For a Debian machine with Rust by rustup; as root where a compiler has to be installed.
set -euo pipefail
cd "$(dirname "$0")/.."

now() { printf '%s' "${EPOCHREALTIME/./}"; } # microseconds
seconds() { awk -v us="$1" 'BEGIN { printf "%.1f", us / 1e6 }'; }
step() { printf '\n== %s\n' "$1"; }
begun=$(now)

step 'What the build needs'
if ! command -v cargo >/dev/null; then
    PATH="${CARGO_HOME:-$HOME/.cargo}/bin:$PATH"
    command -v cargo >/dev/null || { echo 'Rust is missing: install it with rustup, then run this again.' >&2; exit 1; }
fi
if command -v cc >/dev/null && command -v make >/dev/null; then
    echo 'A C compiler and make are here.'
else
    install='apt-get install -y -qq --no-install-recommends gcc libc6-dev make'
    if [ "$(id -u)" != 0 ]; then
        echo "A C compiler and make are missing: run 'sudo $install', then this again." >&2
        exit 1
    fi
    apt-get update -qq && DEBIAN_FRONTEND=noninteractive $install
fi

step 'Build (cargo build --release --bin floe)'
build_begun=$(now)
cargo build --release --bin floe
build_us=$(($(now) - build_begun))
floe="${CARGO_TARGET_DIR:-target}/release/floe"

step 'Start (floe dev)'
scratch=$(mktemp -d)
node=
clean_up() {
    if [ -n "$node" ]; then kill "$node" 2>/dev/null && wait "$node" 2>/dev/null || true; fi
    rm -rf "$scratch"
}
trap clean_up EXIT
start() {
    "$floe" dev --data-dir "$scratch/data" --json "$@" >"$scratch/ready" 2>"$scratch/log" &
    node=$!
    until [ -s "$scratch/ready" ]; do
        if ! kill -0 "$node" 2>/dev/null; then
            local code=0
            wait "$node" || code=$?
            node=
            return "$code"
        fi
        sleep 0.02
    done
}
code=0
start || code=$?
if [ "$code" = 11 ]; then
    echo 'A default port is taken (another Floe?): taking free ones.'
    code=0
    free=()
    for door in kafka http.discovery http.produce http.consume metrics; do free+=(--set "$door.port=0"); done
    start "${free[@]}" || code=$?
fi
if [ "$code" != 0 ]; then cat "$scratch/log" >&2; exit "$code"; fi
ready() { sed -E "s/.*\"$1\":\"?([^\",}]*).*/\1/" "$scratch/ready"; }
host=$(ready host)
export FLOE_SERVER="http://$host:$(ready discoveryPort)"
echo "Ready after $(ready startMs) ms: Kafka on $host:$(ready kafkaPort), HTTP on $FLOE_SERVER."

step 'Load: flights out of New York, January 2013, keyed by destination airport (floe produce)'
gzip -dc demo/flights.ndjson.gz >"$scratch/flights"
"$floe" topic create flights --partitions 6
"$floe" produce flights --key-field dest <"$scratch/flights"

step 'The first event, read back (floe consume)'
"$floe" consume flights --from earliest --max 1
first_us=$(($(now) - begun))

step 'All of them, through a consumer group (floe consume --group)'
events=$(wc -l <"$scratch/flights")
read_begun=$(now)
"$floe" consume flights --group tour --from earliest --max "$events" --key >"$scratch/read"
read_us=$(($(now) - read_begun))
"$floe" group describe tour

step 'What happened'
# Each key's records must come back as they were written: the same bytes, in the same order, once.
awk -F '\t' '
    FNR == NR { match($0, /"dest":"[A-Z]*"/); key = substr($0, RSTART + 8, RLENGTH - 9)
                written[key, ++wrote[key]] = $0; records++; next }
    { if ($2 != written[$1, ++seen[$1]]) wrong++; back++ }
    END { for (key in wrote) { keys++; if (seen[key] != wrote[key]) wrong++ }
          if (wrong || back != records) { printf "%d of %d records are not where they belong\n", wrong, records; exit 1 }
          printf "%d records under %d keys came back once, each key in the order it was written.\n", back, keys }
' "$scratch/flights" "$scratch/read"
awk -v n="$events" -v us="$read_us" 'BEGIN { printf "Read through the group at %d records a second, the command and its start included.\n", n * 1e6 / us }'
echo "From the start of this script to the first event: $(seconds "$first_us") s, of which the build took $(seconds "$build_us") s."
cat <<END

Where to go next
  Start it for yourself:   $floe dev
  Try it:                  curl -d '{"hello":"floe"}' http://localhost:9251/v1/topic/greetings/messages
                           $floe consume greetings
  With a Kafka client:     bootstrap.servers=localhost:9092
  Read on:                 README.md, docs/
END
