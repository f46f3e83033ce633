package controllers

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-dev/weir/api/v1alpha1"
	"github.com/weir-dev/weir/internal/controlplane/audit"
)

func TestSummary(t *testing.T) {
	unbounded := measuredFigures(3, 0, 0)
	unbounded.Overshoot.Unbounded = true
	stale := measuredFigures(0, 0, 120)
	stale.Verdict = audit.ReportsMissing
	tests := map[string]struct {
		scope *scope
		want  v1alpha1.Summary
	}{
		"what was not measured is a dash, never a zero": {
			newScope(),
			v1alpha1.Summary{Limits: "100/1s", Pods: "0/0", Admitted: "-", Rejected: "-", Overshoot: "-", Unused: "-", RequestsPerRoundTrip: "-"},
		},
		"a policy that is not accepted is enforced by nobody that could be counted": {
			newScope(func(s *scope) { s.invalid = errors.New("no") }),
			v1alpha1.Summary{Limits: "100/1s", Pods: "-", Admitted: "-", Rejected: "-", Overshoot: "-", Unused: "-", RequestsPerRoundTrip: "-"},
		},
		"one limit": {
			newScope(enforcers("a", "b", "c"), acknowledged(4, "a", "b", "c"), figures("all", measuredFigures(0, 0, 120))),
			v1alpha1.Summary{Limits: "100/1s", Pods: "3/3", Admitted: "100/s", Rejected: "312/s", Overshoot: "0 ≤ 0", Unused: "1.2%", RequestsPerRoundTrip: "82.4"},
		},
		"figures of several limits add up, or the worst is shown": {
			newScope(limit("writes", v1alpha1.Rate{Limit: 5, Window: "1s"}, v1alpha1.Rate{Limit: 50, Window: "1m"}),
				enforcers("a"), acknowledged(3, "a"), figures("all", measuredFigures(4, 10, 0)), figures("writes", measuredFigures(3, 5, 250))),
			v1alpha1.Summary{Limits: "100/1s +2", Pods: "0/1", Admitted: "200/s", Rejected: "624/s", Overshoot: "3 ≤ 5", Unused: "2.5%", RequestsPerRoundTrip: "82.4"},
		},
		"a pod without a sidecar is one that does not enforce": {
			newScope(enforcers("a"), acknowledged(4, "a"), uninjected("b")),
			v1alpha1.Summary{Limits: "100/1s", Pods: "1/2", Admitted: "-", Rejected: "-", Overshoot: "-", Unused: "-", RequestsPerRoundTrip: "-"},
		},
		"figures older than a window that was not reported are in question": {
			newScope(figures("all", stale)),
			v1alpha1.Summary{Limits: "100/1s", Pods: "0/0", Admitted: "100/s", Rejected: "312/s", Overshoot: "0 ≤ 0 ?", Unused: "1.2% ?", RequestsPerRoundTrip: "82.4"},
		},
		"so they are while a sidecar is not heard of": {
			newScope(enforcers("a"), figures("all", measuredFigures(0, 0, 120))),
			v1alpha1.Summary{Limits: "100/1s", Pods: "0/1", Admitted: "100/s", Rejected: "312/s", Overshoot: "0 ≤ 0 ?", Unused: "1.2% ?", RequestsPerRoundTrip: "82.4"},
		},
		"what was not measured is in no question": {
			newScope(figures("all", audit.Figures{Verdict: audit.ReportsMissing})),
			v1alpha1.Summary{Limits: "100/1s", Pods: "0/0", Admitted: "0/s", Rejected: "0/s", Overshoot: "-", Unused: "-", RequestsPerRoundTrip: "-"},
		},
		"what is known only of a window before is not the last one's": {
			newScope(figures("all", audit.Figures{Verdict: audit.Exceeded, Overshoot: &audit.Overshoot{Worst: 30, WorstEnd: now}})),
			v1alpha1.Summary{Limits: "100/1s", Pods: "0/0", Admitted: "0/s", Rejected: "0/s", Overshoot: "-", Unused: "-", RequestsPerRoundTrip: "-"},
		},
		"a broken bound is not said to hold": {
			newScope(figures("all", measuredFigures(3, 2, 0))),
			v1alpha1.Summary{Limits: "100/1s", Pods: "0/0", Admitted: "100/s", Rejected: "312/s", Overshoot: "3 > 2", Unused: "0.0%", RequestsPerRoundTrip: "82.4"},
		},
		"nothing bounds what is admitted uncounted": {
			newScope(figures("all", unbounded)),
			v1alpha1.Summary{Limits: "100/1s", Pods: "0/0", Admitted: "100/s", Rejected: "312/s", Overshoot: "3 ≤ ∞", Unused: "0.0%", RequestsPerRoundTrip: "82.4"},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			tc.want.Window = v1alpha1.NotMeasured
			if diff := cmp.Diff(tc.want, statusOf(tc.scope).Summary); diff != "" {
				t.Errorf("summary (-want +got):\n%s", diff)
			}
		})
	}
}
