package controllers

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/weir-dev/weir/api/v1alpha1"
	"github.com/weir-dev/weir/internal/controlplane/audit"
	"github.com/weir-dev/weir/internal/controlplane/budget"
	"github.com/weir-dev/weir/pkg/federation/ledger"
	"github.com/weir-dev/weir/pkg/limiter"
)

// withRates adds rates of 10,000 in a day and 600 in a minute to a budget. The same is known of them as of
// the first but for their limits.
func withRates(s *budgetScope) {
	s.budget.Spec.AdditionalRates = []v1alpha1.BudgetRate{{Limit: 10000, Window: "24h"}, {Limit: 600, Window: "1m"}}
	for _, r := range []limiter.Rate{{Limit: 600, Window: 60 * limiter.Second}, {Limit: 10000, Window: limiter.Day}} {
		p := s.enforced.Params
		p.Limit, p.Window = r.Limit, r.Window
		s.enforced.Additional = append(s.enforced.Additional, p)
		s.enforced.Params.Others = append(s.enforced.Params.Others, r.Window)
		o := *newBudgetScope().observation.Ledger
		o.Window, o.Limit, o.Index = r.Window, r.Limit, openWindow*int64(limiter.Second)/int64(r.Window)
		closed := ledger.Closed{Index: o.Index - 1, Limit: r.Limit, Granted: r.Limit / 2, Usage: []ledger.MemberUsage{
			{Member: "eu-west", Admitted: r.Limit / 4, Reported: true, Complete: true},
		}}
		seen := s.observation
		seen.Further, seen.Ledger, seen.Figures.Window = nil, &o, &closed
		over := *s.observation.Figures.Overshoot
		seen.Figures.Overshoot = &over
		s.observation.Further = append(s.observation.Further, seen)
	}
}

// further changes what is known of a further rate.
func further(i int, change func(*budget.Observation)) func(*budgetScope) {
	return func(s *budgetScope) { change(&s.observation.Further[i]) }
}

func TestStatusOfSeveralRates(t *testing.T) {
	got := budgetStatusOf(newBudgetScope(withRates, further(1, func(o *budget.Observation) { o.Figures.Overshoot.Observed = 3 })))
	want := v1alpha1.BudgetSummary{
		Limit: "100/1s, 600/1m, 10k/24h", Members: "2/2", Granted: "97%, 50%, 50%", Used: "91%, 25%, 25%", Overshoot: "0 ≤ 0, 0 ≤ 0, 3 > 0",
		Unused: "3.0%, 3.0%, 3.0%", Root: "eu-west", UnitsPerLease: "12.5",
	}
	if diff := cmp.Diff(want, got.Summary); diff != "" {
		t.Errorf("summary (-want +got):\n%s", diff)
	}
	if len(got.AdditionalRates) != 2 {
		t.Fatalf("additional rates %+v", got.AdditionalRates)
	}
	day := got.AdditionalRates[1]
	if day.Rate != "10k/24h" || day.Allocation == nil || day.Allocation.Limit != 10000 || *day.Overshoot.Observed != 3 || *got.AdditionalRates[0].Overshoot.Observed != 0 || day.UnderUtilization == nil || day.WindowEnd == nil {
		t.Errorf("of the day %+v", day)
	}
	if got.Allocation.Limit != 100 || *got.Overshoot.Observed != 0 {
		t.Errorf("of the first rate %+v, %+v", got.Allocation, got.Overshoot)
	}
}

// TestConditionsAreThoseOfTheWorstRate, and name it.
func TestConditionsAreThoseOfTheWorstRate(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(*budgetScope)
		kind   string
		status metav1.ConditionStatus
		says   string
	}{
		"all are well": {func(*budgetScope) {}, v1alpha1.WithinBoundCondition, metav1.ConditionTrue, "no measured window exceeded the limit; worst overshoot 0"},
		"one is exceeded": {
			further(1, func(o *budget.Observation) { o.Figures.Verdict, o.Figures.Overshoot.Worst = audit.Exceeded, 3 }),
			v1alpha1.WithinBoundCondition, metav1.ConditionFalse, "of 10k/24h: all members together admitted 3 too many",
		},
		"one is exceeded, and another unknown": {
			func(s *budgetScope) {
				s.observation.Further[0].Figures.Verdict = audit.Starting
				s.observation.Further[1].Figures.Verdict = audit.Exceeded
			},
			v1alpha1.WithinBoundCondition, metav1.ConditionFalse, "of 10k/24h: ",
		},
		"the first is exceeded": {func(s *budgetScope) { s.observation.Figures.Verdict = audit.Exceeded }, v1alpha1.WithinBoundCondition, metav1.ConditionFalse, "of 100/1s: "},
		"one was not measured":  {further(1, func(o *budget.Observation) { o.Figures.Verdict = audit.Starting }), v1alpha1.WithinBoundCondition, metav1.ConditionUnknown, "of 10k/24h: " + notMeasured},
		"one is not served":     {further(0, func(o *budget.Observation) { o.Link = budget.Link{Problem: budget.UnknownBudget} }), v1alpha1.ConnectedCondition, metav1.ConditionFalse, "of 600/1m: "},
		"none is not served":    {func(*budgetScope) {}, v1alpha1.ConnectedCondition, metav1.ConditionTrue, "this cluster keeps the budget for all members"},
		"the hub has another limit of one": {
			func(s *budgetScope) {
				ofHub(s)
				s.enforced.Additional[1].Limit = 9000
			},
			v1alpha1.ConnectedCondition, metav1.ConditionTrue,
			"the hub us-east at hub.example:15040 keeps the budget and grants this cluster its part; it counts by a limit of 10000 per 24h, and this object says 9000 per 24h: what the hub's object says counts, so make the limit in additionalRates here the same",
		},
		"one has just been begun": {further(0, func(o *budget.Observation) { *o = budget.Observation{} }), v1alpha1.ConnectedCondition, metav1.ConditionUnknown, "of 600/1m: this controller has not begun"},
		"the memory of one is younger": {
			further(1, func(o *budget.Observation) { o.Learning = now.Add(time.Hour) }), v1alpha1.LearningCondition, metav1.ConditionTrue, "of 10k/24h: the ledger's memory is younger",
		},
		"one has no room": {further(0, func(o *budget.Observation) { o.Keys.Full = true }), v1alpha1.KeysFullCondition, metav1.ConditionTrue, "more values of the key were in demand"},
		"a member draws without it": {
			further(1, func(o *budget.Observation) { o.Ledger.Standings = o.Ledger.Standings[:1] }),
			v1alpha1.WithinBoundCondition, metav1.ConditionUnknown, "of 10k/24h: these members draw from the budget without this rate, so what they admit is not counted: us-east; make additionalRates the same in every cluster",
		},
		"a member drew with it long ago": {
			func(s *budgetScope) {
				last := &s.observation.Further[1].Ledger.Standings[1]
				last.Seen = s.observation.Read.Add(-budget.SilentAfter - 1)
			},
			v1alpha1.WithinBoundCondition, metav1.ConditionUnknown, "of 10k/24h: these members draw from the budget without this rate, so what they admit is not counted: us-east; ",
		},
		"this cluster has not drawn from it yet": {
			further(1, func(o *budget.Observation) { o.Ledger.Standings = o.Ledger.Standings[1:] }),
			v1alpha1.WithinBoundCondition, metav1.ConditionTrue, "no measured window exceeded the limit; worst overshoot 0",
		},
		"a member has drawn from none": {
			func(s *budgetScope) {
				s.observation.Ledger.Standings = s.observation.Ledger.Standings[:1]
				s.observation.Further[1].Ledger.Standings = s.observation.Further[1].Ledger.Standings[:1]
			},
			v1alpha1.WithinBoundCondition, metav1.ConditionTrue, "no measured window exceeded the limit; worst overshoot 0",
		},
		"members of a budget with a key draw from values": {
			func(s *budgetScope) {
				keyedRates(s)
				s.observation.Further[1].Ledger.Standings = nil
			},
			v1alpha1.WithinBoundCondition, metav1.ConditionTrue, "no measured window exceeded the limit; worst overshoot 0",
		},
		"two are exceeded": {
			func(s *budgetScope) {
				for i := range s.observation.Further {
					s.observation.Further[i].Figures.Verdict = audit.Exceeded
				}
			},
			v1alpha1.WithinBoundCondition, metav1.ConditionFalse, "of 600/1m: all members",
		},
		"one is known under another generation": {
			further(1, func(o *budget.Observation) { o.Generation-- }), v1alpha1.ConnectedCondition, metav1.ConditionUnknown, "of 10k/24h: this controller has not begun",
		},
		"nothing is known of one": {
			func(s *budgetScope) { s.observation.Further = s.observation.Further[:1] },
			v1alpha1.ConnectedCondition, metav1.ConditionUnknown, "of 10k/24h: this controller has not begun",
		},
		"a member drew without it long ago": {
			func(s *budgetScope) {
				s.observation.Further[1].Ledger.Standings = s.observation.Further[1].Ledger.Standings[:1]
				s.observation.Ledger.Standings[1].Seen = s.observation.Read.Add(-budget.SilentAfter - 1)
			},
			v1alpha1.WithinBoundCondition, metav1.ConditionTrue, "no measured window",
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := meta.FindStatusCondition(budgetConditionsOf(newBudgetScope(withRates, tc.change)), tc.kind)
			if c == nil || c.Status != tc.status || !strings.HasPrefix(c.Message, tc.says) {
				t.Errorf("condition %+v, want %s that says %q", c, tc.status, tc.says)
			}
		})
	}
}

// keyedRates gives each value of a key the rates.
func keyedRates(s *budgetScope) {
	byKey(s)
	for i := range s.enforced.Additional {
		s.enforced.Additional[i].Keys = s.enforced.Params.Keys
	}
}

// TestConditionsOfOneRateDoNotNameIt.
func TestConditionsOfOneRateDoNotNameIt(t *testing.T) {
	exceeded := func(s *budgetScope) { s.observation.Figures.Verdict = audit.Exceeded }
	if c := meta.FindStatusCondition(budgetConditionsOf(newBudgetScope(exceeded)), v1alpha1.WithinBoundCondition); !strings.HasPrefix(c.Message, "all members together") {
		t.Errorf("condition %+v", c)
	}
}

// TestStatusOfRatesWithAKey has nothing that is of one counter.
func TestStatusOfRatesWithAKey(t *testing.T) {
	got := budgetStatusOf(newBudgetScope(withRates, keyedRates))
	if got.Summary.Granted != v1alpha1.NotMeasured || got.Summary.Overshoot != "0 ≤ 0, 0 ≤ 0, 0 ≤ 0" {
		t.Errorf("summary %+v", got.Summary)
	}
	for _, r := range got.AdditionalRates {
		if r.Allocation != nil || r.WindowEnd == nil {
			t.Errorf("of %s %+v", r.Rate, r)
		}
	}
}

// TestFiguresOfRatesChange the status when they are of another amount, and not when they are of another window.
func TestFiguresOfRatesChange(t *testing.T) {
	have := budgetStatusOf(newBudgetScope(withRates))
	later := budgetStatusOf(newBudgetScope(withRates, further(1, func(o *budget.Observation) { o.Figures.Overshoot.WindowEnd = now.Add(time.Second) })))
	if budgetFiguresDiffer(&have, &later) {
		t.Error("a later window with the same figures is a change")
	}
	other := budgetStatusOf(newBudgetScope(withRates, further(1, func(o *budget.Observation) { o.Figures.Overshoot.Observed = 1 })))
	if !budgetFiguresDiffer(&have, &other) {
		t.Error("other figures are not a change")
	}
}
