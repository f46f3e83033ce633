package inject

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
)

// CaptureContainerName is the name of the init container that has connections
// redirected to the sidecar.
const CaptureContainerName = "weir-capture"

// initContainers renders what runs before the sidecar, and ends. See package capture
// for what it does to the pod's network.
func (p *plan) initContainers() []corev1.Container {
	if p.capture != CaptureRedirect {
		return nil
	}
	args := []string{"capture"}
	for _, port := range p.ports {
		args = append(args, fmt.Sprintf("--redirect=%d:%d", port.App, port.Listen))
	}
	return []corev1.Container{{
		Name:            CaptureContainerName,
		Image:           p.cfg.Image,
		ImagePullPolicy: p.cfg.ImagePullPolicy,
		Args:            args,
		// Those of the sidecar, with which it never runs at a time: the pod asks for no
		// more than before.
		Resources:                p.resources,
		SecurityContext:          captureSecurityContext(),
		VolumeMounts:             []corev1.VolumeMount{noAPIToken(p.volume)},
		TerminationMessagePolicy: corev1.TerminationMessageFallbackToLogsOnError,
	}}
}

// captureSecurityContext is that of the restricted profile but for the user and the
// capability. A program has a capability that its container was given only as root.
func captureSecurityContext() *corev1.SecurityContext {
	s := securityContext()
	s.RunAsNonRoot, s.RunAsUser, s.RunAsGroup = new(false), new(int64(0)), new(int64(0))
	s.Capabilities.Add = []corev1.Capability{"NET_ADMIN"}
	return s
}
