package inject

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/weir-dev/weir/internal/sidecar/probe"
)

// A question is a probe or a hook of a container that would be redirected to the
// sidecar.
type question struct {
	probe.Target
	replace func(*corev1.HTTPGetAction) // makes the kubelet ask this instead
}

// starts reports whether the container counts as started only after the answer.
func (q *question) starts() bool { return q.Kind == probe.Startup || q.Kind == probe.PostStart }

// takeProbes has the sidecar put the questions of all containers. Questions to other
// ports, or to another host than the pod, stay as they are. So do those that the init
// containers before the sidecar, the first place of them, are asked until they have
// started. Nothing is redirected yet when they are first asked, and there is no sidecar
// to ask. See package probe.
func (p *plan) takeProbes(spec *corev1.PodSpec, place int) {
	first := map[string]bool{}
	for i := range spec.InitContainers[:place] {
		first[spec.InitContainers[i].Name] = true
	}
	for c := range serving(spec) {
		for _, q := range questions(c, p.ports) {
			if first[c.Name] && q.starts() {
				continue
			}
			p.probes = append(p.probes, q.Target)
			q.replace(&corev1.HTTPGetAction{
				Path: q.Path(p.cfg.ProbeToken), Port: intstr.FromInt32(p.admin), Scheme: corev1.URISchemeHTTP,
			})
		}
	}
}

// questions lists what the container is asked at one of the ports.
func questions(c *corev1.Container, ports []Port) []question {
	var list []question
	for _, k := range []struct {
		kind  string
		probe *corev1.Probe
	}{{probe.Startup, c.StartupProbe}, {probe.Readiness, c.ReadinessProbe}, {probe.Liveness, c.LivenessProbe}} {
		if k.probe == nil {
			continue
		}
		target := probe.Target{Container: c.Name, Kind: k.kind, TimeoutSeconds: max(1, k.probe.TimeoutSeconds)}
		if describe(&target, &k.probe.ProbeHandler, c, ports) {
			list = append(list, question{target, func(get *corev1.HTTPGetAction) {
				k.probe.ProbeHandler = corev1.ProbeHandler{HTTPGet: get}
			}})
		}
	}
	if c.Lifecycle == nil {
		return list
	}
	for _, k := range []struct {
		kind string
		hook *corev1.LifecycleHandler
	}{{probe.PostStart, c.Lifecycle.PostStart}, {probe.PreStop, c.Lifecycle.PreStop}} {
		if k.hook == nil {
			continue
		}
		target := probe.Target{Container: c.Name, Kind: k.kind}
		if describe(&target, &corev1.ProbeHandler{HTTPGet: k.hook.HTTPGet}, c, ports) {
			list = append(list, question{target, func(get *corev1.HTTPGetAction) { k.hook.HTTPGet = get }})
		}
	}
	return list
}

// describe says what is asked, if it is asked of one of the ports.
func describe(t *probe.Target, h *corev1.ProbeHandler, c *corev1.Container, ports []Port) bool {
	captured := func(host string, port intstr.IntOrString) bool {
		number := numberOf(c, port)
		return host == "" && slices.ContainsFunc(ports, func(p Port) bool { return p.App == number })
	}
	switch {
	case h.HTTPGet != nil && captured(h.HTTPGet.Host, h.HTTPGet.Port):
		t.HTTP = &probe.HTTP{
			TLS: h.HTTPGet.Scheme == corev1.URISchemeHTTPS, Port: numberOf(c, h.HTTPGet.Port), Path: h.HTTPGet.Path,
		}
		for _, header := range h.HTTPGet.HTTPHeaders {
			t.HTTP.Headers = append(t.HTTP.Headers, probe.Header{Name: header.Name, Value: header.Value})
		}
	case h.TCPSocket != nil && captured(h.TCPSocket.Host, h.TCPSocket.Port):
		t.TCP = &probe.TCP{Port: numberOf(c, h.TCPSocket.Port)}
	case h.GRPC != nil && captured("", intstr.FromInt32(h.GRPC.Port)):
		t.GRPC = &probe.GRPC{Port: h.GRPC.Port}
		if h.GRPC.Service != nil {
			t.GRPC.Service = *h.GRPC.Service
		}
	default:
		return false
	}
	return true
}

// numberOf resolves a port as the kubelet does: a name is one of the container's.
func numberOf(c *corev1.Container, port intstr.IntOrString) int32 {
	if port.Type == intstr.Int {
		return port.IntVal
	}
	for i := range c.Ports {
		if c.Ports[i].Name == port.StrVal {
			return c.Ports[i].ContainerPort
		}
	}
	return 0
}
