package pool

import "strings"

// A Key names a pool. A pool that is deleted and created again finds what is still
// in use.
type Key struct {
	Cluster, Namespace, Name string
}

// String returns the key as coordinators use it. Kubernetes names hold no slash, so
// different pools have different strings.
func (k Key) String() string { return strings.Join([]string{k.Cluster, k.Namespace, k.Name}, "/") }
