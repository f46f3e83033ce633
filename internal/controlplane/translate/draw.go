package translate

import (
	"errors"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/weir-dev/weir/api/v1alpha1"
	"github.com/weir-dev/weir/pkg/federation/ledger"
	"github.com/weir-dev/weir/pkg/limiter"
	"github.com/weir-dev/weir/pkg/policy"
)

// Budgets returns what the FederatedBudget of that name, in the namespace of a policy,
// is. An error says why it does not count in this cluster, and the cure. It is nil
// where no budget can be known.
type Budgets func(name string) (policy.FederatedBudget, error)

var errNoBudgets = errors.New("no FederatedBudget is known here")

func (b Budgets) named(name string) (policy.FederatedBudget, error) {
	if b == nil {
		return policy.FederatedBudget{}, errNoBudgets
	}
	return b(name)
}

// unknownBudget stands for a budget that is not there, so that the rest of a policy
// can be checked: nothing is too large for it, or lasts too long.
var unknownBudget = policy.FederatedBudget{
	ID:     "unknown",
	Params: ledger.Params{Limit: limiter.MaxLimit, Window: limiter.MaxWindow},
}

// draw sets what a limit of scope Federated draws from, and the rates and the key of that.
func (t *translator) draw(path *field.Path, l *v1alpha1.Limit, out *policy.Limit) {
	if l.BudgetRef == nil {
		t.invalid(path.Child("budgetRef"), field.OmitValueType{}, "scope Federated draws from a budget: set budgetRef.name to a FederatedBudget of this namespace")
		return
	}
	name := l.BudgetRef.Name
	budget, err := t.budgets.named(name)
	if err != nil {
		t.unmet = append(t.unmet, field.Invalid(path.Child("budgetRef", "name"), name, err.Error()))
		budget = unknownBudget
	}
	out.Budget = &policy.BudgetRef{ID: budget.ID, Name: name}
	if l.Key != nil {
		t.invalid(path.Child("key"), field.OmitValueType{}, "with scope Federated the key is that of the FederatedBudget: remove it here, and set spec.key there")
	}
	if len(l.Overrides) > 0 {
		t.invalid(path.Child("overrides"), field.OmitValueType{}, "with scope Federated the overrides are those of the FederatedBudget: remove them here, and set spec.key.overrides there")
	}
	if budget.Key != nil {
		out.Clusters, out.Key = int64(len(budget.Params.Members)), t.keyOf(path.Child("budgetRef", "name"), &budget)
		out.Overrides = budget.Overrides
	}
	for _, rate := range budget.Rates() {
		out.Rates = append(out.Rates, limiter.Rate{Limit: rate.Params.Limit, Window: rate.Params.Window})
	}
	if l.Fairness != nil && len(budget.Additional) > 0 {
		t.invalid(path.Child("fairness"), field.OmitValueType{}, fmt.Sprintf(
			"FederatedBudget %s has several rates, and fairness splits one window: remove fairness, or give each rate a FederatedBudget and a limit of its own", name))
	}
	if l.Fairness != nil && budget.Escrow.Type == policy.RedisStore {
		t.invalid(path.Child("fairness"), field.OmitValueType{}, fmt.Sprintf(
			"FederatedBudget %s keeps its units in Redis, where they cannot be split over tenants: set its escrow.type to Controller, or remove fairness", name))
	}
	if l.Fairness != nil && budget.Key != nil {
		t.invalid(path.Child("fairness"), field.OmitValueType{}, fmt.Sprintf(
			"FederatedBudget %s has a key, and the limit of each value is not split over tenants: remove fairness, or remove spec.key there", name))
	}
}

// keyOf returns the key of a budget for a limit that draws from it. The policy has to have what
// the parts read by; path is that of the reference.
func (t *translator) keyOf(path *field.Path, b *policy.FederatedBudget) *policy.Key {
	out := *b.Key
	out.Parts = slices.Clone(b.Key.Parts)
	for _, part := range out.Parts {
		switch {
		case part.Type == policy.PeerIdentityKey && !t.trusts:
			t.invalid(path, b.Name, "its key has a part of type PeerIdentity, which is believed only from a proxy that the policy trusts: set spec.clientIP, for a mesh trustedCIDRs to the address that its proxy calls from, such as 127.0.0.6/32")
		case part.Provider != "" && !t.provides(part.Provider):
			t.invalid(path, b.Name, fmt.Sprintf("its key has a claim that provider %s verifies, which is the name of no entry of spec.jwtProviders: add it there", part.Provider))
		}
	}
	return &out
}

// Draws reports whether a limit of p draws from a FederatedBudget.
func Draws(p *v1alpha1.RateLimitPolicy) bool {
	return slices.ContainsFunc(p.Spec.Limits, func(l v1alpha1.Limit) bool { return l.Scope == v1alpha1.FederatedScope })
}
