#!/usr/bin/env bash
# Brings the outside clients that the tests speak through: kcat from Debian, confluent-kafka and kafka-python from
# PyPI in a virtual environment outside the tree. Does nothing where all is there already.
#
#   install-tools.sh             what the tests need
#   install-tools.sh --python    prints the interpreter of the virtual environment
#   install-tools.sh --bench     also what the bench builds its load tool with
set -euo pipefail

home="${CLIENTS_HOME:-${XDG_CACHE_HOME:-${HOME:-/tmp}/.cache}/floe-tools}"
python="$home/python/bin/python"

if [ "${1:-}" = --python ]; then
    printf '%s\n' "$python"
    exit 0
fi

declare -A package=([kcat]=kcat [curl]=curl [cc]=gcc [make]=make [python3]=python3)
if [ "${1:-}" = --bench ]; then
    package+=([cmake]=cmake [g++]=g++ [mvn]=maven [java]=default-jre-headless [go]=golang)
fi
wanted=()
for command in "${!package[@]}"; do
    command -v "$command" >/dev/null || wanted+=("${package[$command]}")
done
# Debian splits `python3 -m venv` from Python itself.
python3 -c 'import ensurepip' 2>/dev/null || wanted+=(python3-venv)
if [ "${1:-}" = --bench ] && ! echo '#include <curl/curl.h>' | cc -E - >/dev/null 2>&1; then
    wanted+=(libcurl4-openssl-dev)
fi
if [ "${#wanted[@]}" -gt 0 ]; then
    export DEBIAN_FRONTEND=noninteractive
    apt-get update -qq
    apt-get install -y -qq --no-install-recommends "${wanted[@]}" >/dev/null
fi

if ! "$python" -c 'import confluent_kafka, kafka' 2>/dev/null; then
    mkdir -p "$home"
    python3 -m venv --clear "$home/python"
    "$python" -m pip install --quiet --disable-pip-version-check --requirement "$(dirname "$0")/../tests/clients/python/requirements.txt"
fi
