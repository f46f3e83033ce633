package controllers

import (
	"encoding/json"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/weir-dev/weir/api/v1alpha1"
)

// injected is what the controller reads of InjectedAnnotation.
type injected struct {
	Capture string `json:"capture"`
	Ports   []struct {
		App int32 `json:"app"` // of the app
	} `json:"ports"`
}

// pastSidecar returns a host port of an injected pod that leads past its sidecar, to a port
// of the app that this stands in front of by its name; 0 when there is none. Connections
// that are redirected have no other way.
func pastSidecar(pod *corev1.Pod) int32 {
	var is injected
	if json.Unmarshal([]byte(pod.Annotations[v1alpha1.InjectedAnnotation]), &is) != nil || is.Capture != "port" {
		return 0
	}
	for _, c := range slices.Concat(pod.Spec.Containers, pod.Spec.InitContainers) {
		for _, p := range c.Ports {
			tcp := p.Protocol == corev1.ProtocolTCP || p.Protocol == ""
			for _, front := range is.Ports {
				if p.HostPort != 0 && p.ContainerPort == front.App && tcp {
					return p.HostPort
				}
			}
		}
	}
	return 0
}
