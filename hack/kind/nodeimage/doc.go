// Package nodeimage provides the container image that a cluster's nodes are
// made of. In this order: one that the engine holds, one that was built before
// and is kept in the user's cache directory, kind's own where the engine can
// pull it, and one that is built here.
//
// Building needs root, a Debian mirror and the Go module proxy, but no container
// registry: Debian packages for the operating system, hack/kind/node for the
// container runtime, the network plugins and the DNS, hack/kube for Kubernetes,
// and the static files that sigs.k8s.io/kind carries for its own image. The
// images of the control plane are cut from the same programs and put into the
// node's image store, so that no node ever pulls anything.
package nodeimage
