package controllers

import (
	"context"

	"k8s.io/apimachinery/pkg/types"

	"github.com/weir-dev/weir/api/v1alpha1"
	"github.com/weir-dev/weir/internal/coordinator"
)

// Fleet is what a reconciler needs of the coordinator. Its methods do not block.
type Fleet interface {
	// Refresh makes every connected sidecar of the namespace receive what it has to
	// enforce now, if that is not what it was sent last.
	Refresh(namespace string)

	// Observe returns what the sidecars said about one policy.
	Observe(namespace, name string) coordinator.Observation

	// Changed names policies of which something changed that a condition depends
	// on. Names may be repeated; the channel is never closed.
	Changed() <-chan types.NamespacedName
}

var _ Fleet = (*coordinator.Coordinator)(nil)

// StoreProbe asks a Redis server how firmly it keeps what it was told. It may
// block for as long as one attempt takes; an error means that the server could
// not be asked.
type StoreProbe interface {
	Probe(ctx context.Context, address string) (v1alpha1.Guarantee, error)
}
