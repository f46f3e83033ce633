package controllers

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/weir-dev/weir/api/v1alpha1"
	"github.com/weir-dev/weir/internal/controlplane/audit"
	"github.com/weir-dev/weir/internal/controlplane/coordinator"
	"github.com/weir-dev/weir/internal/controlplane/translate"
	"github.com/weir-dev/weir/internal/fleetpb"
)

// TestAChangeOfLeaderForgetsNoOvershoot of the same generation.
func TestAChangeOfLeaderForgetsNoOvershoot(t *testing.T) {
	observed := func(f audit.Figures) coordinator.Observation {
		return coordinator.Observation{Limits: []coordinator.LimitFigures{{Limit: "all", Figures: f}}}
	}
	first := newScope()
	f := measuredFigures(490, 0, 0)
	f.Verdict, f.Overshoot.Excess, f.Overshoot.WorstEnd = audit.Exceeded, 490, now
	f.Generation = translate.Generation(first.policy)
	first.observe(observed(f))
	status := statusOf(first)
	for name, tc := range map[string]struct {
		figures *audit.Figures
		is      v1alpha1.Completeness
	}{
		"that measured nothing yet": {nil, v1alpha1.AtLeast},
		"that was not asked":        {&audit.Figures{}, v1alpha1.AtLeast},
		"that measured less":        {new(measuredFigures(5, 0, 0)), v1alpha1.Complete},
	} {
		t.Run("a leader "+name, func(t *testing.T) {
			next, f := newScope(), tc.figures
			next.policy.Status = *status.DeepCopy()
			if f != nil {
				f.Generation = translate.Generation(next.policy)
				if f.Overshoot == nil {
					f.Verdict = audit.NoTraffic
				}
				next.observe(observed(*f))
			}
			got := statusOf(next)
			if o := got.Limits[0].Overshoot; o == nil || *o.Worst != 490 || *o.Excess != 490 || !o.WorstTime.Time.Equal(now) || o.Completeness != tc.is {
				t.Errorf("overshoot = %+v, want the worst of the leader before, %s", o, tc.is)
			}
			if f == nil {
				return
			}
			if c := withinBound(next); c.Reason != v1alpha1.BoundExceededReason || c.Status != metav1.ConditionFalse {
				t.Errorf("WithinBound is %s, %s", c.Status, c.Reason)
			}
			next.policy.Generation++ // nothing of it is of the next one
			if o := next.before("all"); o != nil {
				t.Errorf("the next generation begins with %+v", o)
			}
		})
	}
}

// The status does not keep which bound the window had, only what was admitted beyond it. So it
// is not known either whether the window had one.
func TestTheBoundOfAnInheritedWorstIsNotKnown(t *testing.T) {
	s := newScope(enforcers("a"), acknowledged(generation, "a"))
	s.policy.Status.ObservedGeneration = s.policy.Generation
	s.policy.Status.Limits = []v1alpha1.LimitStatus{{Name: "all", Overshoot: &v1alpha1.Overshoot{Worst: new(int64(7))}}}
	f := measuredFigures(0, 0, 0)
	f.Generation = translate.Generation(s.policy)
	o := s.observation
	o.Limits = []coordinator.LimitFigures{{Limit: "all", Figures: f}}
	s.observe(o)
	const want = "worst overshoot 7, measured by the replica of the controller that led before, within the bound of its window or while nothing bounded it"
	if c := withinBound(s); c.Reason != v1alpha1.MeasuredReason || !strings.Contains(c.Message, want) {
		t.Errorf("WithinBound says %s, %q, want %q", c.Reason, c.Message, want)
	}
	f = measuredFigures(7, 7, 0)
	f.Generation = translate.Generation(s.policy)
	o.Limits = []coordinator.LimitFigures{{Limit: "all", Figures: f}}
	s.observe(o)
	if c := withinBound(s); strings.Contains(c.Message, "led before") {
		t.Errorf("of a window that this replica measured WithinBound says %q", c.Message)
	}
}

// TestPodsThatNothingLimitsShow in the condition, the grade and the column.
func TestPodsThatNothingLimitsShow(t *testing.T) {
	mode := func(s coordinator.Session) func(*scope) {
		s.Pod, s.PodUID, s.Generation = "b", "uid-b", generation
		return func(sc *scope) {
			enforcers("b")(sc)
			session(s)(sc)
		}
	}
	for name, change := range map[string]func(*scope){
		"without a sidecar": uninjected("b"),
		"bypassed":          mode(coordinator.Session{Mode: fleetpb.Mode_MODE_BYPASS}),
		"in shadow":         mode(coordinator.Session{Mode: fleetpb.Mode_MODE_SHADOW}),
		"by a host port": func(s *scope) {
			enforcers("b")(s)
			acknowledged(generation, "b")(s)
			s.pods.exposed = []string{"b"}
		},
		"not captured": mode(coordinator.Session{Capture: fleetpb.Capture_CAPTURE_NONE}),
	} {
		t.Run(name, func(t *testing.T) {
			s := newScope(enforcers("a"), acknowledged(generation, "a"), change, figures("all", measuredFigures(0, 0, 0)))
			got := statusOf(s)
			c := withinBound(s)
			if c.Status != metav1.ConditionUnknown || c.Reason != v1alpha1.PodsNotLimitedReason || !strings.Contains(c.Message, "figure: b;") {
				t.Errorf("WithinBound is %s, %s: %s", c.Status, c.Reason, c.Message)
			}
			if got.Guarantee.Grade != v1alpha1.BestEffortGuarantee || !strings.Contains(got.Guarantee.Reason, "requests to b;") {
				t.Errorf("guarantee = %+v", got.Guarantee)
			}
			if got.Summary.Overshoot != "0 ≤ 0 ?" {
				t.Errorf("the column shows %q", got.Summary.Overshoot)
			}
		})
	}
}

// TestAPodOnItsWayOutThatVanishedIsMissed: it may go on to let requests through.
func TestAPodOnItsWayOutThatVanishedIsMissed(t *testing.T) {
	for _, vanished := range []bool{false, true} {
		f := measuredFigures(0, 0, 0)
		if vanished {
			f.Vanished = []string{"uid-b"}
		}
		s := newScope(enforcers("a"), acknowledged(generation, "a"), figures("all", f))
		s.pods.leaving = []enforcer{{"b", types.UID("uid-b"), true}}
		if c := withinBound(s); (c.Reason == v1alpha1.ReportsMissingReason) != vanished {
			t.Errorf("vanished: %v, but WithinBound is %s, %s: %s", vanished, c.Status, c.Reason, c.Message)
		}
	}
}

// TestAWorstThatMayBeMoreIsSaidToBe.
func TestAWorstThatMayBeMoreIsSaidToBe(t *testing.T) {
	f := measuredFigures(0, 0, 0)
	f.Overshoot.AtLeast = true
	s := newScope(enforcers("a"), acknowledged(generation, "a"), figures("all", f))
	if c := withinBound(s); !strings.Contains(c.Message, "worst overshoot at least 0") {
		t.Errorf("WithinBound says %q", c.Message)
	}
	if got := statusOf(s).Limits[0].Overshoot.Completeness; got != v1alpha1.AtLeast {
		t.Errorf("completeness = %q", got)
	}
}
