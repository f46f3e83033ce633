package inject

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"github.com/weir-dev/weir/api/v1alpha1"
)

// optedIn decides whether a sidecar is wanted.
//
//	namespace label      pod annotation, else label   result
//	disabled             any                          DisabledByNamespace
//	any other            enabled                      Injected
//	any other            disabled                     DisabledByPod
//	any other            anything else                MalformedInject
//	enabled              absent                       Injected
//	absent or other      absent                       NotOptedIn
//
// The match conditions in config/webhook say the same, so that pods nobody opted
// in never come here.
func optedIn(pod *corev1.Pod, ns NamespaceFacts) (Reason, string) {
	if ns.Labels[v1alpha1.InjectionLabel] == v1alpha1.Disabled {
		return DisabledByNamespace, fmt.Sprintf("the namespace is labelled %s=%s", v1alpha1.InjectionLabel, v1alpha1.Disabled)
	}
	kind, value, found := podChoice(pod)
	switch {
	case found && value == v1alpha1.Enabled:
		return Injected, ""
	case found && value == v1alpha1.Disabled:
		return DisabledByPod, fmt.Sprintf("the pod's %s %s is %q", kind, v1alpha1.InjectKey, v1alpha1.Disabled)
	case found:
		return MalformedInject, fmt.Sprintf("the pod's %s %s is %s: use %q or %q",
			kind, v1alpha1.InjectKey, quote(value), v1alpha1.Enabled, v1alpha1.Disabled)
	case ns.Labels[v1alpha1.InjectionLabel] == v1alpha1.Enabled:
		return Injected, ""
	default:
		return NotOptedIn, fmt.Sprintf("neither the pod (%s) nor its namespace (%s) is %q",
			v1alpha1.InjectKey, v1alpha1.InjectionLabel, v1alpha1.Enabled)
	}
}

// podChoice returns what the pod itself says; its annotation wins over its label.
func podChoice(pod *corev1.Pod) (kind, value string, found bool) {
	if value, found = pod.Annotations[v1alpha1.InjectKey]; found {
		return "annotation", value, true
	}
	value, found = pod.Labels[v1alpha1.InjectKey]
	return "label", value, found
}

// injectable decides whether a sidecar can work in the pod.
func injectable(pod *corev1.Pod, ns NamespaceFacts, cfg Config) (Reason, string) {
	if hasSidecar(pod) {
		if what := foreign(pod, ns, cfg); what != "" {
			return ForeignSidecar, fmt.Sprintf("the pod claims to be injected, and %s is not what it would be given now: "+
				"remove the annotation %s and the containers %s and %s from what it is created from",
				what, v1alpha1.InjectedAnnotation, ContainerName, CaptureContainerName)
		}
		return AlreadyInjected, "the pod already carries the sidecar"
	}
	name := takenName(pod)
	switch {
	case name != "":
		return NameTaken, fmt.Sprintf("the pod has a container named %s that is not Weir's: rename it", name)
	case pod.Spec.HostNetwork:
		return HostNetwork, "the pod uses the host's network, where the sidecar's ports would be the node's"
	case pod.Annotations[corev1.MirrorPodAnnotationKey] != "":
		return StaticPod, "the pod is static: the kubelet runs it from a file that admission cannot change"
	case runsOnWindows(pod):
		return WindowsPod, "the pod runs on Windows and the sidecar is a Linux program"
	}
	if owner := ownerOfPort(&pod.Spec, checkPort); owner != "" {
		return PortTaken, fmt.Sprintf("container %s uses port %d, which the sidecar's check API needs: move it", brief(owner), checkPort)
	}
	if text := excess(pod); text != "" {
		return TooLarge, text
	}
	return Injected, ""
}

// hasSidecar needs both marks: a container that only has our name is another's,
// and an annotation alone limits nothing. Both may be written by the pod's author, see
// foreign.
func hasSidecar(pod *corev1.Pod) bool {
	if pod.Annotations[v1alpha1.InjectedAnnotation] == "" {
		return false
	}
	for c := range serving(&pod.Spec) {
		if c.Name == ContainerName {
			return true
		}
	}
	return false
}

// takenName returns the name of a container that is to be ours, or "".
func takenName(pod *corev1.Pod) string {
	for c := range containers(&pod.Spec) {
		if c.Name == ContainerName || c.Name == CaptureContainerName {
			return c.Name
		}
	}
	return ""
}
