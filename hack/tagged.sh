#!/usr/bin/env bash
# Fails unless the checkout is what a release of VERSION may be made of: tagged.sh VERSION
# A version with a hyphen, such as v0.2.0-rc.1, is a candidate and needs no tag.
set -euo pipefail

version=${1:-}
if [[ ! $version =~ ^v[0-9]+\.[0-9]+\.[0-9]+(-|$) ]]; then
    echo "release: VERSION is ${version:-empty}: set it to one like v0.1.0 or v0.1.0-rc.1" >&2
    exit 1
fi
# Another tag of the same commit, such as the last candidate's, is not in the way.
if [[ $version != *-* ]] && [ "$(git describe --tags --exact-match --match "$version" --dirty 2>/dev/null)" != "$version" ]; then
    echo "release: the checkout is $(git describe --tags --always --dirty), not $version: check out that tag without changes, or name a version like $version-rc.1 to try it" >&2
    exit 1
fi
