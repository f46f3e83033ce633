#!/usr/bin/env bash
# Runs TLC on every configuration in spec/ and compares what it finds with what the
# first line of the configuration expects: tlc.sh JAR
set -euo pipefail

jar=${1:-}
if [[ -z $jar ]]; then
    cat >&2 <<'HELP'
TLC is not part of this repository. Get tla2tools.jar from a release of the TLA+ tools (Java 11 or newer runs it), then
    make tlc TLA2TOOLS=/path/to/tla2tools.jar
Without it, `go test ./internal/proof/explore` reaches the same states with the production code.
HELP
    exit 2
fi
if [[ ! -r $jar ]]; then
    echo "TLA2TOOLS is $jar, which cannot be read: give the path of tla2tools.jar" >&2
    exit 2
fi

jar=$(realpath "$jar")
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
cd "$(dirname "$0")/../spec"

failed=0
for config in *.cfg; do
    expected=$(sed -n '1s/^\\\* expect //p' "$config")
    java -XX:+UseSerialGC -cp "$jar" tlc2.TLC -workers 1 -noGenerateSpecTE -metadir "$scratch" \
        -config "$config" "${config%%-*}.tla" >"$scratch/log" 2>&1 || true
    found=$(sed -nE -e 's/^Error: Invariant (.*) is violated\.$/\1 violated/p' "$scratch/log")
    if [[ -z $found ]] && grep -q '^Model checking completed. No error has been found.' "$scratch/log"; then
        found=$(sed -nE 's/^[0-9]+ states generated, ([0-9]+) distinct states found, 0 states left on queue\.$/\1 states/p' "$scratch/log")
    fi
    if [[ -n $expected && $found == "$expected" ]]; then
        echo "ok    $config: $found"
    else
        echo "FAIL  $config: ${found:-no result}, want ${expected:-a first line that says what to expect}"
        [[ -n $found ]] || tail -n 20 "$scratch/log"
        failed=1
    fi
done
exit "$failed"
