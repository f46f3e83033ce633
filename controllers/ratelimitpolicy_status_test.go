package controllers

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/weir-dev/weir/api/v1alpha1"
	"github.com/weir-dev/weir/internal/controlplane/audit"
	"github.com/weir-dev/weir/internal/controlplane/audit/meter"
	"github.com/weir-dev/weir/internal/controlplane/coordinator"
	"github.com/weir-dev/weir/internal/controlplane/translate"
	"github.com/weir-dev/weir/pkg/policy"
	"github.com/weir-dev/weir/pkg/store"
)

func limit(name string, rates ...v1alpha1.Rate) func(*scope) {
	return func(s *scope) {
		s.policy.Spec.Limits = append(s.policy.Spec.Limits, v1alpha1.Limit{Name: name, Rates: rates})
	}
}

func measuredFigures(observed, bound int64, unused int32) audit.Figures {
	return audit.Figures{
		Verdict:          audit.Measured,
		Flow:             meter.Flow{AdmittedPerSecond: 99.6, RejectedPerSecond: 312.4, RequestsPerRoundTrip: 82.4},
		ActiveKeys:       1,
		Overshoot:        &audit.Overshoot{WindowEnd: now, Observed: observed, Bound: bound, Worst: observed},
		UnderUtilization: &audit.UnderUtilization{Observed: unused, Worst: unused},
	}
}

func TestLimits(t *testing.T) {
	s := newScope(limit("writes", v1alpha1.Rate{Limit: 5, Window: "1s"}, v1alpha1.Rate{Limit: 50, Window: "1m"}),
		figures("all", measuredFigures(2, 10, 120)))
	want := []v1alpha1.LimitStatus{
		{
			Name: "all", Rates: "100/1s",
			AdmittedPerSecond: ptr.To[int64](100), RejectedPerSecond: ptr.To[int64](312), ActiveKeys: ptr.To[int64](1),
			RequestsPerRoundTrip: "82.4",
			WindowEnd:            &metav1.MicroTime{Time: now},
			Overshoot:            &v1alpha1.Overshoot{Bound: ptr.To[int64](10), Observed: ptr.To[int64](2), Worst: ptr.To[int64](2), Completeness: v1alpha1.Complete},
			UnderUtilization:     &v1alpha1.UnderUtilization{ObservedBasisPoints: ptr.To[int32](120), WorstBasisPoints: ptr.To[int32](120)},
		},
		{Name: "writes", Rates: "5/1s 50/1m"},
	}
	if diff := cmp.Diff(want, statusOf(s).Limits); diff != "" {
		t.Errorf("limits (-want +got):\n%s", diff)
	}
}

func TestFiguresOfAnotherGenerationAreNotThisOnes(t *testing.T) {
	old := measuredFigures(9, 0, 100)
	old.Generation, old.Verdict = generation-1, audit.Exceeded
	s := newScope()
	s.observe(coordinator.Observation{Limits: []coordinator.LimitFigures{{Limit: "all", Figures: old}, {Limit: "removed", Figures: old}}})

	if got := withinBound(s).Reason; got != v1alpha1.StartingReason {
		t.Errorf("WithinBound is %s, want %s", got, v1alpha1.StartingReason)
	}
	want := []v1alpha1.LimitStatus{{
		Name: "all", Rates: "100/1s", RequestsPerRoundTrip: "82.4",
		AdmittedPerSecond: ptr.To[int64](100), RejectedPerSecond: ptr.To[int64](312), ActiveKeys: ptr.To[int64](1),
	}}
	if diff := cmp.Diff(want, statusOf(s).Limits); diff != "" {
		t.Errorf("limits (-want +got):\n%s", diff)
	}
}

// TestFiguresOfADeletedPolicyAreNotThoseOfItsNamesake: metadata.generation starts
// again, so by it alone the figures would look like those of the new object.
func TestFiguresOfADeletedPolicyAreNotThoseOfItsNamesake(t *testing.T) {
	s := newScope()
	s.policy.CreationTimestamp = metav1.NewTime(now.Add(-time.Hour))
	old := measuredFigures(0, 0, 0)
	old.Generation = translate.Generation(s.policy)
	s.policy.CreationTimestamp = metav1.NewTime(now)
	s.observe(coordinator.Observation{Limits: []coordinator.LimitFigures{{Limit: "all", Figures: old}}})

	if got := withinBound(s).Reason; got != v1alpha1.StartingReason {
		t.Errorf("WithinBound is %s, want %s", got, v1alpha1.StartingReason)
	}
	if got := statusOf(s).Summary; got.Overshoot != v1alpha1.NotMeasured || got.Unused != v1alpha1.NotMeasured {
		t.Errorf("summary %+v shows figures of the deleted policy", got)
	}
}

func TestWriteDelay(t *testing.T) {
	every := figuresIntervalOf("uid")
	if every < figuresInterval || every > figuresInterval+figuresJitter {
		t.Fatalf("figures are due every %s", every)
	}
	base := newScope(enforcers("a", "b"), acknowledged(4, "a", "b"), figures("all", measuredFigures(0, 0, 0)))
	tests := map[string]struct {
		change  func(*scope)
		since   time.Duration
		wait    time.Duration
		changed bool
	}{
		"nothing changed": {
			change: func(*scope) {}, since: time.Hour,
		},
		"the same figures of a later window are not a change": {
			change: func(s *scope) {
				s.now = s.now.Add(time.Minute)
				s.observation.Limits[0].Overshoot = &audit.Overshoot{WindowEnd: now.Add(time.Minute)}
			},
			since: time.Hour,
		},
		"a condition that turns is written at once": {
			change:  func(s *scope) { s.observation.Sessions = s.observation.Sessions[:1] },
			changed: true,
		},
		"a condition for another reason is written at once": {
			change: uninjected("c"), changed: true,
		},
		"a new generation is written at once": {
			change: func(s *scope) { s.policy.Generation++ }, changed: true,
		},
		"another message waits for the rest of a second": {
			change: func(s *scope) { s.doubts = []string{"spec: odd"} }, since: 300 * time.Millisecond,
			wait: 700 * time.Millisecond, changed: true,
		},
		"another message is written after a second": {
			change: func(s *scope) { s.doubts = []string{"spec: odd"} }, since: 2 * time.Second, changed: true,
		},
		"figures wait for their turn": {
			change: func(s *scope) { s.observation.Limits[0].Flow.AdmittedPerSecond++ }, since: 10 * time.Second,
			wait: every - 10*time.Second, changed: true,
		},
		"figures are written in their turn": {
			change: func(s *scope) { s.observation.Limits[0].Flow.AdmittedPerSecond++ }, since: every, changed: true,
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			have := statusOf(base)
			s := *base
			s.enforcing = nil // it is of base
			policy := *base.policy
			policy.Status = have
			s.policy = &policy
			s.observation.Limits = append([]coordinator.LimitFigures(nil), base.observation.Limits...)
			tc.change(&s)
			next := statusOf(&s)
			wait, changed := writeDelay(changeOf(&have, &next), "uid", tc.since)
			if wait != tc.wait || changed != tc.changed {
				t.Errorf("writeDelay is (%s, %v), want (%s, %v)", wait, changed, tc.wait, tc.changed)
			}
		})
	}
}

func TestCountersOfSeveralValuesAreNamed(t *testing.T) {
	for value, want := range map[string]bool{"gold": false, policy.MissingValue(): true, store.Shared(7): true} {
		keys := []audit.HotKey{{KeyCount: audit.KeyCount{Hash: store.HashValue(value)}}}
		if got := hottest(keys, now)[0].Shared; got != want {
			t.Errorf("%q is shared: %v, want %v", value, got, want)
		}
	}
}
