package controllers

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/weir-dev/weir/api/v1alpha1"
	"github.com/weir-dev/weir/internal/controlplane/condition"
)

// rejected returns the conditions of an object that is not accepted. It has no others. It is
// stalled unless what it waits for is another object.
func rejected(reason, message string) []metav1.Condition {
	all := []metav1.Condition{
		condition.False(v1alpha1.AcceptedCondition, reason, message),
		condition.False(v1alpha1.ReadyCondition, reason, message),
	}
	if reason != v1alpha1.BudgetNotFoundReason {
		all = append(all, condition.True(v1alpha1.StalledCondition, reason, message))
	}
	return all
}

// ready returns the condition Ready of a policy or pool that is accepted: every selected pod
// enforces this generation, and no request passes that nothing limits.
func (r *enforcement) ready() metav1.Condition {
	const kind = v1alpha1.ReadyCondition
	programmed := r.programmed()
	if past := r.past(); programmed.Status == metav1.ConditionTrue && len(past) > 0 {
		return condition.False(kind, v1alpha1.PodsNotLimitedReason,
			"requests to these pods pass that nothing limits: "+nameSome(past)+"; the condition Programmed names the cure")
	}
	return condition.Summary(kind, v1alpha1.ReadyReason, programmed.Message, programmed)
}
