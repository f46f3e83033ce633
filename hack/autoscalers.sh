#!/usr/bin/env bash
# Builds programs that scale Deployments by the metrics of a Prometheus, each from its Go module
# and with the dependencies that this module pins: autoscalers.sh DIRECTORY
set -euo pipefail

target=$(mkdir -p "$1" && cd "$1" && pwd)

# unpacked prints the directory of a module, after it has compared its sum.
unpacked() {
    local answer
    answer=$(go -C / mod download -json "$1")
    grep -qF "\"Sum\": \"$2\"" <<<"$answer" || {
        echo "autoscalers: $1 has another sum than $2: see what changed, and correct it in hack/autoscalers.sh" >&2
        exit 1
    }
    sed -n 's/^\t"Dir": "\(.*\)",$/\1/p' <<<"$answer"
}

adapter=$(unpacked sigs.k8s.io/prometheus-adapter@v0.12.0 h1:e29A6BIwA/NKxPZeuamBMHJsvz0sSUXTb92Obg7RMV4=)
echo "building prometheus-adapter (about 4 minutes the first time)" >&2
CGO_ENABLED=0 go -C "$adapter" build -trimpath -o "$target/prometheus-adapter" ./cmd/adapter

keda=$(unpacked github.com/kedacore/keda/v2@v2.21.0 h1:R6z2HZvstK4RLUMxroNACzBj74xGxt3kG59b5Xc+Xps=)
echo "building KEDA (about 9 minutes the first time)" >&2
CGO_ENABLED=0 go -C "$keda" build -trimpath -o "$target/keda-operator" ./cmd/operator
CGO_ENABLED=0 go -C "$keda" build -trimpath -o "$target/keda-adapter" ./cmd/adapter
cat "$keda"/config/crd/bases/*.yaml >"$target/keda-crds.yaml"
