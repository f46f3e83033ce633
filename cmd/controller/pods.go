package main

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/weir-dev/weir/internal/coordinator"
)

// knownPods are those of a cache.
type knownPods struct{ cache client.Reader }

// Knows implements coordinator.Pods.
func (k knownPods) Knows(ctx context.Context, id coordinator.Identity) (bool, error) {
	var pod corev1.Pod
	err := k.cache.Get(ctx, types.NamespacedName{Namespace: id.Namespace, Name: id.Pod}, &pod)
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	return err == nil && string(pod.UID) == id.PodUID, err
}
