package inject

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// takeNames frees the names of the ports for the sidecar. Kubernetes looks a name
// up in the app's containers first, so every container that has one must let go.
func takeNames(spec *corev1.PodSpec, ports []Port) {
	for c := range serving(spec) {
		freed, taken := map[string]int32{}, map[string]bool{}
		for i := range c.Ports {
			taken[c.Ports[i].Name] = true
		}
		for i := range c.Ports {
			p := &c.Ports[i]
			if !isTCP(p) || !slices.ContainsFunc(ports, func(q Port) bool { return q.Name == p.Name }) {
				continue
			}
			freed[p.Name] = p.ContainerPort
			p.Name = replacement(taken, ports, p.Name)
			taken[p.Name] = true
		}
		useNumbers(c, freed)
	}
}

// replacement returns a name that shows people which port this was, or none
// where Kubernetes would refuse it, because of its length or one that is taken in the container.
func replacement(taken map[string]bool, ports []Port, name string) string {
	name += "-app"
	if taken[name] || slices.ContainsFunc(ports, func(p Port) bool { return p.Name == name }) || len(name) > maxPortName {
		return ""
	}
	return name
}

// useNumbers makes probes and lifecycle hooks that name a freed port say its number, so
// that the kubelet keeps asking the app itself. Its probes neither spend the limit nor
// see a refusal.
func useNumbers(c *corev1.Container, freed map[string]int32) {
	rewrite := func(port *intstr.IntOrString) {
		if number, ok := freed[port.StrVal]; ok && port.Type == intstr.String {
			*port = intstr.FromInt32(number)
		}
	}
	for _, probe := range []*corev1.Probe{c.LivenessProbe, c.ReadinessProbe, c.StartupProbe} {
		if probe != nil {
			rewriteAction(probe.HTTPGet, probe.TCPSocket, rewrite)
		}
	}
	if c.Lifecycle == nil {
		return
	}
	for _, hook := range []*corev1.LifecycleHandler{c.Lifecycle.PostStart, c.Lifecycle.PreStop} {
		if hook != nil {
			rewriteAction(hook.HTTPGet, hook.TCPSocket, rewrite)
		}
	}
}

func rewriteAction(get *corev1.HTTPGetAction, socket *corev1.TCPSocketAction, rewrite func(*intstr.IntOrString)) {
	if get != nil {
		rewrite(&get.Port)
	}
	if socket != nil {
		rewrite(&socket.Port)
	}
}
