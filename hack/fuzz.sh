#!/usr/bin/env bash
# Fuzzes every target of the module, one after the other: fuzz.sh DURATION
set -euo pipefail

budget=$1
targets=$(grep -rnE --include='*_test.go' '^func Fuzz[A-Za-z0-9_]*\(' . | sed -E 's|^(.*)/[^/]*:[0-9]+:func (Fuzz[A-Za-z0-9_]*).*|\1 \2|' | sort)
total=$(wc -l <<<"$targets")
done=0
while read -r package target; do
    done=$((done + 1))
    echo "[$done/$total] $target in $package for $budget"
    # Else a budget as short as ten seconds is spent on making one new input shorter.
    go test -run '^$' -fuzz "^$target\$" -fuzztime "$budget" -fuzzminimizetime 10x "$package"
done <<<"$targets"
