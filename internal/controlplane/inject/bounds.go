package inject

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"github.com/weir-dev/weir/api/v1alpha1"
)

// Bounds on a pod that gets a sidecar. Admission sees pods before they are validated, so
// nothing else bounds them. No pod that a node can run comes near.
const (
	maxAnnotations = 256 << 10 // bytes of keys and values, as in Kubernetes
	maxContainers  = 500       // init containers among them
	maxPorts       = 10_000    // of all containers; media servers declare ranges one by one
	maxVolumes     = 500
	maxQuestions   = 32 << 10 // bytes of what probes and hooks ask for, which becomes arguments of the sidecar

	maxEntries  = 64 // of an annotation that lists ports
	maxWarnings = 20 // each becomes an Event
)

// excess returns a sentence on a bound that the pod is beyond and on the cure, or "".
func excess(pod *corev1.Pod) string {
	annotations, ports, asked := 0, 0, 0
	for key, value := range pod.Annotations {
		annotations += len(key) + len(value)
	}
	for c := range containers(&pod.Spec) {
		ports += len(c.Ports)
		asked += lengthOfQuestions(c)
	}
	for _, bound := range []struct {
		what      string
		have, max int
		cure      string
	}{
		{"bytes of annotations", annotations, maxAnnotations, "shorten them"},
		{"containers", len(pod.Spec.Containers) + len(pod.Spec.InitContainers), maxContainers, "divide it into several pods"},
		{"ports", ports, maxPorts, "declare those alone that Services or probes name"},
		{"volumes", len(pod.Spec.Volumes), maxVolumes, "project several sources into one"},
		{"bytes of paths, headers and services in probes and hooks", asked, maxQuestions, "shorten them"},
	} {
		if bound.have > bound.max {
			return fmt.Sprintf("the pod has %d %s, and a pod with a sidecar up to %d: %s, or opt it out by the annotation %s: %s",
				bound.have, bound.what, bound.max, bound.cure, v1alpha1.InjectKey, v1alpha1.Disabled)
		}
	}
	return ""
}

// lengthOfQuestions returns how long that is which the sidecar may have to ask in the kubelet's
// place.
func lengthOfQuestions(c *corev1.Container) (sum int) {
	add := func(h corev1.ProbeHandler) {
		sum += len(c.Name)
		if h.GRPC != nil && h.GRPC.Service != nil {
			sum += len(*h.GRPC.Service)
		}
		if h.HTTPGet == nil {
			return
		}
		sum += len(h.HTTPGet.Path)
		for _, header := range h.HTTPGet.HTTPHeaders {
			sum += len(header.Name) + len(header.Value)
		}
	}
	for _, p := range []*corev1.Probe{c.StartupProbe, c.ReadinessProbe, c.LivenessProbe} {
		if p != nil {
			add(p.ProbeHandler)
		}
	}
	if c.Lifecycle != nil {
		for _, h := range []*corev1.LifecycleHandler{c.Lifecycle.PostStart, c.Lifecycle.PreStop} {
			if h != nil {
				add(corev1.ProbeHandler{HTTPGet: h.HTTPGet})
			}
		}
	}
	return sum
}
