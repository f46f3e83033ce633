package coordinator

import (
	"context"
	"fmt"
	"slices"

	"github.com/weir-dev/weir/internal/controlplane/budget"
	"github.com/weir-dev/weir/internal/controlplane/coordinator/bindings"
	"github.com/weir-dev/weir/pkg/limiter"
	"github.com/weir-dev/weir/pkg/policy"
	"github.com/weir-dev/weir/pkg/store"
)

// Budgets hand on this cluster's parts of the budgets that it shares with others, for
// one term; see internal/controlplane/region. They are safe for concurrent use.
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

// lastEnd returns when the last of the windows ends.
func lastEnd(w limiter.Windows) (end limiter.Instant) {
	for _, o := range w.Slice() {
		end = max(end, o.End())
	}
	return end
}

// mayDraw reports whether a lease of the limit may have to ask a budget.
func (t *term) mayDraw(l *published) bool {
	_, drew := t.bindings.Last(l.scope)
	return l.budget != nil || drew
}

// decide has the command decided by the contract in force.
func (t *term) decide(ctx context.Context, l *published, key store.Key, p limiter.Params, c limiter.Command) (limiter.Result, error) {
	asked := p
	if l.budget != nil {
		asked = bindings.Sentinel(p)
	}
	res, err := t.store.Apply(ctx, key, asked, c)
	if err != nil {
		return res, err
	}
	if c.Op == limiter.Return {
		c.Floor = 0
		return t.giveBack(ctx, l, key, p, c, res)
	}
	switch {
	case res.Reason == limiter.StaleGeneration || res.Reason == limiter.ClockBehind:
		return res, nil
	case !bindings.IsSentinel(res.Windows):
		if last, ok := t.bindings.Last(key.Scope); ok && beginBefore(res.Windows, last.Until()) {
			return refuse(c, res, last.Until(), func(back limiter.Command) (limiter.Result, error) {
				return t.store.Apply(ctx, key, asked, back)
			})
		}
		t.bindings.End(key.Scope)
		return res, nil
	case res.Reason == limiter.Amnesia && beginBefore(res.Windows, p.Since):
		return res, nil // another store may have granted of this window
	}
	c.Floor = 0 // it is on the store's clock, not on the budget's
	return t.draw(ctx, l, key, p, c, res.Windows, res.Now)
}

// draw asks the budget that the limit draws from or, until the sentinel's window ends, drew
// from.
func (t *term) draw(
	ctx context.Context, l *published, key store.Key, p limiter.Params, c limiter.Command, open limiter.Windows, now limiter.Instant,
) (limiter.Result, error) {
	from := bindings.Binding{Scope: key.Scope, Since: now}
	if l.budget != nil {
		from.Budget, from.Rates, from.Fairness = *l.budget, p.Rates, p.Fairness
	} else if last, ok := t.bindings.Last(key.Scope); ok {
		from = last
	} else {
		return limiter.Result{Reason: limiter.Exhausted, RetryAfter: lastEnd(open).Sub(now), Now: now}, nil
	}
	res, err := t.budgets.Apply(ctx, key.Scope.Namespace, from.Budget, key, from.Params(p), c)
	if err != nil || res.Windows.N == 0 {
		return res, err
	}
	if c.Op == limiter.Take {
		from = t.bindings.Note(from, res.Windows, lastEnd(open))
	} else if last, ok := t.bindings.Last(key.Scope); ok && last.Budget == from.Budget {
		from.Since = last.Since
	}
	from.Since = t.since(key, from.Since, now)
	until := from.Early(res.Windows)
	if until == 0 {
		return res, nil
	}
	return refuse(c, res, until, func(back limiter.Command) (limiter.Result, error) {
		return t.budgets.Apply(ctx, key.Scope.Namespace, from.Budget, key, from.Params(p), back)
	})
}

// since returns when the store had no open window that it granted the value of the key from. A limit begins to
// draw for the first value that the store has no window of, which may have one of another value.
func (t *term) since(key store.Key, since, now limiter.Instant) limiter.Instant {
	if key.Hash == "" {
		return since
	}
	return min(now, max(since, t.counters.storedUntil(key.Scope)))
}

// beginBefore reports whether one of the windows begins before the instant.
func beginBefore(w limiter.Windows, at limiter.Instant) bool {
	return slices.ContainsFunc(w.Slice(), func(o limiter.OpenWindow) bool { return o.Start() < at })
}

// refuse gives back what res granted, and says that nothing is granted before the instant,
// of the clock of res.
func refuse(c limiter.Command, res limiter.Result, until limiter.Instant, giveBack func(limiter.Command) (limiter.Result, error)) (limiter.Result, error) {
	if c.Op == limiter.Take && res.Granted > 0 {
		back := limiter.Command{Op: limiter.Return, Want: res.Granted, Tenant: c.Tenant, Windows: res.Windows, At: res.Now}
		if _, err := giveBack(back); err != nil {
			return limiter.Result{}, err
		}
	}
	return limiter.Result{Reason: limiter.Exhausted, RetryAfter: until.Sub(res.Now), Now: res.Now}, nil
}

// giveBack returns units to the budget that the limit draws from, unless they may belong to
// the store or to another budget: those of the window in which it began to draw are
// forfeited, and of several rates each has such a window. res is the store's answer.
func (t *term) giveBack(
	ctx context.Context, l *published, key store.Key, p limiter.Params, c limiter.Command, res limiter.Result,
) (limiter.Result, error) {
	from, ok := t.bindings.Last(key.Scope)
	from.Since = t.since(key, from.Since, res.Now)
	if res.Reason != limiter.Forfeited || !ok || l.budget != nil && *l.budget != from.Budget || !from.Owned(&c.Windows) {
		return res, nil
	}
	return t.budgets.Apply(ctx, key.Scope.Namespace, from.Budget, key, from.Params(p), c)
}
