package inject

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/weir-dev/weir/api/v1alpha1"
)

const (
	enforcedProfile  = "pod-security.kubernetes.io/enforce"
	profileOfNothing = "privileged"

	// dataplaneMode is the label by which Istio takes the traffic of a pod, or of the
	// pods of a namespace, without a container in them.
	dataplaneMode = "istio.io/dataplane-mode"

	// captureEnv is not an argument: a sidecar that is older than the injector would not
	// start with one that it does not know.
	captureEnv = "WEIR_CAPTURE"
)

// effective decides how requests come to the sidecar.
//
//	wanted     a mesh takes the pod's traffic   the profile forbids NET_ADMIN   result
//	port       any                              any                             port
//	explicit   any                              any                             explicit
//	auto       no                               no                              redirect
//	auto       either is so                                                     port
//	redirect   yes                              any                             port, with a warning
//	redirect   no                               yes                             redirect, with a warning
//	redirect   no                               no                              redirect
//
// A mesh hands requests to the app over the loopback device, where nothing is
// redirected: limits would count nothing and nobody would see it. A profile that
// forbids the pod is seen by everybody, and may have an exemption that is not known
// here, so there the choice is the user's.
func effective(wanted Capture, pod *corev1.Pod, ns NamespaceFacts, a *annotated) Capture {
	if wanted != CaptureAuto && wanted != CaptureRedirect {
		return wanted
	}
	mesh := meshOf(pod, ns)
	profile := ns.Labels[enforcedProfile]
	forbidden := profile != "" && profile != profileOfNothing // what cannot be read is enforced as restricted
	switch {
	case wanted == CaptureAuto && (mesh != "" || forbidden):
		return CapturePort
	case mesh != "":
		a.warn("%s is %s, which cannot work beside %s: it takes the pod's traffic first and hands it past the sidecar; %s is used",
			v1alpha1.CaptureAnnotation, CaptureRedirect, mesh, CapturePort)
		return CapturePort
	case forbidden:
		a.warn("%s is %s and the namespace enforces pod security %s, which refuses the capability NET_ADMIN: use %s, or exempt the pod",
			v1alpha1.CaptureAnnotation, CaptureRedirect, profile, CapturePort)
	}
	return CaptureRedirect
}

// meshOf returns what takes the pod's traffic before anything else can, or "".
func meshOf(pod *corev1.Pod, ns NamespaceFacts) string {
	for c := range containers(&pod.Spec) {
		if meshes[c.Name].takesInbound {
			return c.Name
		}
	}
	mode, ok := pod.Labels[dataplaneMode]
	if !ok {
		mode = ns.Labels[dataplaneMode]
	}
	if mode == "ambient" {
		return "Istio's ambient mode"
	}
	return ""
}

// declared is the capture that the sidecar is configured with, for the controller to know. Whether
// explicit was chosen, or is what is left without a port, makes a difference: to the
// latter pod no request may ever be limited, and nobody wanted that.
func (p *plan) declared() Capture {
	if p.aside {
		return CaptureNone
	}
	return p.capture
}

// Declared returns the capture that the sidecar of a pod is configured with. It differs from the
// one in the annotation where no port is captured and nobody chose that: then it is
// CaptureNone. It is empty for a pod without a sidecar.
func Declared(pod *corev1.Pod) Capture {
	for c := range serving(&pod.Spec) {
		if c.Name != ContainerName {
			continue
		}
		for _, env := range c.Env {
			if env.Name == captureEnv {
				return Capture(env.Value)
			}
		}
	}
	return ""
}
