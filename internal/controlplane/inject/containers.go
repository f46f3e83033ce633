package inject

import (
	"iter"
	"slices"

	corev1 "k8s.io/api/core/v1"
)

func isNativeSidecar(c *corev1.Container) bool {
	return c.RestartPolicy != nil && *c.RestartPolicy == corev1.ContainerRestartPolicyAlways
}

// containers yields every container of the pod: the app's, then the init ones.
func containers(spec *corev1.PodSpec) iter.Seq[*corev1.Container] {
	return func(yield func(*corev1.Container) bool) {
		for _, list := range [][]corev1.Container{spec.Containers, spec.InitContainers} {
			for i := range list {
				if !yield(&list[i]) {
					return
				}
			}
		}
	}
}

// serving yields the containers that run beside the sidecar and so can serve, in
// the order in which Kubernetes looks up the named port of a Service.
func serving(spec *corev1.PodSpec) iter.Seq[*corev1.Container] {
	return func(yield func(*corev1.Container) bool) {
		for i := range spec.Containers {
			if !yield(&spec.Containers[i]) {
				return
			}
		}
		for i := range spec.InitContainers {
			if c := &spec.InitContainers[i]; isNativeSidecar(c) && !yield(c) {
				return
			}
		}
	}
}

// A mesh is the sidecar of another project.
type mesh struct {
	ports        []int32 // that it opens without declaring them
	takesInbound bool    // what comes to the pod goes to it first
}

// meshes holds them by the name of their container. Their ports serve the mesh and
// are never taken for the app's.
var meshes = map[string]mesh{
	"istio-proxy":      {ports: []int32{15000, 15001, 15004, 15006, 15008, 15009, 15020, 15021, 15053, 15090}, takesInbound: true},
	"linkerd-proxy":    {ports: []int32{4140, 4143, 4190, 4191}, takesInbound: true},
	"kuma-sidecar":     {ports: []int32{9901, 15001, 15006}, takesInbound: true},
	"consul-dataplane": {ports: []int32{15001, 20000}, takesInbound: true},
	"daprd":            {ports: []int32{3500, 9090, 50001, 50002}},
}

func isMesh(c *corev1.Container) bool {
	_, ok := meshes[c.Name]
	return ok
}

func isTCP(p *corev1.ContainerPort) bool {
	return p.Protocol == corev1.ProtocolTCP || p.Protocol == ""
}

// ownerOfPort returns the name of a container that serves on the TCP port, or "".
func ownerOfPort(spec *corev1.PodSpec, number int32) string {
	for c := range serving(spec) {
		for i := range c.Ports {
			if isTCP(&c.Ports[i]) && c.Ports[i].ContainerPort == number {
				return c.Name
			}
		}
		if slices.Contains(meshes[c.Name].ports, number) {
			return c.Name
		}
	}
	return ""
}
