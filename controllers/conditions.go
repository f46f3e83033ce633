package controllers

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/weir-dev/weir/api/v1alpha1"
	"github.com/weir-dev/weir/internal/controlplane/condition"
)

// maxNote is how long the text of an Event may be, in bytes; set by Kubernetes.
const maxNote = 1024

// Events is the part of an events.EventRecorder that reconcilers use. It must not block.
type Events interface {
	Eventf(regarding, related runtime.Object, eventtype, reason, action, note string, args ...any)
}

var (
	// eventful lists the conditions whose changes are recorded: whether the object is in force,
	// on which pods, and whether it grants anything. Others follow traffic and stores, and have
	// metrics.
	eventful = []string{v1alpha1.AcceptedCondition, v1alpha1.ProgrammedCondition, v1alpha1.ConnectedCondition, v1alpha1.LearningCondition, v1alpha1.KeysFullCondition, v1alpha1.JWTKeysCondition}
	// normal lists the reasons that need no action.
	normal = []string{v1alpha1.AcceptedReason, v1alpha1.ProgrammedReason, v1alpha1.ReconcilingReason, v1alpha1.ConnectedReason, v1alpha1.LearnedReason, v1alpha1.KeysAvailableReason}
	// initial lists the reasons with which most objects begin. First verdicts with these
	// are not recorded: thousands of new objects would have twice as many Events, each a
	// write, that repeat the status.
	initial = []string{v1alpha1.AcceptedReason, v1alpha1.NoEnforcersReason, v1alpha1.KeysAvailableReason}
)

// record writes an Event for each condition of the object whose status or reason changed,
// except to those that most objects begin with. Counts and names in messages change all the
// time and are not recorded. Nor is a condition that cannot be judged, as after every change of
// the leader.
func record(to Events, object client.Object, kind string, had, has []metav1.Condition) {
	about := referenceTo(object, kind)
	// Recorders count what is alike in all but its note as one Event: a condition that
	// turns to and fro under one generation adds no more.
	action := fmt.Sprintf("Reconcile-%d", object.GetGeneration())
	for _, c := range has {
		old := meta.FindStatusCondition(had, c.Type)
		if c.Type == v1alpha1.LearningCondition && c.Status == metav1.ConditionFalse && (old == nil || old.Status != metav1.ConditionTrue) {
			continue // nothing was lost
		}
		if first := old == nil || old.Reason == v1alpha1.PendingReason; first && slices.Contains(initial, c.Reason) {
			continue
		}
		if !slices.Contains(eventful, c.Type) || c.Status == metav1.ConditionUnknown || old != nil && old.Status == c.Status && old.Reason == c.Reason {
			continue
		}
		eventType := corev1.EventTypeWarning
		if slices.Contains(normal, c.Reason) {
			eventType = corev1.EventTypeNormal
		}
		to.Eventf(about, nil, eventType, c.Reason, action, "%s", note(c.Message))
	}
}

// referenceTo names what Events are about, without a resource version, which would make
// each Event another.
func referenceTo(object client.Object, kind string) *corev1.ObjectReference {
	return &corev1.ObjectReference{
		APIVersion: v1alpha1.GroupVersion.String(), Kind: kind, Namespace: object.GetNamespace(), Name: object.GetName(), UID: object.GetUID(),
	}
}

func note(message string) string {
	if len(message) > maxNote {
		return strings.ToValidUTF8(message[:maxNote], "")
	}
	return message
}

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
