package controllers

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/weir-dev/weir/api/v1alpha1"
)

// CacheOptions returns options that keep of every pod only what this package and
// internal/resolve read, and the addresses of controllers, since every pod of the cluster is cached.
func CacheOptions() cache.Options {
	return cache.Options{
		ByObject:         map[client.Object]cache.ByObject{&corev1.Pod{}: {Transform: trimPod}},
		DefaultTransform: cache.TransformStripManagedFields(),
	}
}

// ControllerLabels are those of the controllers' pods.
var ControllerLabels = client.MatchingLabels{"app.kubernetes.io/name": "weir", "app.kubernetes.io/component": "controller"}

func trimPod(obj any) (any, error) {
	pod, ok := obj.(*corev1.Pod)
	if !ok {
		return obj, nil
	}
	trimmed := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace:         pod.Namespace,
			Name:              pod.Name,
			UID:               pod.UID,
			ResourceVersion:   pod.ResourceVersion,
			Labels:            pod.Labels,
			DeletionTimestamp: pod.DeletionTimestamp,
		},
		Status: corev1.PodStatus{Phase: pod.Status.Phase},
	}
	if labels.SelectorFromSet(labels.Set(ControllerLabels)).Matches(labels.Set(pod.Labels)) {
		trimmed.Status.PodIP = pod.Status.PodIP
	}
	if pastSidecar(pod) != 0 {
		trimmed.Annotations = map[string]string{v1alpha1.InjectedAnnotation: pod.Annotations[v1alpha1.InjectedAnnotation]}
		trimmed.Spec.Containers, trimmed.Spec.InitContainers = portsOf(pod.Spec.Containers), portsOf(pod.Spec.InitContainers)
	}
	return trimmed, nil
}

// portsOf returns what of containers says which ports they serve.
func portsOf(containers []corev1.Container) []corev1.Container {
	var out []corev1.Container
	for _, c := range containers {
		out = append(out, corev1.Container{Name: c.Name, Ports: c.Ports})
	}
	return out
}
