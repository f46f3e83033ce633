#!/usr/bin/env bash
# Writes all that config/default installs into one file, with the images of a version:
# install-manifest.sh VERSION FILE
set -euo pipefail

version=$1
file=$2
cd "$(dirname "$0")/.."
mkdir -p dist "$(dirname "$file")"

# kustomize takes paths relative to the kustomization alone.
overlay=$(mktemp -d "$PWD/dist/overlay.XXXXXX")
trap 'rm -rf "$overlay"' EXIT
cat >"$overlay/kustomization.yaml" <<EOF
resources: [../../config/default]
images:
- {name: weir-controller, newTag: "$version"}
- {name: weir-sidecar, newTag: "$version"}
EOF
"$KUBECTL" kustomize "$overlay" >"$file"
