package federation

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/weir-dev/weir/pkg/federation/escrow"
	"github.com/weir-dev/weir/pkg/federation/ledger"
	"github.com/weir-dev/weir/pkg/limiter"
	"github.com/weir-dev/weir/pkg/store"
)

// ErrClosed is the cause of every refusal after Close.
var ErrClosed = errors.New("the region is closed")

// A need is what requests wait for that the next order may bring.
type need struct {
	waiters     int
	least, want int64 // the smallest of the one, the sum of the other
	settled     bool
	done        chan struct{} // closed when settled
}

func newNeed() *need { return &need{done: make(chan struct{})} }

// settle has all who wait look again.
func (r *Region) settle() {
	close(r.need.done)
	r.need.settled = true
	r.looking += r.need.waiters
	r.need = newNeed()
}

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

// take hands on what the escrow has, and waits for more when that is not enough.
func (r *Region) take(ctx context.Context, q *request) (limiter.Result, error) {
	var patience <-chan time.Time
	looks := false
	for {
		res, decided, err := r.draw(ctx, q)
		if decided || err != nil {
			r.looked(looks)
			return res, err
		}
		wait, res, err := r.want(q, looks)
		if wait == nil {
			return res, err
		}
		if patience == nil {
			r.mu.Lock()
			t := time.NewTimer(r.config.Patience)
			r.mu.Unlock()
			defer t.Stop()
			patience = t.C
		}
		select {
		case <-wait.done:
			looks = true
		case <-patience:
			return r.leave(q, wait), nil
		case <-ctx.Done():
			r.leave(q, wait)
			return limiter.Result{}, r.unavailable(ctx.Err())
		}
	}
}

// looked notes that one who looked what an order brought needs no more.
func (r *Region) looked(looks bool) {
	if !looks {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.looking--
	r.hurry(r.clock.Now())
}

// want has the request wait for the next order, unless that would be in vain.
func (r *Region) want(q *request, looks bool) (*need, limiter.Result, error) {
	defer r.looked(looks)
	r.mu.Lock()
	defer r.mu.Unlock()
	now := r.clock.Now()
	d := r.link.dry
	switch {
	case r.closed:
		return nil, limiter.Result{}, r.unavailable(ErrClosed)
	case !r.link.answered && r.link.cause != nil:
		return nil, limiter.Result{}, r.unavailable(r.link.cause)
	case r.link.cause != nil:
		return nil, r.refuse(q, now, r.link.retryAt), nil
	case q.Min > r.config.Params.Limit:
		return nil, r.refuse(q, now, past), nil
	case now < d.until && q.Min >= d.least && !r.closing(now):
		return nil, r.refuse(q, now, d.tell), nil
	}
	n := r.need
	if n.waiters == 0 || q.Min < n.least {
		n.least = q.Min
	}
	n.waiters++
	n.want = min(n.want+q.Want, limiter.MaxLimit)
	r.hurry(now)
	return n, limiter.Result{}, nil
}

// closing reports whether the next window begins before another answer could come.
func (r *Region) closing(now int64) bool {
	return r.link.estimate.known && float64(r.begins(now)-now) < 2*r.link.trip.most()
}

// leave ends the wait of a request that has waited for long enough.
func (r *Region) leave(q *request, n *need) limiter.Result {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := r.clock.Now()
	if n.settled {
		r.looking--
		r.hurry(now)
	} else {
		n.waiters--
		n.want = max(0, n.want-q.Want)
	}
	return r.refuse(q, now, now+int64(firstRetry))
}

// draw takes from the escrow. It is decided unless that has too little.
func (r *Region) draw(ctx context.Context, q *request) (limiter.Result, bool, error) {
	r.mu.Lock()
	v, timeout, closed := r.vault(), r.config.Timeout, r.closed
	r.mu.Unlock()
	if closed {
		return limiter.Result{}, false, r.unavailable(ErrClosed)
	}
	a, err := v.ask(ctx, timeout, escrow.Command{Op: escrow.Take, Min: q.Min, Want: q.Want})
	if err != nil && ctx.Err() != nil {
		return limiter.Result{}, false, r.unavailable(ctx.Err())
	}
	res, decided := r.handOn(v, q, a, err)
	if rest := a.Granted - res.Granted; decided && rest > 0 {
		// When that gets lost, the units die with their window.
		back, err := v.ask(r.ctx, timeout, escrow.Command{Op: escrow.Return, Epoch: a.Epoch, Want: rest})
		r.mu.Lock()
		defer r.mu.Unlock()
		r.noted(v, back, err)
	}
	return res, decided, nil
}

// handOn hands on what was taken from the escrow, or a part of it.
func (r *Region) handOn(v *vault, q *request, a answer, err error) (limiter.Result, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := r.clock.Now()
	r.noted(v, a, err)
	defer r.hurry(now)
	deadline := r.bounded(a.Epoch, a.deadline)
	if err != nil || a.Granted == 0 || now >= deadline {
		return limiter.Result{}, false
	}
	res := r.split.take(q, r.portion(a, now, deadline))
	if res.Granted == 0 {
		r.missed(q)
		return res, true
	}
	r.demand.taken += res.Granted
	r.counts.taken += res.Granted
	res.ExpiresIn = micros(deadline - now)
	return res, true
}

// portion returns what can be divided of the window that the escrow answered for.
func (r *Region) portion(a answer, now, deadline int64) portion {
	p := portion{
		rate:  limiter.Rate{Limit: r.config.Params.Limit, Window: r.config.Params.Window},
		index: a.Epoch.Index, units: a.Granted, more: a.Remaining,
	}
	if r.link.cause == nil && r.link.epoch.Index == a.Epoch.Index {
		p.more += r.link.grant.Remaining
	}
	// An instant of the window that is as long before its end as the deadline at least.
	p.at = r.end(p.index).Add(-micros(deadline-now) - 1)
	if r.link.estimate.known {
		p.at = min(p.at, r.link.estimate.latest(now))
	}
	p.at = max(p.at, r.opens(p.index))
	return p
}

// peek tells what could be had now.
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
	if now >= deadline {
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
	v, timeout := r.vault(), r.config.Timeout
	r.mu.Unlock()
	res := limiter.Result{Reason: limiter.Forfeited, Algorithm: limiter.FixedWindow}
	w := q.Windows
	if w.N != 1 || w.Open[0].Window != r.config.Params.Window || w.Open[0].Index < 0 {
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
	if a.Granted == 0 {
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

// refuse returns that there is nothing, and counts what was asked for.
func (r *Region) refuse(q *request, now, again int64) limiter.Result {
	r.missed(q)
	return r.refusal(q, now, again)
}

// missed counts what was asked for in vain.
func (r *Region) missed(q *request) {
	r.demand.refused += q.Want
	r.counts.refused += q.Want
}

// refusal returns that there is nothing before an instant.
func (r *Region) refusal(q *request, now, again int64) limiter.Result {
	rate := limiter.Rate{Limit: r.config.Params.Limit, Window: r.config.Params.Window}
	res := limiter.Result{
		Reason: limiter.Exhausted, Algorithm: limiter.FixedWindow, Limit: rate.Limit,
		RetryAfter: max(limiter.Millisecond, micros(again-now)),
	}
	if q.Min > rate.Limit {
		res.Reason, res.RetryAfter = limiter.TooLarge, 0
	}
	if r.link.estimate.known {
		res.Now = r.link.estimate.latest(now)
		w := rate.WindowAt(res.Now)
		res.Windows.N, res.Windows.Open[0] = 1, w
		res.ResetAfter = w.End().Sub(res.Now)
	}
	return res
}

func (r *Region) unavailable(cause error) error {
	if away(cause) {
		return cause
	}
	return &store.UnavailableError{Store: "budget " + r.config.ID, Cause: cause}
}
