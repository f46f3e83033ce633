package controllers

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/weir-dev/weir/api/v1alpha1"
	"github.com/weir-dev/weir/internal/controlplane/audit"
	"github.com/weir-dev/weir/internal/controlplane/audit/budgetaudit"
	"github.com/weir-dev/weir/internal/controlplane/budget"
	"github.com/weir-dev/weir/internal/controlplane/condition"
	"github.com/weir-dev/weir/internal/testing/fieldtest"
	"github.com/weir-dev/weir/pkg/limiter"
	"github.com/weir-dev/weir/pkg/policy"
)

// byKey gives the budget a key.
func byKey(s *budgetScope) {
	s.enforced.Params.Keys = 1000
	s.observation.Keys = budget.Keys{InCluster: 30, InUse: 50}
}

func full(s *budgetScope) { s.observation.Keys.Full = true }

// TestStatusOfABudgetWithAKey has nothing that is of one counter.
func TestStatusOfABudgetWithAKey(t *testing.T) {
	got := budgetStatusOf(newBudgetScope(byKey, func(s *budgetScope) {
		s.enforced.Params.Slices, s.observation.Ledger.Standings[1].Slice = true, 20
	}))
	got.Conditions = nil
	second := func(ago int) *metav1.Time { return &metav1.Time{Time: time.Unix(now.Unix()-int64(ago), 0)} }
	want := v1alpha1.FederatedBudgetStatus{
		ObservedGeneration: generation,
		MeasuredAt:         &metav1.Time{Time: now},
		Self:               "eu-west",
		Root:               &v1alpha1.BudgetRoot{Member: "eu-west", Term: 7, Since: microTime(now.Add(-time.Hour)), State: v1alpha1.RootLeading},
		Members: []v1alpha1.BudgetMemberStatus{
			{Name: "eu-west", State: v1alpha1.MemberConnected, Slice: new(int64(0)), LastSeenTime: second(0)},
			{Name: "us-east", State: v1alpha1.MemberConnected, Slice: new(int64(20)), LastSeenTime: second(1)},
		},
		Keys:             &v1alpha1.BudgetKeysStatus{InUse: new(int64(50)), InCluster: 30},
		Coordination:     &v1alpha1.BudgetCoordination{LeasesPerSecond: "4.2", UnitsPerLease: "12.5"},
		WindowEnd:        microTime(now),
		Overshoot:        &v1alpha1.Overshoot{Observed: new(int64(0)), Bound: new(int64(0)), Worst: new(int64(0))},
		UnderUtilization: &v1alpha1.UnderUtilization{ObservedBasisPoints: new(int32(300)), WorstBasisPoints: new(int32(800))},
		Summary: v1alpha1.BudgetSummary{
			Limit: "100/1s", Members: "2/2", Granted: "-", Used: "-", Overshoot: "0 ≤ 0", Unused: "3.0%", Root: "eu-west", UnitsPerLease: "12.5",
		},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("status (-want +got):\n%s", diff)
	}
}

func TestEveryFigureOfKeysIsShown(t *testing.T) {
	in, none := &budget.Keys{InCluster: 1, InUse: 2, Full: true}, &budget.Keys{}
	fieldtest.Matter(t, []*budget.Keys{in, none}, func(k *budget.Keys) (any, error) {
		s := newBudgetScope(byKey, func(s *budgetScope) { s.observation.Keys = *k })
		return []any{budgetStatusOf(s).Keys, meta.FindStatusCondition(budgetConditionsOf(s), v1alpha1.KeysFullCondition) != nil}, nil
	})
}

func TestConditionsOfABudgetWithAKey(t *testing.T) {
	exceeded := counted(func(f *budgetaudit.Figures) {
		f.Verdict = audit.Exceeded
		f.Overshoot = &budgetaudit.Overshoot{WindowEnd: now, Worst: 3, WorstEnd: now}
	})
	for name, tc := range map[string]struct {
		s    *budgetScope
		kind string
		want *metav1.Condition // nil: it is not there
	}{
		"there is room": {newBudgetScope(byKey), "KeysFull", nil},
		"there is no room": {newBudgetScope(byKey, full), "KeysFull", new(condition.True("KeysFull", "NoRoom",
			"more values of the key were in demand in a window than maxKeys of the hub's object, so those that came later share limits, one for each 8 of maxKeys, until the window is over: "+
				"where clients choose the values, let the policies put a limit by ClientIP before it; otherwise raise key.maxKeys"))},
		"a value had too much": {newBudgetScope(byKey, exceeded), "WithinBound", new(condition.False("WithinBound", "BoundExceeded",
			"all members together admitted 3 too many of a value of the key in the window that ended at 2026-11-20T10:15:00.000Z; "+
				"make sure that rate.limit is the same in every cluster, and that the id acme/world is kept by one coordinator only"))},
		"a hub measures": {newBudgetScope(byKey, ofHub), "WithinBound", new(condition.True("WithinBound", "Measured", "no measured window exceeded the limit; worst overshoot 0"))},
		"a server does not measure": {newBudgetScope(byKey, inRedis), "WithinBound", new(condition.Unknown("WithinBound", "ReportsMissing",
			"only a hub measures the values of a key, and Redis at redis:6379 keeps them: WithinBound of the policies is of this cluster"))},
		"a slice of each value": {newBudgetScope(byKey, ofHub, cutOff(budget.Partitioned, ""), outage(policy.BudgetNominal, 30)), "Connected", new(condition.False("Connected", "Partitioned",
			"the hub us-east at hub.example:15040 does not answer, since 2026-11-20T10:14:00Z; "+
				"meanwhile this cluster admits 30 per 1s of each value of the key, its slice, without asking (Nominal); "+
				"make sure that the controllers of this cluster reach hub.example:15040, and that the hub's leading controller runs"))},
	} {
		t.Run(name, func(t *testing.T) {
			got := meta.FindStatusCondition(budgetConditionsOf(tc.s), tc.kind)
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("condition %s (-want +got):\n%s", tc.kind, diff)
			}
		})
	}
}

// TestAPolicyIsSentAgainWhenTheKeyOfItsBudgetChanges: its pods count by it.
func TestAPolicyIsSentAgainWhenTheKeyOfItsBudgetChanges(t *testing.T) {
	of := func(key *policy.Key, overrides ...policy.Override) string {
		return fingerprint(newScope(func(s *scope) {
			s.enforced.Limits = []policy.Limit{{Name: "all", Budget: &policy.BudgetRef{ID: "acme/world", Name: "world"}, Key: key, Overrides: overrides}}
		}))
	}
	path := policy.Key{Parts: []policy.KeyPart{{Type: policy.PathKey}}, OnMissing: policy.Shared, MaxKeys: 10}
	seen := map[string]bool{of(nil): true, of(&path): true}
	for _, change := range []func(*policy.Key){
		func(k *policy.Key) { k.Parts = []policy.KeyPart{{Type: policy.HostKey}} },
		func(k *policy.Key) { k.OnMissing = policy.Skip },
		func(k *policy.Key) { k.MaxKeys++ },
	} {
		other := path
		change(&other)
		seen[of(&other)] = true
	}
	for _, o := range []policy.Override{
		{Values: []policy.Value{{"/a b"}}, Rates: []limiter.Rate{{Limit: 1, Window: 1}}},
		{Values: []policy.Value{{"/a", "b"}}, Rates: []limiter.Rate{{Limit: 1, Window: 1}}},
		{Values: []policy.Value{{"/a b"}}, Rates: []limiter.Rate{{Limit: 2, Window: 1}}},
	} {
		seen[of(&path, o)] = true
	}
	if len(seen) != 8 {
		t.Errorf("8 keys have %d fingerprints", len(seen))
	}
}
