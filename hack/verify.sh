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
# hack/protocol holds the protocols as minor versions released them. A release adds its
# own, and the last before a release is written again:
#   buf build --exclude-source-info -o hack/protocol/vMAJOR.MINOR.binpb
for released in hack/protocol/v*.binpb; do
    echo "comparing the protocols with $released"
    if ! buf breaking --against "$released"; then
        echo "programs of that version would not be understood any more: add fields beside those that are there" >&2
        exit 1
    fi
done
for module in $(git ls-files '*go.mod' | xargs -n1 dirname); do
    echo "checking module $module"
    if ! changes=$(go -C "$module" mod tidy -diff); then
        head -20 <<<"$changes" >&2
        echo "module $module is not tidy: run 'go -C $module mod tidy'" >&2
        exit 1
    fi
done
