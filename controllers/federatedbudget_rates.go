package controllers

import (
	"cmp"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/weir-dev/weir/api/v1alpha1"
	"github.com/weir-dev/weir/internal/controlplane/budget"
	"github.com/weir-dev/weir/pkg/limiter"
)

// ratesOf returns the rates of a budget: the first, and the additional ones from the shortest window
// to the longest, however they are written.
func ratesOf(s *v1alpha1.FederatedBudgetSpec) []v1alpha1.BudgetRate {
	further := slices.Clone(s.AdditionalRates)
	slices.SortStableFunc(further, func(a, b v1alpha1.BudgetRate) int { return cmp.Compare(lengthOf(a), lengthOf(b)) })
	return append([]v1alpha1.BudgetRate{s.Rate}, further...)
}

func lengthOf(r v1alpha1.BudgetRate) time.Duration {
	d, _ := time.ParseDuration(string(r.Window)) // the API server has checked it
	return d
}

// written returns the rate that the scope is of.
func (s *budgetScope) written() v1alpha1.BudgetRate { return ratesOf(&s.budget.Spec)[s.further] }

// limitField returns the field that has the limit of the rate.
func (s *budgetScope) limitField() string {
	if s.further > 0 {
		return "the limit in additionalRates"
	}
	return "rate.limit"
}

// rates returns the scope of each rate, the first one's before the others. Each knows of its own only.
func (s *budgetScope) rates() []*budgetScope {
	all := []*budgetScope{s}
	for i, enforced := range s.enforced.Rates()[1:] {
		c := *s
		c.enforced, c.further, c.first, c.observation = enforced, i+1, s, budget.Observation{}
		if i < len(s.observation.Further) {
			c.observe(s.observation.Further[i])
		}
		all = append(all, &c)
	}
	return all
}

// ofRates returns what a condition says of all rates: what is said of the worst of them. A condition
// is worst with the status bad, and then when it is Unknown.
func ofRates(rates []*budgetScope, bad metav1.ConditionStatus, of func(*budgetScope) metav1.Condition) metav1.Condition {
	rank := func(c metav1.Condition) int {
		if c.Status == bad {
			return 0
		}
		if c.Status == metav1.ConditionUnknown {
			return 1
		}
		return 2
	}
	var worst metav1.Condition
	for i, s := range rates {
		c := of(s)
		if len(rates) > 1 && rank(c) < 2 {
			c.Message = "of " + budgetRate(s.written()) + ": " + c.Message
		}
		if i == 0 || rank(c) < rank(worst) {
			worst = c
		}
	}
	return worst
}

// figuresOf returns the status of the additional rates.
func figuresOf(rates []*budgetScope) (all []v1alpha1.BudgetRateStatus) {
	for _, s := range rates[1:] {
		out := v1alpha1.BudgetRateStatus{Rate: budgetRate(s.written())}
		out.WindowEnd, out.Overshoot, out.UnderUtilization = s.measured()
		if l := s.ledger(); l != nil && !s.keyed() {
			out.Allocation = division(l, s.enforced.Params)
		}
		all = append(all, out)
	}
	return all
}

// strangers returns the members that draw from the first rate and not from this one, by what their
// coordinator heard of them lately: their objects have other rates. Nothing that they admit is counted
// here. A hub refuses them.
func (s *budgetScope) strangers() (names []string) {
	if s.first == nil || s.keyed() {
		return nil
	}
	drawn, counted := s.first.ledger(), s.ledger()
	if drawn == nil || counted == nil {
		return nil
	}
	heard := func(of *budgetScope, seen limiter.Instant) bool {
		return of.observation.Read.Sub(seen) <= budget.SilentAfter
	}
	for _, m := range s.enforced.Params.Members {
		draws, known := drawn.StandingOf(m.Name)
		if !known || m.Name == s.cluster || !heard(s.first, draws.Seen) {
			continue
		}
		if t, known := counted.StandingOf(m.Name); !known || !heard(s, t.Seen) {
			names = append(names, m.Name)
		}
	}
	return names
}
