package v1alpha1_test

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	weirv1alpha1 "github.com/weir-dev/weir/api/v1alpha1"
)

func TestColumnsOfANewBudgetShowNoFigure(t *testing.T) {
	budget := newBudget(t, budgetWith(`allocation: Static`))
	if err := server.Create(t.Context(), budget); err != nil {
		t.Fatal(err)
	}
	want := []column{
		{"Limit", "-"},
		{"Members", "-"},
		{"Granted", "-"},
		{"Used", "-"},
		{"Overshoot", "-"},
		{"Unused", "-"},
		{"Root", "-"},
		{"Connected", "Unknown"},
	}
	wantWide := []column{
		{"Accepted", "Unknown"},
		{"ID", "acme/checkout"},
		{"Self", "<none>"},
		{"Allocation", "Static"},
		{"InBound", "<none>"},
		{"Learning", "<none>"},
		{"Units/Lease", "-"},
	}
	compareColumns(t, budget, want, wantWide)
}

func TestColumnsOfAMeasuredBudget(t *testing.T) {
	budget := newBudget(t, budgetWith(``))
	if err := server.Create(t.Context(), budget); err != nil {
		t.Fatal(err)
	}
	writeStatus(t, budget, measuredBudget())
	want := []column{
		{"Limit", "100k/1s"},
		{"Members", "1/2"},
		{"Granted", "97%"},
		{"Used", "91%"},
		{"Overshoot", "0 ≤ 0"},
		{"Unused", "0.9%"},
		{"Root", "us-east"},
		{"Connected", "True"},
	}
	wantWide := []column{
		{"Accepted", "True"},
		{"ID", "acme/checkout"},
		{"Self", "eu-west"},
		{"Allocation", "FairShare"},
		{"InBound", "False"},
		{"Learning", "True"},
		{"Units/Lease", "161.3"},
	}
	compareColumns(t, budget, want, wantWide)
}

// measuredBudget returns a status with every field set.
func measuredBudget() weirv1alpha1.FederatedBudgetStatus {
	second := metav1.NewTime(time.Unix(1_800_000_000, 0))
	micro := metav1.NewMicroTime(time.UnixMicro(1_800_000_000_100_000))
	condition := func(kind string, status metav1.ConditionStatus, reason string) metav1.Condition {
		return metav1.Condition{Type: kind, Status: status, Reason: reason, ObservedGeneration: 1, LastTransitionTime: second}
	}
	return weirv1alpha1.FederatedBudgetStatus{
		ObservedGeneration: 1,
		Conditions: []metav1.Condition{
			condition(weirv1alpha1.AcceptedCondition, metav1.ConditionTrue, weirv1alpha1.AcceptedReason),
			condition(weirv1alpha1.ConnectedCondition, metav1.ConditionTrue, weirv1alpha1.ConnectedReason),
			condition(weirv1alpha1.LearningCondition, metav1.ConditionTrue, weirv1alpha1.AmnesiaReason),
			condition(weirv1alpha1.WithinBoundCondition, metav1.ConditionFalse, weirv1alpha1.BoundExceededReason),
		},
		MeasuredAt: &second,
		Self:       "eu-west",
		Root:       &weirv1alpha1.BudgetRoot{Member: "us-east", Address: "hub.example.com:15040", Term: 7, Since: &micro, State: weirv1alpha1.RootLearning},
		Allocation: &weirv1alpha1.BudgetDivision{Window: micro, Limit: 100_000, Granted: 97_000, Kept: 2000, Unallocated: 1000},
		Members: []weirv1alpha1.BudgetMemberStatus{
			{Name: "eu-west", State: weirv1alpha1.MemberConnected, Granted: new(int64(97_000)), Wanted: new(int64(120_000)), Slice: new(int64(0)), Used: new(int64(91_000)), LastSeenTime: &second},
			{Name: "us-east", State: weirv1alpha1.MemberNever},
		},
		Coordination:     &weirv1alpha1.BudgetCoordination{LeasesPerSecond: "12.5", UnitsPerLease: "161.3"},
		WindowEnd:        &micro,
		Overshoot:        &weirv1alpha1.Overshoot{Bound: new(int64(0)), Observed: new(int64(0)), Worst: new(int64(3)), WorstTime: &micro},
		UnderUtilization: &weirv1alpha1.UnderUtilization{ObservedBasisPoints: new(int32(90)), WorstBasisPoints: new(int32(10000))},
		AdditionalRates: []weirv1alpha1.BudgetRateStatus{{
			Rate: "10k/24h", Allocation: &weirv1alpha1.BudgetDivision{Window: micro, Limit: 10_000, Granted: 9000, Kept: 200, Unallocated: 800}, WindowEnd: &micro,
			Overshoot:        &weirv1alpha1.Overshoot{Bound: new(int64(0)), Observed: new(int64(0)), Worst: new(int64(0))},
			UnderUtilization: &weirv1alpha1.UnderUtilization{ObservedBasisPoints: new(int32(0)), WorstBasisPoints: new(int32(0))},
		}},
		Summary: weirv1alpha1.BudgetSummary{
			Limit: "100k/1s", Members: "1/2", Granted: "97%", Used: "91%", Overshoot: "0 ≤ 0", Unused: "0.9%", Root: "us-east", UnitsPerLease: "161.3",
		},
	}
}
