#!/usr/bin/env bash
# Builds programs that run beside Weir in tests, each from its Go module and with the
# dependencies that this module pins: addons.sh DIRECTORY PROGRAM..., the programs being
# prometheus-adapter, keda, kube-router and prometheus-kubernetes.
set -euo pipefail

target=$(mkdir -p "$1" && cd "$1" && pwd)
shift

# unpacked prints the directory of a module, after it has compared its sum.
unpacked() {
    local answer
    answer=$(go -C / mod download -json "$1")
    grep -qF "\"Sum\": \"$2\"" <<<"$answer" || {
        echo "addons: $1 has another sum than $2: see what changed, and correct it in hack/addons.sh" >&2
        exit 1
    }
    sed -n 's/^\t"Dir": "\(.*\)",$/\1/p' <<<"$answer"
}

for program in "$@"; do
    case $program in
        prometheus-adapter)
            source=$(unpacked sigs.k8s.io/prometheus-adapter@v0.12.0 h1:e29A6BIwA/NKxPZeuamBMHJsvz0sSUXTb92Obg7RMV4=)
            echo "building prometheus-adapter (about 4 minutes the first time)" >&2
            CGO_ENABLED=0 go -C "$source" build -trimpath -o "$target/prometheus-adapter" ./cmd/adapter
            ;;
        keda)
            source=$(unpacked github.com/kedacore/keda/v2@v2.21.0 h1:R6z2HZvstK4RLUMxroNACzBj74xGxt3kG59b5Xc+Xps=)
            echo "building KEDA (about 9 minutes the first time)" >&2
            CGO_ENABLED=0 go -C "$source" build -trimpath -o "$target/keda-operator" ./cmd/operator
            CGO_ENABLED=0 go -C "$source" build -trimpath -o "$target/keda-adapter" ./cmd/adapter
            cat "$source"/config/crd/bases/*.yaml >"$target/keda-crds.yaml"
            ;;
        kube-router)
            source=$(unpacked github.com/cloudnativelabs/kube-router/v2@v2.1.0 h1:xWsptKtmZ44L+NjwFKoFAFlVdxCz8fka9A/eYJe95Ok=)
            echo "building kube-router (about 3 minutes the first time)" >&2
            CGO_ENABLED=0 go -C "$source" build -trimpath -o "$target/kube-router" ./cmd/kube-router
            ;;
        prometheus-kubernetes) # Debian's discovers nothing in Kubernetes
            source=$(unpacked github.com/prometheus/prometheus@v0.316.0 h1:f1GRFerhTMKQma+awCoC9T820ecWeGSdF+xAlMHzZzM=)
            echo "building Prometheus (about 4 minutes the first time)" >&2
            GOWORK=off CGO_ENABLED=0 go -C "$source" build -trimpath -tags remove_all_sd,enable_kubernetes_sd -o "$target/prometheus-kubernetes" ./cmd/prometheus
            ;;
        *)
            echo "addons: there is nothing here for $program" >&2
            exit 1
            ;;
    esac
done
