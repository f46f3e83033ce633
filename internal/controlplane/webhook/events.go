package webhook

import (
	"cmp"
	"fmt"
	"hash/crc32"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/weir-dev/weir/internal/controlplane/inject"
)

// The reasons of Events.
const (
	eventInjected = "Injected"
	eventSkipped  = "InjectionSkipped"
	eventWarning  = "InjectionWarning"

	eventAction = "Inject" // and a number that distinguishes messages
	maxNote     = 1024     // bytes, set by Kubernetes
)

// Events is the part of an events.EventRecorder that the handler uses. It must
// not block.
type Events interface {
	Eventf(regarding, related runtime.Object, eventtype, reason, action, note string, args ...any)
}

// emit writes the report as an Event of the pod's owner. It is not news that the pod was
// injected before, or that injection was not asked for.
func (i *PodInjector) emit(pod *corev1.Pod, namespace string, report inject.Report) {
	if report.Reason == inject.AlreadyInjected || report.Reason == inject.NotOptedIn {
		return
	}
	about := subject(pod, namespace)
	send := func(eventType, reason, message string) {
		i.Events.Eventf(about, nil, eventType, reason, action(message), "%s", note(pod, message))
	}
	switch {
	case report.Injected:
		send(corev1.EventTypeNormal, eventInjected, report.Message)
	case unexpected(report):
		send(corev1.EventTypeWarning, eventSkipped, fmt.Sprintf("%s: %s", report.Reason, report.Message))
	default:
		send(corev1.EventTypeNormal, eventSkipped, fmt.Sprintf("%s: %s", report.Reason, report.Message))
	}
	for _, warning := range report.Warnings {
		send(corev1.EventTypeWarning, eventWarning, warning)
	}
}

// action differs from message to message. Recorders count Events of one subject, reason
// and action as one and keep the note of the first. With one action, only the first of
// several warnings would be read, or of one that changes with the pod.
func action(message string) string {
	return fmt.Sprintf("%s-%08x", eventAction, crc32.ChecksumIEEE([]byte(message)))
}

// subject is the controller that owns the pod, or the pod. A pod has no UID yet
// and, where the API server is to make one up, no name.
func subject(pod *corev1.Pod, namespace string) *corev1.ObjectReference {
	if owner := metav1.GetControllerOf(pod); owner != nil {
		return &corev1.ObjectReference{
			APIVersion: clip(owner.APIVersion), Kind: clip(owner.Kind), Namespace: namespace, Name: clip(owner.Name), UID: types.UID(clip(string(owner.UID))),
		}
	}
	return &corev1.ObjectReference{APIVersion: "v1", Kind: "Pod", Namespace: namespace, Name: podName(pod)}
}

// clip bounds a name of a pod that the API server has not validated yet. Events are kept
// until they are sent, and the text around the name must not be kept with it.
func clip(name string) string {
	return strings.Clone(name[:min(len(name), validation.DNS1123SubdomainMaxLength)])
}

// podName is the pod's name as far as it is known.
func podName(pod *corev1.Pod) string {
	return clip(cmp.Or(pod.Name, strings.TrimSuffix(pod.GenerateName, "-")))
}

func note(pod *corev1.Pod, message string) string {
	text := fmt.Sprintf("pod %s: %s", podName(pod), message)
	if len(text) > maxNote {
		text = strings.Clone(strings.ToValidUTF8(text[:maxNote], ""))
	}
	return text
}
