package inject

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/weir-dev/weir/internal/sidecar/probe"
)

// takeProbes has the sidecar make the probes and the hooks that would be redirected
// to it, and returns them. What goes to other ports, or to another host than the
// pod, stays as it is. See package probe.
func takeProbes(spec *corev1.PodSpec, ports []Port, admin int32) []probe.Target {
	var taken []probe.Target
	take := func(t probe.Target) *corev1.HTTPGetAction {
		taken = append(taken, t)
		return &corev1.HTTPGetAction{Path: t.Path(), Port: intstr.FromInt32(admin), Scheme: corev1.URISchemeHTTP}
	}
	for c := range serving(spec) {
		for _, p := range []struct {
			kind  string
			probe *corev1.Probe
		}{{probe.Startup, c.StartupProbe}, {probe.Readiness, c.ReadinessProbe}, {probe.Liveness, c.LivenessProbe}} {
			if p.probe == nil {
				continue
			}
			target := probe.Target{Container: c.Name, Kind: p.kind, TimeoutSeconds: max(1, p.probe.TimeoutSeconds)}
			if question(&target, &p.probe.ProbeHandler, c, ports) {
				p.probe.ProbeHandler = corev1.ProbeHandler{HTTPGet: take(target)}
			}
		}
		if c.Lifecycle == nil {
			continue
		}
		for _, h := range []struct {
			kind string
			hook *corev1.LifecycleHandler
		}{{probe.PostStart, c.Lifecycle.PostStart}, {probe.PreStop, c.Lifecycle.PreStop}} {
			if h.hook == nil {
				continue
			}
			target := probe.Target{Container: c.Name, Kind: h.kind}
			if question(&target, &corev1.ProbeHandler{HTTPGet: h.hook.HTTPGet}, c, ports) {
				h.hook.HTTPGet = take(target)
			}
		}
	}
	return taken
}

// question says what is asked, if it is asked of one of the ports.
func question(t *probe.Target, h *corev1.ProbeHandler, c *corev1.Container, ports []Port) bool {
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
