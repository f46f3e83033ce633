package federation

import (
	"context"
	"errors"
	"fmt"

	"github.com/weir-dev/weir/pkg/federation/escrow"
	"github.com/weir-dev/weir/pkg/federation/ledger"
	"github.com/weir-dev/weir/pkg/limiter"
	"github.com/weir-dev/weir/pkg/store"
)

// Apply asks for units, gives them back or looks how many there are, for the holders
// of the region. p is FixedWindow with one rate, that of the budget; its Fairness splits
// what the region gets over tenants.
//
// Windows in results carry the coordinator's number, and Now is an estimate of its
// clock that lies within. Apply blocks until there are units, for at most
// Config.Patience. That the coordinator is away is a refusal, limiter.Exhausted with
// RetryAfter; the error is a *store.UnavailableError when nothing was ever known, ctx is
// done, or the region is closed.
func (r *Region) Apply(ctx context.Context, key store.Key, p limiter.Params, c limiter.Command) (limiter.Result, error) {
	if err := errors.Join(p.Validate(), c.Validate()); err != nil {
		return limiter.Result{}, fmt.Errorf("federation: %s: %w", key, err)
	}
	if p.Algorithm != limiter.FixedWindow || len(p.Rates) != 1 {
		return limiter.Result{}, fmt.Errorf("federation: %s: algorithm is %v with %d rates, but a budget is one FixedWindow", key, p.Algorithm, len(p.Rates))
	}
	q := request{key: key, params: p, Command: c}
	switch c.Op {
	case limiter.Return:
		return r.putBack(ctx, &q)
	case limiter.Reset:
		return limiter.Result{}, fmt.Errorf("federation: %s: op is Reset, but what other regions were granted of a budget cannot be forgotten", key)
	case limiter.Peek:
		return r.peek(ctx, &q)
	default:
		return r.take(ctx, &q)
	}
}

// A request is what a holder asks for.
type request struct {
	limiter.Command
	key    store.Key
	params limiter.Params
}

// peek returns what could be had now.
func (r *Region) peek(ctx context.Context, q *request) (limiter.Result, error) {
	r.mu.Lock()
	v, timeout := r.vault(), r.config.Timeout
	r.mu.Unlock()
	a, err := v.ask(ctx, timeout, escrow.Command{Op: escrow.Peek})
	if err != nil {
		return limiter.Result{}, r.unavailable(err)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	now := r.clock.Now()
	deadline := r.bounded(a.Epoch, a.deadline)
	if now >= deadline || v.id != r.main.id {
		return r.refusal(q, now, now), nil
	}
	of := r.portion(a, now, deadline)
	of.units, of.more = min(q.Want, of.more), max(0, of.more-q.Want)
	res := r.split.take(q, of)
	res.ExpiresIn = micros(deadline - now)
	return res, nil
}

// putBack gives units back that a holder did not spend.
func (r *Region) putBack(ctx context.Context, q *request) (limiter.Result, error) {
	r.mu.Lock()
	v, timeout, window := r.vault(), r.config.Timeout, r.config.Params.Window
	r.mu.Unlock()
	res := limiter.Result{Reason: limiter.Forfeited, Algorithm: limiter.FixedWindow}
	w := q.Windows
	if w.N != 1 || w.Open[0].Window != window || w.Open[0].Index < 0 {
		return res, nil
	}
	index := w.Open[0].Index
	a, err := v.ask(ctx, timeout, escrow.Command{Op: escrow.Return, Epoch: ledger.Epoch{Index: index}, Want: q.Want})
	if err != nil {
		return limiter.Result{}, r.unavailable(err)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	now := r.clock.Now()
	r.noted(v, a, nil)
	if a.Granted == 0 || v.id != r.main.id {
		return res, nil
	}
	of := r.portion(a, now, a.deadline)
	r.split.putBack(q, of)
	r.demand.taken = max(0, r.demand.taken-a.Granted)
	r.counts.taken -= a.Granted
	res.Reason, res.Granted, res.Now = limiter.Granted, a.Granted, of.at
	r.hurry(now)
	return res, nil
}
