package v1alpha1_test

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	weirv1alpha1 "github.com/weir-dev/weir/api/v1alpha1"
)

func TestColumnsOfANewPoolShowNoFigure(t *testing.T) {
	pool := newPool(t, poolWith(`mode: Shadow`))
	if err := server.Create(t.Context(), pool); err != nil {
		t.Fatal(err)
	}
	want := []column{
		{"Mode", "Shadow"},
		{"Pods", "-"},
		{"Limit", "-"},
		{"InFlight", "-"},
		{"Overshoot", "-"},
		{"Unused", "-"},
		{"Latency", "-"},
		{"Saturated", "-"},
		{"Programmed", "Unknown"},
	}
	wantWide := []column{
		{"Accepted", "Unknown"},
		{"Algorithm", "Gradient2"},
		{"InBound", "<none>"},
		{"Coordinator", "Controller"},
		{"Reachable", "<none>"},
	}
	compareColumns(t, pool, want, wantWide)
}

func TestColumnsOfAMeasuredPool(t *testing.T) {
	pool := newPool(t, poolWith(`algorithm: {type: AIMD}`))
	if err := server.Create(t.Context(), pool); err != nil {
		t.Fatal(err)
	}
	writeStatus(t, pool, measuredPool())
	want := []column{
		{"Mode", "Enforce"},
		{"Pods", "12/12"},
		{"Limit", "412"},
		{"InFlight", "380"},
		{"Overshoot", "0 ≤ 0"},
		{"Unused", "1.2%"},
		{"Latency", "26ms/21ms"},
		{"Saturated", "AtLimit"},
		{"Programmed", "True"},
	}
	wantWide := []column{
		{"Accepted", "True"},
		{"Algorithm", "AIMD"},
		{"InBound", "False"},
		{"Coordinator", "Controller"},
		{"Reachable", "True"},
	}
	compareColumns(t, pool, want, wantWide)
}

// measuredPool returns a status with every field set.
func measuredPool() weirv1alpha1.ConcurrencyPoolStatus {
	second := metav1.NewTime(time.Unix(1_800_000_000, 0))
	micro := metav1.NewMicroTime(time.UnixMicro(1_800_000_000_100_000))
	condition := func(kind string, status metav1.ConditionStatus, reason string) metav1.Condition {
		return metav1.Condition{Type: kind, Status: status, Reason: reason, ObservedGeneration: 1, LastTransitionTime: second}
	}
	return weirv1alpha1.ConcurrencyPoolStatus{
		ObservedGeneration: 1,
		Conditions: []metav1.Condition{
			condition(weirv1alpha1.AcceptedCondition, metav1.ConditionTrue, weirv1alpha1.AcceptedReason),
			condition(weirv1alpha1.ProgrammedCondition, metav1.ConditionTrue, weirv1alpha1.ProgrammedReason),
			condition(weirv1alpha1.WithinBoundCondition, metav1.ConditionFalse, weirv1alpha1.BoundExceededReason),
			condition(weirv1alpha1.CoordinatorReachableCondition, metav1.ConditionTrue, weirv1alpha1.QuarantinedReason),
			condition(weirv1alpha1.SaturatedCondition, metav1.ConditionTrue, weirv1alpha1.AtLimitReason),
		},
		MeasuredAt:        &second,
		Enforcement:       &weirv1alpha1.Enforcement{Desired: 12, Current: 12},
		Limit:             &weirv1alpha1.PoolLimitStatus{Current: 412, FixedBy: weirv1alpha1.FixedByAlgorithm, Reason: "The median of 12 pods infers 412."},
		InFlight:          new(int64(380)),
		Granted:           new(int64(405)),
		Queued:            new(int64(0)),
		Holders:           new(int32(13)),
		Fenced:            new(int32(1)),
		AdmittedPerSecond: new(int64(912)),
		RejectedPerSecond: new(int64(41)),
		Latency:           &weirv1alpha1.PoolLatency{BaselineMicroseconds: new(int64(21000)), CurrentMicroseconds: new(int64(26000))},
		Overshoot:         &weirv1alpha1.Overshoot{Bound: new(int64(0)), Observed: new(int64(0)), Worst: new(int64(3)), WorstTime: &micro},
		UnderUtilization:  &weirv1alpha1.UnderUtilization{ObservedBasisPoints: new(int32(120)), WorstBasisPoints: new(int32(10000))},
		Partitions: []weirv1alpha1.PartitionStatus{
			{Name: "live", Guaranteed: new(int64(329)), InFlight: new(int64(300)), RejectedPerSecond: new(int64(0))},
		},
		Shares: []weirv1alpha1.PodShare{
			{Pod: "checkout-0", Share: 35, InFlight: 36, Inferred: new(int64(412))},
			{Pod: "checkout-1", Fenced: true},
		},
		Summary: weirv1alpha1.PoolSummary{
			Pods: "12/12", Limit: "412", InFlight: "380", Overshoot: "0 ≤ 0", Unused: "1.2%", Latency: "26ms/21ms", Saturated: "AtLimit",
		},
	}
}
