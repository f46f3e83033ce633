package region

import (
	"context"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/types"

	"github.com/weir-dev/weir/internal/controlplane/budget"
	"github.com/weir-dev/weir/pkg/federation/joint"
	"github.com/weir-dev/weir/pkg/federation/ledger"
	"github.com/weir-dev/weir/pkg/limiter"
	"github.com/weir-dev/weir/pkg/policy"
	"github.com/weir-dev/weir/pkg/store"
)

// Apply asks for units of a budget, gives them back, or looks how many there are, on
// behalf of the limit with that key in the namespace; see federation.Region.Apply and, for a
// budget with a key, keyed.Region.Apply. Where the FederatedBudget has several rates it does so of the
// budget of each; see package joint. A policy draws from a budget only through the FederatedBudget of
// its namespace that counts in this cluster.
func (s *Set) Apply(
	ctx context.Context, namespace string, of policy.BudgetRef, key store.Key, p limiter.Params, c limiter.Command,
) (limiter.Result, error) {
	name := types.NamespacedName{Namespace: namespace, Name: of.Name}
	parts := s.drawn(name, of, p.Rates)
	switch {
	case parts == nil:
		return limiter.Result{}, &store.UnavailableError{
			Store: fmt.Sprintf("budget %q", of.ID),
			Cause: fmt.Errorf("this controller takes no part in FederatedBudget %s", name),
		}
	case !parts[0].hasRates(p.Rates):
		return outdated(c), nil
	case len(parts) == 1:
		return parts[0].Apply(ctx, key, p, c)
	}
	draw := joint.Draw{Patience: patience}
	for _, part := range parts {
		draw.Budgets = append(draw.Budgets, part)
	}
	return draw.Apply(ctx, key, p, c)
}

// drawn returns the parts in the budgets of all rates of a limit, in their order; nil when one of them is
// not there.
func (s *Set) drawn(name types.NamespacedName, of policy.BudgetRef, rates []limiter.Rate) (all []*part) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	for i, r := range rates {
		id := of.ID
		if i > 0 {
			id = policy.RateID(of.ID, r.Window)
		}
		p := s.parts[id]
		if p == nil || p.name() != name {
			return nil
		}
		all = append(all, p)
	}
	return all
}

// hasRates reports whether a limit has all further rates of the object and no other ones. That of the
// first is for its engine to compare.
func (p *part) hasRates(rates []limiter.Rate) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.EqualFunc(rates[1:], p.budget.Additional, func(r limiter.Rate, further ledger.Params) bool { return r.Window == further.Window })
}

// outdated answers a limit that has other rates than the object: the policies that sidecars enforce are
// of another version than what this controller works by, for a moment.
func outdated(c limiter.Command) limiter.Result {
	if c.Op == limiter.Return {
		return limiter.Result{Algorithm: limiter.FixedWindow, Reason: limiter.Forfeited}
	}
	return limiter.Result{Algorithm: limiter.FixedWindow, Reason: limiter.Exhausted, RetryAfter: limiter.Micros(followEvery.Microseconds())}
}

// observeFurther returns what is known of the further rates of an object, in their order.
func (s *Set) observeFurther(of *part) (all []budget.Observation) {
	of.mu.Lock()
	name, id, windows := nameOf(&of.budget), of.id, of.budget.Windows()[1:]
	of.mu.Unlock()
	for _, window := range windows {
		s.mu.RLock()
		p := s.parts[policy.RateID(id, window)]
		s.mu.RUnlock()
		var o budget.Observation
		if p != nil && p.name() == name {
			o = p.observe()
		}
		all = append(all, o)
	}
	return all
}

// Expect implements joint.Foresight. Without a key units are leased ahead of need anyway.
func (p *part) Expect(key store.Key, c limiter.Command) {
	if p.values != nil {
		p.values.Expect(key, c)
	}
}
