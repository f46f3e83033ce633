package plugin

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/weir-dev/weir/api/v1alpha1"
	"github.com/weir-dev/weir/internal/controlplane/inject"
	"github.com/weir-dev/weir/internal/controlplane/selection"
)

// An object is what policies and pools have in common.
type object struct {
	kind, namespace, name string
	generation            int64
	mode                  v1alpha1.PolicyMode
	store                 string
	selector              *metav1.LabelSelector
	conditions            []metav1.Condition
	checked               bool                   // the check API decides by it
	applies               func(*corev1.Pod) bool // to a pod that it selects; nil: to all
	shares                map[string]int64       // of a pool, by pod
}

// policyObject returns what the rows of a policy have in common.
func policyObject(p *v1alpha1.RateLimitPolicy) object {
	return object{
		kind: "ratelimitpolicy", namespace: p.Namespace, name: p.Name, generation: p.Generation, mode: p.Spec.Mode,
		store: string(p.Spec.Store.Type), selector: &p.Spec.PodSelector, conditions: p.Status.Conditions, checked: true,
	}
}

// row returns a row without a pod.
func (o *object) row(limited metav1.ConditionStatus, reason string) statusRow {
	return statusRow{Namespace: o.namespace, Object: o.kind + "/" + o.name, Mode: string(o.mode), Store: o.store, Limited: limited, Reason: reason}
}

// podRow returns the row of a selected pod in a namespace, nil for one that could not be read.
func (o *object) podRow(pod *corev1.Pod, ns *corev1.Namespace) statusRow {
	row := o.row(o.judge(pod, ns))
	row.Pod = pod.Name
	if !selection.HasSidecar(pod) {
		return row
	}
	row.Capture = string(inject.Declared(pod))
	if share, ok := o.shares[pod.Name]; ok {
		row.Share = &share
	}
	if row.Limited == metav1.ConditionTrue {
		row.Generation = &o.generation
	}
	return row
}

// behind says why it is not known that every sidecar runs the generation; empty when it is.
func (o *object) behind() string {
	if accepted := meta.FindStatusCondition(o.conditions, v1alpha1.AcceptedCondition); accepted != nil && accepted.Status == metav1.ConditionFalse && accepted.ObservedGeneration == o.generation {
		return "not accepted, so sidecars run no or an earlier generation: " + accepted.Message
	}
	programmed := meta.FindStatusCondition(o.conditions, v1alpha1.ProgrammedCondition)
	switch {
	case programmed == nil || programmed.ObservedGeneration != o.generation || programmed.Reason == v1alpha1.PendingReason:
		return fmt.Sprintf("the controller has not reported on generation %d yet", o.generation)
	case programmed.Status == metav1.ConditionTrue || programmed.Reason == v1alpha1.PartiallyProgrammedReason:
		return ""
	default:
		return programmed.Message
	}
}

// judge says whether requests to a selected pod are limited, and if not, or not all, why.
// The namespace is nil when it could not be read.
func (o *object) judge(pod *corev1.Pod, ns *corev1.Namespace) (metav1.ConditionStatus, string) {
	if !selection.HasSidecar(pod) {
		return metav1.ConditionFalse, uninjected(pod, ns)
	}
	if why := o.idle(pod); why != "" {
		return metav1.ConditionFalse, why
	}
	if pod.Status.Phase != corev1.PodRunning {
		return metav1.ConditionUnknown, fmt.Sprintf("the pod is %s", pod.Status.Phase)
	}
	if why := o.behind(); why != "" {
		return metav1.ConditionUnknown, why
	}
	if inject.Declared(pod) == inject.CaptureExplicit {
		return metav1.ConditionTrue, "only where the app asks, as " + v1alpha1.CaptureAnnotation + " is explicit"
	}
	if port := selection.PastSidecar(pod); port != 0 {
		return metav1.ConditionTrue, fmt.Sprintf("not by host port %d, which leads past the sidecar: remove hostPort", port)
	}
	return metav1.ConditionTrue, ""
}

// uninjected says why a pod has no sidecar, and the cure.
func uninjected(pod *corev1.Pod, ns *corev1.Namespace) string {
	const none = "no sidecar: "
	if ns == nil {
		return none + "the namespace cannot be read, so it is not known why"
	}
	report := inject.OptedIn(pod, inject.NamespaceFacts{Labels: ns.Labels, Annotations: ns.Annotations})
	if report.Reason == inject.Injected {
		return "no sidecar, though it is opted in: restart it, and see its Events if it still has none"
	}
	return none + report.Message
}

// idle says why the sidecar of a pod limits nothing by the object; empty when it limits.
func (o *object) idle(pod *corev1.Pod) string {
	capture := inject.Declared(pod)
	switch mode := pod.Annotations[v1alpha1.ModeAnnotation]; {
	case o.applies != nil && !o.applies(pod):
		return "older pools that select the pod apply in its place: narrow a podSelector"
	case mode == v1alpha1.ModeBypass, mode == v1alpha1.ModeShadow:
		return fmt.Sprintf("%s is %s: take it out of the pod template", v1alpha1.ModeAnnotation, mode)
	case o.mode == v1alpha1.ShadowMode:
		return "spec.mode is Shadow, which counts refusals and lets requests pass"
	case capture == inject.CaptureExplicit && !o.checked:
		return v1alpha1.CaptureAnnotation + " is explicit, and the check API knows no pools: have the port captured"
	case capture == inject.CaptureNone:
		return "no port is captured: name one http, or list it in " + v1alpha1.InboundPortsAnnotation
	}
	return ""
}
