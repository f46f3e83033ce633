package controllers

import (
	"maps"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/weir-dev/weir/api/v1alpha1"
	"github.com/weir-dev/weir/internal/controlplane/audit"
	"github.com/weir-dev/weir/internal/controlplane/condition"
	"github.com/weir-dev/weir/internal/controlplane/coordinator"
	"github.com/weir-dev/weir/pkg/limiter"
	"github.com/weir-dev/weir/pkg/policy"
	"github.com/weir-dev/weir/pkg/store"
)

// refusing is what the fleet says of limits that grant nothing until then.
func refusing(reason limiter.Reason, until time.Time, limits ...string) func(*scope) {
	return func(s *scope) {
		o := s.observation
		o.Learning = maps.Clone(o.Learning)
		if o.Learning == nil {
			o.Learning = make(map[string]coordinator.Learning)
		}
		for _, l := range limits {
			o.Learning[l] = coordinator.Learning{Since: now, Until: until, Reason: reason}
		}
		s.observe(o)
	}
}

// keeping has the store keep the counters of limit all so.
func keeping(r limiter.Retention) func(*scope) {
	return func(s *scope) { s.enforced.Limits = []policy.Limit{{Name: "all", Retention: r}} }
}

func TestLearning(t *testing.T) {
	soon := now.Add(90*time.Second - time.Millisecond)
	amnesia, behind := refusing(limiter.Amnesia, soon, "all"), refusing(limiter.ClockBehind, soon, "all")
	is := func(status metav1.ConditionStatus, reason, message string) metav1.Condition {
		return metav1.Condition{Type: v1alpha1.LearningCondition, Status: status, Reason: reason, Message: message}
	}
	second := func(s *scope) { s.policy.Spec.Limits = append(s.policy.Spec.Limits, v1alpha1.Limit{Name: "some"}) }
	const (
		forgot  = "the store may have forgotten what it granted of the open windows, and grants no more of them: limit all until 2026-11-20T10:16:30Z"
		keep    = "; set spec.store.memory to Durable so that counters outlive a restart of the store, as far as it persists"
		resume  = "; set spec.store.onMemoryLoss to Resume to go on at once with the counts that are left, which may admit one more limit"
		back    = "; set the limit back with the annotation weir.dev/reset to go on at once, which may admit one more limit"
		granted = "no limit is refused by a store that may have forgotten what it granted"
	)
	for name, tc := range map[string]struct {
		scope  *scope
		want   metav1.Condition
		column string
	}{
		"nobody could be refused": {newScope(), is("Unknown", "Starting", "no sidecar is connected that could be refused"), "-"},
		"every limit grants":      {newScope(acknowledged(4, "a")), is("False", "Learned", granted), "-"},
		"counts that a restart ends": {
			newScope(acknowledged(4, "a"), amnesia), is("True", "Amnesia", forgot+keep), "Learning",
		},
		"counts that were to outlive it": {
			newScope(onRedis(store.Facts{}, nil), acknowledged(4, "a"), amnesia, keeping(limiter.Retention{Durable: true})),
			is("True", "Amnesia", forgot+resume), "Learning",
		},
		"counts for which the controller had no room": {
			newScope(acknowledged(4, "a"), amnesia, keeping(limiter.Retention{Durable: true})), is("True", "Amnesia", forgot+back), "Learning",
		},
		"a clock that went back": {
			newScope(behind), is("True", "Behind",
				"the clock of the store went back, and nothing is granted until it shows what it showed before: limit all until 2026-11-20T10:16:30Z; set the clock of the store right"), "Learning",
		},
		"both": {
			newScope(second, refusing(limiter.ClockBehind, soon, "some"), amnesia),
			is("True", "Amnesia", forgot+keep+"; its clock went back too: limit some until 2026-11-20T10:16:30Z"), "Learning",
		},
		"it is over":           {newScope(acknowledged(4, "a"), refusing(limiter.Amnesia, now, "all")), is("False", "Learned", granted), "-"},
		"a limit that is gone": {newScope(acknowledged(4, "a"), refusing(limiter.Amnesia, soon, "gone")), is("False", "Learned", granted), "-"},
	} {
		t.Run(name, func(t *testing.T) {
			status := statusOf(tc.scope)
			got := *meta.FindStatusCondition(status.Conditions, v1alpha1.LearningCondition)
			got.ObservedGeneration, got.LastTransitionTime = 0, metav1.Time{}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("condition (-want +got):\n%s", diff)
			}
			if status.Summary.Window != tc.column {
				t.Errorf("column Window is %q, want %q", status.Summary.Window, tc.column)
			}
			until := status.Limits[0].LearningUntil
			if learns := tc.column == "Learning"; learns != (until != nil) || learns && !until.Time.Equal(now.Add(90*time.Second)) {
				t.Errorf("learningUntil is %v", until)
			}
		})
	}
}

// TestTheEndOfLearningStands while it moves by no more than reports take, so that a status
// does not change for it.
func TestTheEndOfLearningStands(t *testing.T) {
	for moved, want := range map[time.Duration]time.Duration{0: 0, 4 * time.Second: 0, -5 * time.Second: 0, 6 * time.Second: 6 * time.Second} {
		s := newScope(func(s *scope) {
			s.policy.Status.Limits = []v1alpha1.LimitStatus{{Name: "all", LearningUntil: &metav1.Time{Time: now.Add(time.Hour)}}}
		}, refusing(limiter.Amnesia, now.Add(time.Hour+moved), "all"))
		if got := s.learningUntil("all").Sub(now) - time.Hour; got != want {
			t.Errorf("moved by %v, it is shown as moved by %v, want %v", moved, got, want)
		}
	}
}

// TestLearningMakesNoEventUntilItBegins: an Event is for a limit that stops to grant, and for
// one that goes on.
func TestLearningMakesNoEventUntilItBegins(t *testing.T) {
	yes := []metav1.Condition{condition.True(v1alpha1.LearningCondition, v1alpha1.AmnesiaReason, "it forgot")}
	no := []metav1.Condition{condition.False(v1alpha1.LearningCondition, v1alpha1.LearnedReason, "it grants")}
	unknown := []metav1.Condition{condition.Unknown(v1alpha1.LearningCondition, v1alpha1.StartingReason, "nobody asks")}
	for name, tc := range map[string]struct {
		had, has []metav1.Condition
		want     []string
	}{
		"a new policy":             {nil, no, nil},
		"a first sidecar":          {unknown, no, nil},
		"it begins":                {no, yes, []string{"Warning Amnesia Reconcile-4: it forgot"}},
		"it begins with a new one": {nil, yes, []string{"Warning Amnesia Reconcile-4: it forgot"}},
		"it goes on":               {yes, yes, nil},
		"it ends":                  {yes, no, []string{"Normal Learned Reconcile-4: it grants"}},
	} {
		t.Run(name, func(t *testing.T) {
			var got events
			record(&got, newScope().policy, "RateLimitPolicy", tc.had, tc.has)
			if diff := cmp.Diff(tc.want, got.events); diff != "" {
				t.Errorf("Events (-want +got):\n%s", diff)
			}
		})
	}
}

func TestTheOpenWindowIsDescribed(t *testing.T) {
	open := audit.Figures{Verdict: audit.Starting, Open: &audit.OpenWindow{Began: now.Add(-time.Hour), Ends: now.Add(time.Hour), Limit: 100, Used: 30}}
	of := func(change func(*v1alpha1.Limit)) *v1alpha1.WindowStatus {
		s := newScope(figures("all", open), func(s *scope) { change(&s.policy.Spec.Limits[0]) })
		return limits(s)[0].Window
	}
	want := &v1alpha1.WindowStatus{
		Used: 30, Limit: 100, Remaining: 70, StartedAt: metav1.NewMicroTime(now.Add(-time.Hour)), ResetsAt: metav1.NewMicroTime(now.Add(time.Hour)), MeasuredAt: metav1.NewTime(now),
	}
	if diff := cmp.Diff(want, of(func(*v1alpha1.Limit) {})); diff != "" {
		t.Errorf("window (-want +got):\n%s", diff)
	}
	open.Open.Used = 130
	if got := of(func(*v1alpha1.Limit) {}); got.Used != 130 || got.Remaining != 0 {
		t.Errorf("used beyond the limit: %+v", got)
	}
	if got := of(func(l *v1alpha1.Limit) { l.Algorithm = v1alpha1.GCRAAlgorithm }); got != nil {
		t.Errorf("a bucket has window %+v", got)
	}
	if got := of(func(l *v1alpha1.Limit) { l.BudgetRef = &v1alpha1.BudgetReference{Name: "world"} }); got != nil {
		t.Errorf("what all clusters use has window %+v", got)
	}
}

func TestTheWindowColumnIsOfTheLimitWithTheLeastLeft(t *testing.T) {
	of := func(used, limit int64) v1alpha1.LimitStatus {
		return v1alpha1.LimitStatus{Window: &v1alpha1.WindowStatus{Used: used, Limit: limit, Remaining: max(0, limit-used)}}
	}
	for want, limits := range map[string][]v1alpha1.LimitStatus{
		"-":      {{}},
		"90/100": {of(10, 20), of(90, 100), {}},
		"11/10":  {of(9, 10), of(11, 10)},
		"0/1000": {of(0, 1000)},
		"5/10":   {of(5, 10), of(400, 1000)},
	} {
		if got := windowColumn(limits); got != want {
			t.Errorf("column is %q, want %q", got, want)
		}
	}
}
