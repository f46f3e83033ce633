#!/usr/bin/env bash
# Writes all that config/default installs into one file, with the images that are given as in
# install-manifest.sh FILE weir-sidecar=registry.example.com/weir-sidecar:v0.1.0[@sha256:…] ...
set -euo pipefail

file=$1
shift
cd "$(dirname "$0")/.."
mkdir -p dist "$(dirname "$file")"

# kustomize takes paths relative to the kustomization alone.
overlay=$(mktemp -d "$PWD/dist/overlay.XXXXXX")
trap 'rm -rf "$overlay"' EXIT
{
    echo "resources: [../../config/default]"
    echo "images:"
    for image in "$@"; do
        name=${image%%=*} reference=${image#*=}
        tagged=${reference%%@*}
        echo "- name: $name"
        echo "  newName: ${tagged%:*}"
        if [ "$tagged" = "$reference" ]; then
            echo "  newTag: \"${tagged##*:}\""
        else
            echo "  digest: ${reference#*@}"
        fi
    done
} >"$overlay/kustomization.yaml"
"${KUBECTL:-kubectl}" kustomize "$overlay" >"$file"
