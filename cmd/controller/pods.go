package main

import (
	"context"
	"net"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/weir-dev/weir/api/v1alpha1"
	"github.com/weir-dev/weir/internal/controlplane/coordinator/podauth"
	"github.com/weir-dev/weir/internal/controlplane/objectcache"
)

// knownPods are those of a cache.
type knownPods struct{ cache client.Reader }

// Sidecars returns the pods of a namespace, or of all for "", in which a sidecar may run:
// those that have one and have not ended. The cache shares its pods, which are only read.
func (k knownPods) Sidecars(ctx context.Context, namespace string) ([]podauth.Identity, error) {
	var pods corev1.PodList
	err := k.cache.List(ctx, &pods, client.InNamespace(namespace), client.MatchingLabels{v1alpha1.EnforcerLabel: "true"}, client.UnsafeDisableDeepCopy)
	var out []podauth.Identity
	for i := range pods.Items {
		pod := &pods.Items[i]
		if pod.Status.Phase != corev1.PodSucceeded && pod.Status.Phase != corev1.PodFailed {
			out = append(out, podauth.Identity{Namespace: pod.Namespace, Pod: pod.Name, PodUID: string(pod.UID)})
		}
	}
	return out, err
}

// Replicas returns the addresses at which sidecars reach other controllers than the one of
// the options: those that are named, and those of its namespace's pods that run.
func (k knownPods) Replicas(ctx context.Context, o *options) ([]string, error) {
	var out []string
	for _, address := range o.fleetReplicas {
		if address != o.fleetAddress && address != o.fleetBindAddress {
			out = append(out, address)
		}
	}
	_, port, err := net.SplitHostPort(o.fleetBindAddress)
	if err != nil || o.podName == "" {
		return out, err
	}
	var pods corev1.PodList
	err = k.cache.List(ctx, &pods, client.InNamespace(o.namespace), objectcache.ControllerLabels)
	for i := range pods.Items {
		pod := &pods.Items[i]
		if pod.Name != o.podName && pod.DeletionTimestamp == nil && pod.Status.Phase == corev1.PodRunning && pod.Status.PodIP != "" {
			out = append(out, net.JoinHostPort(pod.Status.PodIP, port))
		}
	}
	return out, err
}

// Knows implements podauth.Pods.
func (k knownPods) Knows(ctx context.Context, id podauth.Identity) (bool, error) {
	var pod corev1.Pod
	err := k.cache.Get(ctx, types.NamespacedName{Namespace: id.Namespace, Name: id.Pod}, &pod)
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	return err == nil && string(pod.UID) == id.PodUID, err
}
