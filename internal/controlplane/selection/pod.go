package selection

import (
	"encoding/json"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/weir-dev/weir/api/v1alpha1"
)

// Finished reports whether a pod has ended or is to end.
func Finished(pod *corev1.Pod) bool {
	return pod.DeletionTimestamp != nil || pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
}

// HasSidecar reports whether a pod carries a sidecar.
func HasSidecar(pod *corev1.Pod) bool { return pod.Labels[v1alpha1.EnforcerLabel] == "true" }

// injected is the part of v1alpha1.InjectedAnnotation that is read here.
type injected struct {
	Capture string `json:"capture"`
	Ports   []struct {
		App int32 `json:"app"` // of the app
	} `json:"ports"`
}

// PastSidecar returns a host port of an injected pod that leads past its sidecar, to a port
// of the app that this stands in front of by its name; 0 when there is none. Connections
// that are redirected have no other way.
func PastSidecar(pod *corev1.Pod) int32 {
	annotation := pod.Annotations[v1alpha1.InjectedAnnotation]
	if annotation == "" {
		return 0
	}
	var in injected
	if json.Unmarshal([]byte(annotation), &in) != nil || in.Capture != "port" {
		return 0
	}
	for _, c := range slices.Concat(pod.Spec.Containers, pod.Spec.InitContainers) {
		for _, p := range c.Ports {
			tcp := p.Protocol == corev1.ProtocolTCP || p.Protocol == ""
			for _, front := range in.Ports {
				if p.HostPort != 0 && p.ContainerPort == front.App && tcp {
					return p.HostPort
				}
			}
		}
	}
	return 0
}
