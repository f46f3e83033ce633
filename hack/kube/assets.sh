#!/usr/bin/env bash
# Points a link at a directory with the programs that tests and the demo run a
# Kubernetes control plane from: assets.sh LINK
#
# KUBEBUILDER_ASSETS is taken when it holds all of them; the archives made for
# envtest lack the scheduler and the controller manager. Else they are built
# once into the user's cache directory, keyed by what they are built from.
set -euo pipefail

link=$1
here=$(cd "$(dirname "$0")" && pwd)
programs=(etcd kube-apiserver kube-controller-manager kube-scheduler kubectl)

say() { echo "assets: $*" >&2; }

# missing prints the programs that a directory lacks.
missing() {
    for program in "${programs[@]}"; do
        [ -x "$1/$program" ] || printf '%s ' "$program"
    done
}

# The link itself may be what is given: it must not come to point at itself.
point() {
    mkdir -p "$(dirname "$link")"
    ln -sfn "$(cd "$1" && pwd -P)" "$link"
}

given=${KUBEBUILDER_ASSETS:-}
if [ -n "$given" ]; then
    lacks=$(missing "$given")
    if [ -z "$lacks" ]; then
        say "using KUBEBUILDER_ASSETS=$given"
        point "$given"
        exit
    fi
    say "KUBEBUILDER_ASSETS=$given lacks ${lacks% }; using those of hack/kube instead"
fi

version=$(cd "$here" && go list -m -f '{{.Version}}' k8s.io/kubernetes)
key=$(cat "$here"/{go.mod,go.sum,main.go,build.sh} | sha256sum | cut -c1-12)
built=${XDG_CACHE_HOME:-$HOME/.cache}/weir/kube-$version-$(go env GOARCH)-$key
if [ -n "$(missing "$built")" ]; then
    say "none cached, building into $built"
    mkdir -p "$(dirname "$built")"
    "$here/build.sh" "$built"
else
    say "using Kubernetes $version from $built"
fi
point "$built"
