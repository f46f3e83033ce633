package condition_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/weir-dev/weir/internal/controlplane/condition"
)

var (
	before = metav1.NewTime(time.Date(2026, 11, 20, 10, 0, 0, 0, time.UTC))
	now    = before.Add(time.Hour).Add(time.Millisecond)
	moment = metav1.NewTime(now.Truncate(time.Second))
)

func stamped(c metav1.Condition, generation int64, at metav1.Time) metav1.Condition {
	c.ObservedGeneration, c.LastTransitionTime = generation, at
	return c
}

func TestMerge(t *testing.T) {
	ready := condition.True("Ready", "Fine", "all is well")
	broken := condition.False("Ready", "Broken", "repair it")
	unsure := condition.Unknown("Measured", "Starting", "wait")

	tests := map[string]struct {
		have, want, merged []metav1.Condition
	}{
		"the first conditions turn now": {
			want:   []metav1.Condition{ready, unsure},
			merged: []metav1.Condition{stamped(ready, 2, moment), stamped(unsure, 2, moment)},
		},
		"an unchanged condition keeps its transition time and follows the generation": {
			have:   []metav1.Condition{stamped(ready, 1, before)},
			want:   []metav1.Condition{ready},
			merged: []metav1.Condition{stamped(ready, 2, before)},
		},
		"a new reason under the same status is not a transition": {
			have:   []metav1.Condition{stamped(condition.True("Ready", "Once", "m"), 2, before)},
			want:   []metav1.Condition{ready},
			merged: []metav1.Condition{stamped(ready, 2, before)},
		},
		"a new status is a transition": {
			have:   []metav1.Condition{stamped(ready, 2, before)},
			want:   []metav1.Condition{broken},
			merged: []metav1.Condition{stamped(broken, 2, moment)},
		},
		"a condition that is no longer wanted goes": {
			have:   []metav1.Condition{stamped(ready, 2, before), stamped(unsure, 2, before)},
			want:   []metav1.Condition{ready},
			merged: []metav1.Condition{stamped(ready, 2, before)},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.merged, condition.Merge(tc.have, tc.want, 2, now)); diff != "" {
				t.Errorf("Merge (-want +got):\n%s", diff)
			}
		})
	}
}

func TestSummary(t *testing.T) {
	good := condition.True("Accepted", "Accepted", "the object is valid")
	for name, tc := range map[string]struct {
		of   []metav1.Condition
		want metav1.Condition
	}{
		"nothing is needed":    {nil, condition.True("Ready", "Fine", "all is well")},
		"all hold":             {[]metav1.Condition{good, good}, condition.True("Ready", "Fine", "all is well")},
		"the last does not":    {[]metav1.Condition{good, condition.False("Programmed", "Late", "wait")}, condition.False("Ready", "Late", "wait")},
		"the first outweighs":  {[]metav1.Condition{condition.False("Accepted", "Invalid", "repair it"), condition.Unknown("Programmed", "Starting", "wait")}, condition.False("Ready", "Invalid", "repair it")},
		"one is not known yet": {[]metav1.Condition{good, condition.Unknown("Programmed", "Starting", "wait"), good}, condition.Unknown("Ready", "Starting", "wait")},
	} {
		if diff := cmp.Diff(tc.want, condition.Summary("Ready", "Fine", "all is well", tc.of...)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}
