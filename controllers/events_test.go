package controllers

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/weir-dev/weir/api/v1alpha1"
	"github.com/weir-dev/weir/internal/controlplane/condition"
)

// events collects Events as text.
type events struct {
	regarding []runtime.Object
	events    []string
}

func (t *events) Eventf(regarding, _ runtime.Object, eventtype, reason, action, note string, args ...any) {
	t.regarding = append(t.regarding, regarding)
	t.events = append(t.events, fmt.Sprintf("%s %s %s: %s", eventtype, reason, action, fmt.Sprintf(note, args...)))
}

func TestRecord(t *testing.T) {
	accepted, programmed := condition.True("Accepted", "Accepted", "valid"), condition.True("Programmed", "Programmed", "2 of 2")
	reconciling, idle := condition.False("Programmed", "Reconciling", "1 of 2"), condition.False("Programmed", "NoEnforcers", "no pod")
	all := func(c ...metav1.Condition) []metav1.Condition { return c }
	tests := map[string]struct {
		had, has []metav1.Condition
		want     []string
	}{
		"the first verdicts": {
			all(condition.Unknown("Accepted", "Pending", ""), condition.Unknown("Programmed", "Pending", "")), all(accepted, reconciling),
			[]string{"Normal Reconciling Reconcile-4: 1 of 2"},
		},
		"the first verdicts of most objects": {
			all(condition.Unknown("Accepted", "Pending", ""), condition.Unknown("Programmed", "Pending", "")), all(accepted, idle), nil,
		},
		"the same without a default": {nil, all(accepted, idle), nil},
		"a first verdict that somebody has to act upon": {
			all(condition.Unknown("Accepted", "Pending", "")), all(condition.False("Accepted", "Invalid", "spec.limits")),
			[]string{"Warning Invalid Reconcile-4: spec.limits"},
		},
		"what is accepted at last": {all(condition.False("Accepted", "Invalid", "")), all(accepted), []string{"Normal Accepted Reconcile-4: valid"}},
		"pods that are gone":       {all(accepted, programmed), all(accepted, idle), []string{"Warning NoEnforcers Reconcile-4: no pod"}},
		"a turn":                   {all(accepted, reconciling), all(accepted, programmed), []string{"Normal Programmed Reconcile-4: 2 of 2"}},
		"another reason under the same status": {
			all(programmed), all(condition.True("Programmed", "PartiallyProgrammed", "2 of 3; a 100% cure")),
			[]string{"Warning PartiallyProgrammed Reconcile-4: 2 of 3; a 100% cure"},
		},
		"the same reason under another status": {
			all(condition.True("Programmed", "PartiallyProgrammed", "")), all(condition.False("Programmed", "PartiallyProgrammed", "0 of 3")),
			[]string{"Warning PartiallyProgrammed Reconcile-4: 0 of 3"},
		},
		"what is refused":                     {all(accepted, programmed), all(condition.False("Accepted", "Invalid", "spec.limits")), []string{"Warning Invalid Reconcile-4: spec.limits"}},
		"a hub that is lost":                  {all(condition.True("Connected", "Connected", "")), all(condition.False("Connected", "Partitioned", "gone")), []string{"Warning Partitioned Reconcile-4: gone"}},
		"keys without room":                   {all(accepted, programmed), all(accepted, programmed, condition.True("KeysFull", "NoRoom", "of a")), []string{"Warning NoRoom Reconcile-4: of a"}},
		"keys without room in other places":   {all(condition.True("KeysFull", "NoRoom", "of a")), all(condition.True("KeysFull", "NoRoomInPods", "of b")), []string{"Warning NoRoomInPods Reconcile-4: of b"}},
		"a count in a message is not news":    {all(reconciling), all(condition.False("Programmed", "Reconciling", "1 of 3")), nil},
		"nor is what cannot be judged":        {all(condition.True("Connected", "Connected", "")), all(condition.Unknown("Connected", "Starting", "")), nil},
		"nor what follows traffic and stores": {nil, all(condition.False("WithinBound", "BoundExceeded", ""), condition.False("StoreReachable", "Unreachable", ""), condition.True("Saturated", "AtMax", "")), nil},
	}
	policy := &v1alpha1.RateLimitPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "checkout", UID: "uid", Generation: 4, ResourceVersion: "7"}}
	about := &corev1.ObjectReference{APIVersion: "weir.dev/v1alpha1", Kind: "RateLimitPolicy", Namespace: "shop", Name: "checkout", UID: "uid"}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			var to events
			record(&to, policy, "RateLimitPolicy", tc.had, tc.has)
			if diff := cmp.Diff(tc.want, to.events); diff != "" {
				t.Errorf("events (-want +got):\n%s", diff)
			}
			for _, regarding := range to.regarding {
				if diff := cmp.Diff(runtime.Object(about), regarding); diff != "" {
					t.Errorf("what changes with each write makes each Event another (-want +got):\n%s", diff)
				}
			}
		})
	}
}

func TestNotesFitAnEvent(t *testing.T) {
	for _, length := range []int{0, maxNote - 1, maxNote, maxNote + 1, 3 * maxNote} {
		message := strings.Repeat("é", length/2) + strings.Repeat("x", length%2)
		got := note(message)
		if len(got) > maxNote || !utf8.ValidString(got) || !strings.HasPrefix(message, got) || len(got) < min(length, maxNote-1) {
			t.Errorf("of %d bytes %d are recorded", length, len(got))
		}
	}
}

func TestEventfulConditionsExist(t *testing.T) {
	conditions := conditionsOf(newScope())
	for _, kind := range eventful[:2] {
		if !slices.ContainsFunc(conditions, func(c metav1.Condition) bool { return c.Type == kind }) {
			t.Errorf("policies have no condition %s", kind)
		}
	}
}
