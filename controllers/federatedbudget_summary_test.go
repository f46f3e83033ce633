package controllers

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-dev/weir/api/v1alpha1"
	"github.com/weir-dev/weir/internal/controlplane/audit"
	"github.com/weir-dev/weir/internal/controlplane/budget"
	"github.com/weir-dev/weir/pkg/federation/ledger"
)

func TestSummaryOfABudget(t *testing.T) {
	dashes := v1alpha1.BudgetSummary{
		Limit: "100/1s", Members: "-", Granted: "-", Used: "-", Overshoot: "-", Unused: "-", Root: "-", UnitsPerLease: "-",
	}
	with := func(change func(*v1alpha1.BudgetSummary)) v1alpha1.BudgetSummary {
		s := dashes
		change(&s)
		return s
	}
	tests := map[string]struct {
		scope *budgetScope
		want  v1alpha1.BudgetSummary
	}{
		"a budget that is not accepted": {newBudgetScope(unheardOf, func(s *budgetScope) { s.cluster = "ap-south" }), dashes},
		"an unknown budget": {
			newBudgetScope(unheardOf, ofHub, func(s *budgetScope) { s.observation.Root.Member = "" }),
			with(func(s *v1alpha1.BudgetSummary) { s.Root = "hub.example:15040" }),
		},
		"a budget in Redis": {newBudgetScope(unheardOf, inRedis), with(func(s *v1alpha1.BudgetSummary) { s.Root = "Redis" })},
		"a budget that was exceeded": {
			newBudgetScope(func(s *budgetScope) {
				s.budget.Spec.Rate = v1alpha1.BudgetRate{Limit: 100_000, Window: "1m"}
				f := &s.observation.Figures
				f.Verdict, f.Overshoot.Observed, f.UnitsPerLease = audit.Exceeded, 3, 0
				f.Window.Granted, f.Window.Usage = 103, []ledger.MemberUsage{{Member: "eu-west", Admitted: 103}}
			}),
			v1alpha1.BudgetSummary{
				Limit: "100k/1m", Members: "2/2", Granted: "103%", Used: "103%", Overshoot: "3 > 0", Unused: "3.0%", Root: "eu-west", UnitsPerLease: "-",
			},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, budgetStatusOf(tc.scope).Summary); diff != "" {
				t.Errorf("summary (-want +got):\n%s", diff)
			}
		})
	}
}

func TestThousands(t *testing.T) {
	for n, want := range map[int64]string{
		0: "0", 300: "300", 1000: "1k", 1500: "1500", 100_000: "100k", 2_500_000: "2500k", 3_000_000: "3M", 1_000_000_000_000: "1T", 5_000_000_000_000_000: "5000T",
	} {
		if got := thousands(n); got != want {
			t.Errorf("thousands(%d) = %s, want %s", n, got, want)
		}
	}
}

func TestPartsOfALimit(t *testing.T) {
	for part, want := range map[int64]string{0: "0%", 1: "<1%", 9: "<1%", 10: "1%", 999: "99%", 1000: "100%"} {
		if got := partColumn(&ledger.Closed{Limit: 1000, Granted: part}, func(w *ledger.Closed) int64 { return w.Granted }); got != want {
			t.Errorf("%d of 1000 is %s, want %s", part, got, want)
		}
	}
}

// TestAColumnMarksTheRateWhoseFiguresAreOld, and no other.
func TestAColumnMarksTheRateWhoseFiguresAreOld(t *testing.T) {
	got := budgetStatusOf(newBudgetScope(withRates, further(0, func(o *budget.Observation) { o.Figures.Verdict = audit.ReportsMissing }))).Summary
	if got.Used != "91%, 25% ?, 25%" || got.Overshoot != "0 ≤ 0, 0 ≤ 0 ?, 0 ≤ 0" || got.Unused != "3.0%, 3.0% ?, 3.0%" {
		t.Errorf("columns %+v", got)
	}
}

// TestColumnsOfManyRatesFit into what the API takes.
func TestColumnsOfManyRatesFit(t *testing.T) {
	s := newBudgetScope(withRates)
	s.budget.Spec.Rate = v1alpha1.BudgetRate{Limit: 9_999_999_999_999, Window: "1h59m59s999ms"}
	s.budget.Spec.AdditionalRates[0] = v1alpha1.BudgetRate{Limit: 999_999_999_999, Window: "743h59m59s999ms"}
	if got, want := budgetStatusOf(s).Summary.Limit, "9999999999999/1h59m59s999ms, 600/1m …"; got != want {
		t.Errorf("limit %q, want %q", got, want)
	}
}
