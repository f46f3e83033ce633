package coordinator

import (
	"context"
	"fmt"
	"time"

	"github.com/weir-dev/weir/internal/budget"
	"github.com/weir-dev/weir/pkg/federation/ledger"
	"github.com/weir-dev/weir/pkg/limiter"
	"github.com/weir-dev/weir/pkg/policy"
	"github.com/weir-dev/weir/pkg/store"
)

// Budgets hand on this cluster's parts of the budgets that it shares with others, for
// one term; see internal/region. They are safe for concurrent use.
type Budgets interface {
	// Run works until ctx is done, then gives back what was not handed on, which is
	// bounded in time.
	Run(ctx context.Context)
	// Apply decides a command of a limit of the namespace that draws from the budget, and
	// may wait for another cluster.
	Apply(ctx context.Context, namespace string, of policy.BudgetRef, key store.Key, p limiter.Params, c limiter.Command) (limiter.Result, error)
	// Observe returns what is known of the budget of a FederatedBudget.
	Observe(namespace, name string) budget.Observation
}

// Usage returns what holders counted of the budget of that id in a window that ended
// between the instants before and over.
type Usage = func(id string, w limiter.OpenWindow, before, over time.Time) ledger.Usage

// noBudgets are those of a cluster that shares none.
type noBudgets struct{}

// Run implements Budgets.
func (noBudgets) Run(context.Context) {}

// Apply implements Budgets.
func (noBudgets) Apply(
	_ context.Context, namespace string, of policy.BudgetRef, _ store.Key, _ limiter.Params, _ limiter.Command,
) (limiter.Result, error) {
	return limiter.Result{}, &store.UnavailableError{
		Store: fmt.Sprintf("budget %q", of.ID),
		Cause: fmt.Errorf("this controller takes no part in FederatedBudget %s/%s", namespace, of.Name),
	}
}

// Observe implements Budgets.
func (noBudgets) Observe(string, string) budget.Observation { return budget.Observation{} }
