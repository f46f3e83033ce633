package inject

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/weir-dev/weir/api/v1alpha1"
)

// Minor versions of Kubernetes.
const (
	withNativeSidecars   = 29 // init containers that keep running
	withNamedNativePorts = 33 // Services find the ports of those by name
)

// Values of v1alpha1.NativeSidecarAnnotation, besides enabled and disabled.
const nativeAuto = "auto"

// nativeSidecar reads the annotation that chooses the form.
func (a *annotated) nativeSidecar() string {
	value, ok := a.lookup(v1alpha1.NativeSidecarAnnotation)
	switch {
	case !ok:
		return nativeAuto
	case slices.Contains([]string{nativeAuto, v1alpha1.Enabled, v1alpha1.Disabled}, value):
		return value
	}
	a.warn("%s is %s: use auto, enabled or disabled; auto is used", v1alpha1.NativeSidecarAnnotation, quote(value))
	return nativeAuto
}

// formOf chooses the form of the sidecar. The native one starts before the app and
// ends after it, and lets the pod finish, so it is used wherever the cluster knows
// it. Where Services do not find the port that is to take over a name, the classic
// form does what the native one cannot, except in a pod that would then never finish.
func formOf(wanted string, pod *corev1.Pod, capture Capture, minor int, a *annotated) Form {
	switch {
	case wanted == v1alpha1.Disabled:
		return Classic
	case minor < withNativeSidecars:
		if wanted == v1alpha1.Enabled {
			a.warn("%s is %s and this cluster is Kubernetes 1.%d, which has none before 1.%d: the classic form is used",
				v1alpha1.NativeSidecarAnnotation, wanted, minor, withNativeSidecars)
		}
		return Classic
	case minor >= withNamedNativePorts || capture != CapturePort:
		return Native
	case wanted != v1alpha1.Enabled && !finishes(pod):
		return Classic
	}
	a.warn("Services find the sidecar's port by its name from Kubernetes 1.%d on, and this cluster is 1.%d:"+
		" requests go past the sidecar unless %s is %s", withNamedNativePorts, minor, v1alpha1.CaptureAnnotation, CaptureRedirect)
	return Native
}

// finishes reports whether the pod is to end by itself, as those of Jobs are.
func finishes(pod *corev1.Pod) bool {
	owner := metav1.GetControllerOf(pod)
	return owner != nil && owner.Kind == "Job" ||
		pod.Spec.RestartPolicy == corev1.RestartPolicyNever || pod.Spec.RestartPolicy == corev1.RestartPolicyOnFailure
}
