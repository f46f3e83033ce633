package inject

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/weir-dev/weir/api/v1alpha1"
)

// warnOfBypass says where requests reach the app without the sidecar although the
// user may not expect it. Connections that are redirected have no other way.
func warnOfBypass(spec *corev1.PodSpec, capture Capture, ports []Port, a *annotated) {
	names := namesOf(spec)
	for _, p := range ports {
		if capture == CaptureRedirect {
			break
		}
		if _, named := names.number[p.Name]; !named {
			a.warn("port %d has no name by which Services reach it: target the port name %s to limit its requests", p.App, p.Name)
		}
		if host := hostPort(spec, p.App); host != 0 {
			a.warn("host port %d leads to the app's port %d and past the sidecar: remove it to limit its requests", host, p.App)
		}
	}
	if len(ports) == 0 {
		a.warn("no HTTP port found: only requests for which the app asks the check API on 127.0.0.1:%d are limited;"+
			" name the port http or list it in %s", checkPort, v1alpha1.InboundPortsAnnotation)
	}
}

func hostPort(spec *corev1.PodSpec, number int32) int32 {
	for c := range serving(spec) {
		for i := range c.Ports {
			if p := &c.Ports[i]; p.ContainerPort == number && p.HostPort != 0 && isTCP(p) {
				return p.HostPort
			}
		}
	}
	return 0
}
