#!/usr/bin/env bash
# Generates, runs read-only checks, and fails when the tree is not what it would
# be after that. Changes that were there before are not counted.
set -euo pipefail

state() { git status --porcelain; git diff HEAD; }

before=$(state)
make generate
after=$(state)
if [ "$before" != "$after" ]; then
    diff <(echo "$before") <(echo "$after") | head -50 >&2 || true
    echo "generated files are stale: run 'make generate' and commit the result" >&2
    exit 1
fi

buf lint
for module in $(git ls-files '*go.mod' | xargs -n1 dirname); do
    echo "checking module $module"
    if ! changes=$(go -C "$module" mod tidy -diff); then
        head -20 <<<"$changes" >&2
        echo "module $module is not tidy: run 'go -C $module mod tidy'" >&2
        exit 1
    fi
done
