package joint

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/weir-dev/weir/pkg/limiter"
	"github.com/weir-dev/weir/pkg/store"
)

// A Budget hands on a region's units of one budget: federation.Region and keyed.Region do.
type Budget interface {
	Apply(ctx context.Context, key store.Key, p limiter.Params, c limiter.Command) (limiter.Result, error)
}

// A Foresight is a Budget that can learn of a command that follows soon, so that the
// round trips of all budgets are under way at the same time.
type Foresight interface {
	Expect(key store.Key, c limiter.Command)
}

// A Draw is from several budgets. It is a value that nobody changes, and safe for concurrent use.
type Draw struct {
	// Budgets has one for each rate of the limit, in the order of its rates.
	Budgets []Budget
	// Patience bounds how long a command waits for units of all budgets together. What budgets
	// take back may last as long once more.
	Patience time.Duration
}

const (
	// leastPart is which part of the patience a budget has at least, however long those before it
	// took: one with units in hand needs no more.
	leastPart = 8
	// again is when a holder asks again for which the patience was too short. What was ordered for
	// it is there by then.
	again = 25 * limiter.Millisecond
)

// Apply decides a command of a limit by all budgets. p is FixedWindow without fairness, and every
// rate has to admit.
func (d Draw) Apply(ctx context.Context, key store.Key, p limiter.Params, c limiter.Command) (limiter.Result, error) {
	if p.Algorithm != limiter.FixedWindow || p.Any || p.Fairness.Default != 0 || len(p.Rates) != len(d.Budgets) || len(p.Rates) > limiter.MaxRates {
		return limiter.Result{}, fmt.Errorf("federation: %s: algorithm is %v with %d rates for %d budgets, any %t and fairness %v, but a budget is one FixedWindow for each rate",
			key, p.Algorithm, len(p.Rates), len(d.Budgets), p.Any, p.Fairness)
	}
	r := request{Draw: d, key: key, params: p, until: time.Now().Add(d.Patience)}
	switch c.Op {
	case limiter.Return:
		return r.giveBack(ctx, c)
	case limiter.Peek:
		return r.peek(ctx, c)
	case limiter.Reset:
		return r.ask(ctx, 0, c)
	default:
		return r.take(ctx, c)
	}
}

// A request is one command of a limit.
type request struct {
	Draw
	key     store.Key
	params  limiter.Params
	until   time.Time // when the patience ends
	answers answers
}

// ask has one budget decide a command.
func (r *request) ask(ctx context.Context, i int, c limiter.Command) (limiter.Result, error) {
	p := r.params
	p.Rates = p.Rates[i : i+1 : i+1]
	return r.Budgets[i].Apply(ctx, r.key, p, c)
}

// waiting returns until when a budget may have the request wait.
func (r *request) waiting(ctx context.Context) (context.Context, context.CancelFunc) {
	until := time.Now().Add(r.Patience / leastPart)
	if until.Before(r.until) {
		until = r.until
	}
	return context.WithDeadline(ctx, until)
}

// order returns the rates from the shortest window to the longest.
func (r *request) order() []int {
	order := make([]int, len(r.params.Rates))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(a, b int) int { return cmp.Compare(r.params.Rates[a].Window, r.params.Rates[b].Window) })
	return order
}

// take takes from all budgets, and gives back what one of them did not grant.
func (r *request) take(ctx context.Context, c limiter.Command) (limiter.Result, error) {
	order, units := r.order(), c.Want
	for _, i := range order[1:] {
		if b, ok := r.Budgets[i].(Foresight); ok {
			b.Expect(r.key, c)
		}
	}
	for n, i := range order {
		step := c
		step.Want = units
		res, err := r.takeFrom(ctx, i, step)
		if err != nil {
			r.restore(ctx, 0)
			return limiter.Result{}, err
		}
		r.answers.enter(i, res)
		if res.Granted < c.Min {
			r.restore(ctx, 0)
			r.look(ctx, order[n+1:], c)
			return r.answers.refusal(len(order)), nil
		}
		units = min(units, res.Granted)
	}
	if !r.answers.meet(len(order)) {
		r.restore(ctx, 0)
		return r.answers.refusal(len(order)), nil
	}
	r.restore(ctx, units)
	return r.answers.grant(len(order), units), nil
}

// takeFrom takes from one budget. That the patience is over is a refusal.
func (r *request) takeFrom(ctx context.Context, i int, c limiter.Command) (limiter.Result, error) {
	waiting, cancel := r.waiting(ctx)
	defer cancel()
	res, err := r.ask(waiting, i, c)
	if err != nil && waiting.Err() != nil && ctx.Err() == nil {
		return limiter.Result{Reason: limiter.Exhausted, RetryAfter: again}, nil
	}
	return res, err
}

// restore gives back what budgets granted beyond as many units, each to its own window. It goes on
// when the request has ended.
func (r *request) restore(ctx context.Context, units int64) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), r.Patience)
	defer cancel()
	for i := range r.params.Rates {
		a := &r.answers.of[i]
		rest := a.Granted - units
		if !r.answers.known[i] || rest <= 0 {
			continue
		}
		back := limiter.Command{Op: limiter.Return, Want: rest, Windows: a.Windows, At: a.Now}
		if res, err := r.ask(ctx, i, back); err == nil && res.Reason == limiter.Granted {
			a.Remaining += res.Granted
		}
	}
}

// look has budgets say what they would grant, so that a refusal names the windows of all rates.
func (r *request) look(ctx context.Context, at []int, c limiter.Command) {
	c.Op = limiter.Peek
	for _, i := range at {
		waiting, cancel := r.waiting(ctx)
		if res, err := r.ask(waiting, i, c); err == nil {
			r.answers.enter(i, res)
		}
		cancel()
	}
}

// peek returns what all budgets would grant.
func (r *request) peek(ctx context.Context, c limiter.Command) (limiter.Result, error) {
	units := c.Want
	for i := range r.params.Rates {
		res, err := r.takeFrom(ctx, i, c)
		if err != nil {
			return limiter.Result{}, err
		}
		r.answers.enter(i, res)
		units = min(units, res.Granted)
	}
	if units < c.Min || !r.answers.meet(len(r.params.Rates)) {
		return r.answers.refusal(len(r.params.Rates)), nil
	}
	return r.answers.grant(len(r.params.Rates), units), nil
}

// giveBack returns units of a grant to the windows that are still open. Each rate counts by itself:
// the units were not used in any.
func (r *request) giveBack(ctx context.Context, c limiter.Command) (limiter.Result, error) {
	out := limiter.Result{Algorithm: limiter.FixedWindow, Reason: limiter.Granted, Granted: c.Want}
	if c.Windows.N != len(r.params.Rates) {
		return limiter.Result{Algorithm: limiter.FixedWindow, Reason: limiter.Forfeited}, nil
	}
	var failed error
	for i := range r.params.Rates {
		step := c
		step.Windows = limiter.Windows{N: 1}
		step.Windows.Open[0] = c.Windows.Open[i]
		res, err := r.ask(ctx, i, step)
		failed = cmp.Or(failed, err)
		out.Now = max(out.Now, res.Now)
		if res.Reason != limiter.Granted {
			out.Reason = limiter.Forfeited
		}
		out.Granted = min(out.Granted, res.Granted)
	}
	if failed != nil {
		return limiter.Result{}, failed
	}
	return out, nil
}
