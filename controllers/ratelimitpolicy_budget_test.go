package controllers

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"github.com/weir-dev/weir/api/v1alpha1"
	"github.com/weir-dev/weir/internal/controlplane/condition"
	"github.com/weir-dev/weir/pkg/limiter"
	"github.com/weir-dev/weir/pkg/policy"
)

// federated makes a policy's only limit one that draws from a budget of 300 per second.
func federated(g v1alpha1.Guarantee, err error) func(*scope) {
	return func(s *scope) {
		s.policy.Spec.Limits = []v1alpha1.Limit{{Name: "all", Scope: v1alpha1.FederatedScope, BudgetRef: &v1alpha1.BudgetReference{Name: "world"}}}
		s.enforced.Limits = []policy.Limit{{Name: "all", Budget: &policy.BudgetRef{ID: "acme/world", Name: "world"}}}
		s.budgets = []drawn{{name: "world", rates: []v1alpha1.BudgetRate{{Limit: 300, Window: "1s"}}, guarantee: g, err: err}}
	}
}

var ofAHub = v1alpha1.Guarantee{Grade: v1alpha1.HardGuarantee, Reason: "set aside before"}

// A cluster's own figures are a part of the budget's: what it left may be used up.
func TestALimitThatDrawsFromABudget(t *testing.T) {
	s := newScope(federated(ofAHub, nil), figures("all", measuredFigures(0, 0, 6000)))
	got := statusOf(s)
	limit := got.Limits[0]
	if limit.Rates != "300/1s federated" || got.Summary.Limits != "300/1s federated" {
		t.Errorf("rates are %q and %q", limit.Rates, got.Summary.Limits)
	}
	if limit.UnderUtilization != nil || got.Summary.Unused != "-" {
		t.Errorf("what one cluster left is shown as unused: %+v, %s", limit.UnderUtilization, got.Summary.Unused)
	}
	if limit.Overshoot == nil || *limit.Overshoot.Bound != 0 || got.Summary.Overshoot != "0 ≤ 0" {
		t.Errorf("what one cluster admitted is not held against the whole limit: %+v", limit.Overshoot)
	}
	for _, c := range conditionsOf(s) {
		switch c.Type {
		case v1alpha1.WithinBoundCondition:
			want := condition.True(c.Type, "Measured", "no measured window exceeded its bound; worst overshoot 0; what all clusters together admitted is in the status of FederatedBudget world")
			if diff := cmp.Diff(want, c); diff != "" {
				t.Errorf("condition (-want +got):\n%s", diff)
			}
		case v1alpha1.StoreReachableCondition:
			want := condition.True(c.Type, "Reachable", "the leading controller keeps the counters, which leases what they hand on from FederatedBudget world")
			if diff := cmp.Diff(want, c); diff != "" {
				t.Errorf("condition (-want +got):\n%s", diff)
			}
		}
	}
}

func TestAPolicyWithoutItsBudget(t *testing.T) {
	s := newScope(federated(ofAHub, nil), func(s *scope) { s.unmet, s.budgets = errors.New("there is no FederatedBudget shop/world"), nil })
	got := conditionsOf(s)
	const missing = "there is no FederatedBudget shop/world; until then pods enforce what they were sent before, if anything"
	want := []metav1.Condition{condition.False("Accepted", "BudgetNotFound", missing), condition.False("Ready", "BudgetNotFound", missing)}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("conditions (-want +got):\n%s", diff)
	}
	if status := statusOf(s); status.Enforcement != nil || status.Guarantee != nil || status.Summary.Limits != "-" {
		t.Errorf("a policy that nobody enforces has %+v", status)
	}
	if s.again() != 0 {
		t.Error("there are figures to come of a policy that nobody enforces")
	}
}

// The grade of a policy is the weakest of those that its counters rest on.
func TestTheGuaranteeFollowsTheBudget(t *testing.T) {
	const own = "a controller that takes over grants nothing from windows whose grants it may not know"
	weak := v1alpha1.Guarantee{Grade: v1alpha1.HardExceptSplitBrainGuarantee, Reason: "2 replicas"}
	tests := map[string]struct {
		scope *scope
		want  *v1alpha1.Guarantee
	}{
		"a hub": {newScope(federated(ofAHub, nil)), &v1alpha1.Guarantee{Grade: v1alpha1.HardGuarantee, Reason: own + "; of FederatedBudget world: set aside before"}},
		"a replicated server": {
			newScope(federated(weak, nil)), &v1alpha1.Guarantee{Grade: v1alpha1.HardExceptSplitBrainGuarantee, Reason: own + "; of FederatedBudget world: 2 replicas"},
		},
		"a server that cannot be asked": {newScope(federated(v1alpha1.Guarantee{}, errors.New("no route"))), nil},
		"requests that are admitted uncounted": {
			newScope(federated(ofAHub, nil), func(s *scope) { s.policy.Spec.OnStoreUnavailable.Action = v1alpha1.AllowAction }),
			&v1alpha1.Guarantee{
				Grade:  v1alpha1.BestEffortGuarantee,
				Reason: "onStoreUnavailable.action Allow admits requests uncounted while the store is away; of FederatedBudget world: set aside before",
			},
		},
	}
	for name, tc := range tests {
		if diff := cmp.Diff(tc.want, guarantee(tc.scope)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// Sidecars are sent the policy again when the budget changes, or whether it is there.
func TestTheFingerprintFollowsTheBudget(t *testing.T) {
	rated := func(limit int64) func(*scope) {
		return func(s *scope) { s.enforced.Limits[0].Rates = []limiter.Rate{{Limit: limit, Window: limiter.Second}} }
	}
	seen := map[string]string{}
	for name, s := range map[string]*scope{
		"the budget":                 newScope(federated(ofAHub, nil), rated(300)),
		"another limit":              newScope(federated(ofAHub, nil), rated(400)),
		"another id":                 newScope(federated(ofAHub, nil), rated(300), func(s *scope) { s.enforced.Limits[0].Budget.ID = "acme/other" }),
		"a budget that is not there": newScope(federated(ofAHub, nil), rated(300), func(s *scope) { s.unmet = errors.New("none") }),
	} {
		f := fingerprint(s)
		if other, ok := seen[f]; ok {
			t.Errorf("%s and %s have one fingerprint", name, other)
		}
		seen[f] = name
	}
}

func TestWhichChangesOfABudgetMatterToPolicies(t *testing.T) {
	budget := func(generation int64, accepted metav1.ConditionStatus, measured int64) *v1alpha1.FederatedBudget {
		b := &v1alpha1.FederatedBudget{ObjectMeta: metav1.ObjectMeta{Generation: generation}}
		b.Status.Conditions = []metav1.Condition{{Type: v1alpha1.AcceptedCondition, Status: accepted}}
		b.Status.MeasuredAt = &metav1.Time{Time: now.AddDate(0, 0, int(measured))}
		return b
	}
	before := budget(1, metav1.ConditionTrue, 0)
	for name, tc := range map[string]struct {
		after *v1alpha1.FederatedBudget
		want  bool
	}{
		"its figures":            {budget(1, metav1.ConditionTrue, 1), false},
		"its spec":               {budget(2, metav1.ConditionTrue, 0), true},
		"that it counts no more": {budget(1, metav1.ConditionFalse, 0), true},
	} {
		if got := budgetMatters().Update(event.UpdateEvent{ObjectOld: before, ObjectNew: tc.after}); got != tc.want {
			t.Errorf("%s: %v, want %v", name, got, tc.want)
		}
	}
}
