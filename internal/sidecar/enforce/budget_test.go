package enforce_test

import (
	"slices"
	"testing"

	"github.com/weir-dev/weir/internal/sidecar/enforce"
	"github.com/weir-dev/weir/pkg/policy"
	"github.com/weir-dev/weir/pkg/twotier"
)

// drawing has a limit draw from the budget of that id.
func drawing(id string) func(*policy.Limit) {
	return func(l *policy.Limit) { l.Budget = &policy.BudgetRef{ID: id, Name: "checkout-budget"} }
}

// configs returns what the engines of the policy are configured with.
func configs(t *testing.T, p policy.Policy) []twotier.Config {
	t.Helper()
	var all []twotier.Config
	e := newEnforcer(t, newStore(frozen), func(c *enforce.Config) {
		c.NewLimiter = func(cfg twotier.Config, _ twotier.Store) (enforce.Limiter, error) {
			all = append(all, cfg)
			return &engine{closed: make(chan struct{})}, nil
		}
	})
	apply(t, e, p)
	return all
}

// TestAPodHasNoShareOfABudget: it cannot know what other clusters were granted.
func TestAPodHasNoShareOfABudget(t *testing.T) {
	for action, want := range map[policy.Action]twotier.Action{
		policy.LocalShare: twotier.Deny, policy.Deny: twotier.Deny, policy.Allow: twotier.Allow,
	} {
		p := policyOf(limitOf("fleet", 10), limitOf("shared", 10, drawing("acme/checkout")))
		p.OnStoreUnavailable = action
		for _, c := range configs(t, p) {
			switch {
			case c.Scope.Limit == "shared" && c.OnUnavailable != want:
				t.Errorf("%s: the engine of the budget does %d, want %d", action, c.OnUnavailable, want)
			case c.Scope.Limit == "fleet" && action == policy.LocalShare && c.OnUnavailable != twotier.LocalShare:
				t.Errorf("the engine of a limit of the cluster alone does %d, want its local share", c.OnUnavailable)
			}
		}
	}
}

// TestAnEditOfTheScopeExchangesTheStore: what one of the two granted is never taken for
// the other's.
func TestAnEditOfTheScopeExchangesTheStore(t *testing.T) {
	var e *engine
	enforcer := newEnforcer(t, newStore(frozen), func(c *enforce.Config) {
		c.NewLimiter = func(twotier.Config, twotier.Store) (enforce.Limiter, error) {
			e = &engine{closed: make(chan struct{})}
			return e, nil
		}
	})
	fleet, shared, other := limitOf("all", 10), limitOf("all", 10, drawing("acme/checkout")), limitOf("all", 10, drawing("acme/search"))
	larger := limitOf("all", 20, drawing("acme/checkout"))
	for _, step := range []struct {
		what  string
		limit policy.Limit
		swaps int // so far
	}{
		{"of the cluster alone", fleet, 0},
		{"of a budget", shared, 1},
		{"of the same budget, with another rate", larger, 1},
		{"of another budget", other, 2},
		{"of the cluster alone again", fleet, 3},
	} {
		apply(t, enforcer, policyOf(step.limit))
		if len(e.swapped) != step.swaps {
			t.Fatalf("%s: the store was exchanged %d times, want %d", step.what, len(e.swapped), step.swaps)
		}
	}
	if slices.Contains(e.swapped[1:], e.swapped[0]) {
		t.Error("two budgets share a breaker")
	}
}

// TestCreditsOfOneScopeAreNotSpentInTheOther edits the scope with credits in hand.
func TestCreditsOfOneScopeAreNotSpentInTheOther(t *testing.T) {
	for name, edit := range map[string][2]policy.Limit{
		"from the cluster to a budget": {limitOf("all", 10), limitOf("all", 10, drawing("acme/checkout"))},
		"from a budget to the cluster": {limitOf("all", 10, drawing("acme/checkout")), limitOf("all", 10)},
		"from one budget to another":   {limitOf("all", 10, drawing("acme/checkout")), limitOf("all", 10, drawing("acme/search"))},
	} {
		t.Run(name, func(t *testing.T) {
			e := newEnforcer(t, newStore(frozen))
			e.SetHolders("shop", "checkout", 1)
			apply(t, e, policyOf(edit[0]))
			if admit(t, e, 1, "/") != 1 { // and leases the other nine
				t.Fatal("nothing was admitted before the edit")
			}
			after := policyOf(edit[1])
			after.Generation = 2
			apply(t, e, after)
			if n := admit(t, e, 9, "/"); n != 0 {
				t.Errorf("%d requests were admitted from credits of the other scope", n)
			}
		})
	}
}

func TestLimitsNameTheirBudget(t *testing.T) {
	e := newEnforcer(t, newStore(frozen))
	apply(t, e, policyOf(limitOf("fleet", 10), limitOf("shared", 10, drawing("acme/checkout"))))
	for _, l := range e.Limits() {
		if want := map[string]string{"shared": "checkout-budget"}[l.Limit]; l.Budget != want {
			t.Errorf("limit %s names budget %q, want %q", l.Limit, l.Budget, want)
		}
	}
}
