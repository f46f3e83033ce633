package keyed

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/weir-dev/weir/pkg/federation/ledger"
	"github.com/weir-dev/weir/pkg/limiter"
	"github.com/weir-dev/weir/pkg/store"
)

// Apply asks for units of a value, gives them back or looks how many there are, for the
// holders of the region. Key names the value by its hash: limits and policies that draw on
// the budget share its values. p is FixedWindow with one rate, that of the budget.
//
// Windows in results carry the coordinator's number, and Now is an estimate of its
// clock that lies within. Apply blocks until there are units, for at most
// Config.Patience. That the coordinator is away is a refusal, limiter.Exhausted with
// RetryAfter; the error is a *store.UnavailableError when it never answered, ctx is
// done, or the region is closed.
func (r *Region) Apply(ctx context.Context, key store.Key, p limiter.Params, c limiter.Command) (limiter.Result, error) {
	if err := errors.Join(p.Validate(), c.Validate()); err != nil {
		return limiter.Result{}, fmt.Errorf("federation: %s: %w", key, err)
	}
	if p.Algorithm != limiter.FixedWindow || len(p.Rates) != 1 || p.Fairness.Default != 0 {
		return limiter.Result{}, fmt.Errorf("federation: %s: algorithm is %v with %d rates and fairness %v, but a budget with a key is one FixedWindow for each value",
			key, p.Algorithm, len(p.Rates), p.Fairness)
	}
	switch c.Op {
	case limiter.Return:
		return r.putBack(key.Hash, c), nil
	case limiter.Reset:
		return limiter.Result{}, fmt.Errorf("federation: %s: op is Reset, but what other regions were granted of a budget cannot be forgotten", key)
	case limiter.Peek:
		return r.peek(key.Hash, c)
	default:
		return r.take(ctx, key.Hash, c)
	}
}

// Expect has units of a value be asked for that a command will ask for soon, unless there are enough
// in hand or it is in vain. So one that draws from several budgets need not wait for a round trip of
// each. Nobody waits for the answer.
func (r *Region) Expect(key store.Key, c limiter.Command) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return
	}
	now := r.instant()
	v := r.value(key.Hash, now)
	if _, units := v.purse.Take(now, c.Min, c.Want); units > 0 {
		return
	}
	if _, refused, err := r.refuses(v, c.Min, now); refused || err != nil {
		return
	}
	if v.flying || v.need.done != nil {
		return
	}
	v.need = need{least: c.Min, want: c.Want, done: make(chan struct{})}
	v.expected = v.need.done
	r.enqueue(v, now)
}

// take hands on what there is, and waits for more when that is not enough.
func (r *Region) take(ctx context.Context, hash string, c limiter.Command) (limiter.Result, error) {
	var patience <-chan time.Time
	for {
		res, wait, err := r.draw(hash, c)
		if wait == nil {
			return res, err
		}
		if patience == nil {
			late := time.NewTimer(r.patience())
			defer late.Stop()
			patience = late.C
		}
		select {
		case <-wait:
			r.left(hash)
		case <-patience:
			r.left(hash)
			return r.tooLate(hash, c), nil
		case <-ctx.Done():
			r.left(hash)
			return limiter.Result{}, r.unavailable(ctx.Err())
		}
	}
}

func (r *Region) patience() time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.config.Patience
}

// draw decides, or returns what to wait for.
func (r *Region) draw(hash string, c limiter.Command) (limiter.Result, <-chan struct{}, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return limiter.Result{}, nil, r.unavailable(ErrClosed)
	}
	now := r.instant()
	v := r.value(hash, now)
	purse, units := v.purse.Take(now, c.Min, c.Want)
	if units > 0 {
		v.purse = purse
		r.counts.taken += units
		if purse.Low(now, len(r.config.Params.Members)) && r.link.cause == nil {
			r.enqueue(v, now)
		}
		return r.result(v, now, units), nil, nil
	}
	if res, ok := r.takeSlice(v, c, now); ok {
		return res, nil, nil
	}
	again, refused, err := r.refuses(v, c.Min, now)
	switch {
	case err != nil:
		return limiter.Result{}, nil, err
	case refused:
		return r.refuse(v, c, now, again), nil, nil
	}
	v.waiting++
	if v.expected != nil {
		return limiter.Result{}, v.expected, nil
	}
	n := &v.need
	if n.done == nil {
		*n = need{least: c.Min, done: make(chan struct{})}
	}
	n.least, n.want = min(n.least, c.Min), min(n.want+c.Want, limiter.MaxLimit)
	done := n.done
	r.enqueue(v, now)
	return limiter.Result{}, done, nil
}

// takeSlice hands on units of the slice of a value.
func (r *Region) takeSlice(v *value, c limiter.Command, now int64) (limiter.Result, bool) {
	index, slice, until := r.slice(now)
	if index == 0 || v.spare {
		return limiter.Result{}, false
	}
	use, units := v.use.Take(index, slice, c.Min, c.Want)
	v.use = use
	if units == 0 {
		return limiter.Result{}, false
	}
	r.counts.taken += units
	w := limiter.OpenWindow{Rate: r.config.rateOf(v.hash), Index: index}
	res := limiter.Result{Algorithm: limiter.FixedWindow, Limit: w.Limit, Granted: units, Remaining: slice - use.Units, ExpiresIn: micros(until - now)}
	res.Windows.N, res.Windows.Open[0] = 1, w
	res.Now = min(max(r.shown(now), w.Start()), w.End()-1)
	res.ResetAfter = w.End().Sub(res.Now)
	return res, true
}

// refuses reports whether it is in vain to ask for units, and until when.
func (r *Region) refuses(v *value, least, now int64) (again int64, refused bool, err error) {
	l, p := &r.link, &v.purse
	switch {
	case l.cause != nil && !l.answered && now < l.retryAt:
		return 0, false, r.unavailable(l.cause)
	case l.cause != nil && (now < l.retryAt || r.flights > 0):
		return max(l.retryAt, now), true, nil
	case now < l.refused.until:
		return l.refused.until, true, nil
	case least > r.config.Params.LimitOf(v.hash):
		return now, true, nil
	case p.Open(now) && p.Dry > 0 && p.Lacks(now, least) >= p.Dry:
		return p.Ends, true, nil
	case now < v.later:
		return v.later, true, nil
	}
	return 0, false, nil
}

// left ends the wait of a request.
func (r *Region) left(hash string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if v := r.values[hash]; v != nil {
		v.waiting--
	}
}

// tooLate refuses a request that has waited for long enough. Units that come later are for others.
func (r *Region) tooLate(hash string, c limiter.Command) limiter.Result {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := r.instant()
	return r.refuse(r.value(hash, now), c, now, now+int64(busy))
}

// putBack gives units back that a holder did not spend.
func (r *Region) putBack(hash string, c limiter.Command) limiter.Result {
	r.mu.Lock()
	defer r.mu.Unlock()
	res := limiter.Result{Reason: limiter.Forfeited, Algorithm: limiter.FixedWindow}
	v, w := r.values[hash], c.Windows
	if v == nil || w.N != 1 || w.Open[0].Window != r.config.Params.Window {
		return res
	}
	now := r.instant()
	purse, units := v.purse.PutBack(now, w.Open[0].Index, c.Want)
	if units == 0 {
		return res
	}
	v.purse = purse
	r.counts.taken -= units
	res.Reason, res.Granted, res.Now = limiter.Granted, units, r.now(v, now)
	return res
}

// peek returns what could be had now.
func (r *Region) peek(hash string, c limiter.Command) (limiter.Result, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := r.instant()
	v := r.values[hash]
	if v == nil {
		v = &value{hash: hash}
	}
	can := r.config.Params.LimitOf(hash)
	if v.purse.Open(now) {
		can = v.purse.Units + v.purse.Left
	}
	again, refused, err := r.refuses(v, c.Min, now)
	switch {
	case err != nil && v.purse.Units == 0:
		return limiter.Result{}, err
	case refused && v.purse.Units < c.Min, can < c.Min:
		return r.refusal(v, c.Min, now, max(again, v.purse.Ends)), nil
	}
	return r.result(v, now, min(c.Want, can)), nil
}

// result returns what is handed on.
func (r *Region) result(v *value, now, units int64) limiter.Result {
	res := r.described(v, now)
	res.Granted = units
	res.ExpiresIn = micros(max(0, v.purse.Ends-now))
	return res
}

// refuse returns that there is nothing before an instant, and counts what was asked for.
func (r *Region) refuse(v *value, c limiter.Command, now, again int64) limiter.Result {
	r.counts.refused += c.Want
	return r.refusal(v, c.Min, now, again)
}

func (r *Region) refusal(v *value, least, now, again int64) limiter.Result {
	res := r.described(v, now)
	res.Reason, res.RetryAfter = limiter.Exhausted, max(limiter.Millisecond, micros(again-now))
	if r.link.refused.reason == ledger.Amnesia && now < r.link.refused.until {
		res.Reason = limiter.Amnesia
	}
	if least > res.Limit {
		res.Reason, res.RetryAfter = limiter.TooLarge, 0
	}
	return res
}

// described returns what is the same of all results.
func (r *Region) described(v *value, now int64) limiter.Result {
	rate := r.config.rateOf(v.hash)
	res := limiter.Result{Algorithm: limiter.FixedWindow, Limit: rate.Limit}
	if r.link.shown.clock == 0 {
		return res
	}
	res.Now = r.now(v, now)
	w := rate.WindowAt(res.Now)
	res.Windows.N, res.Windows.Open[0] = 1, w
	res.ResetAfter = w.End().Sub(res.Now)
	if v.purse.Open(now) {
		res.Remaining = v.purse.Units + v.purse.Left
	}
	return res
}

// now returns an estimate of the coordinator's clock. It lies within the window of the value's
// purse while that is open.
func (r *Region) now(v *value, now int64) limiter.Instant {
	at := r.shown(now)
	if v.purse.Open(now) {
		w := limiter.OpenWindow{Rate: r.config.rate(), Index: v.purse.Index}
		at = min(max(at, w.Start()), w.End()-1)
	}
	return at
}

// shown returns what the coordinator's clock may read by its last answer.
func (r *Region) shown(now int64) limiter.Instant {
	return r.link.shown.clock.Add(micros(now - r.link.shown.at))
}

func (r *Region) unavailable(cause error) error {
	if away(cause) {
		return cause
	}
	return &store.UnavailableError{Store: "budget " + r.config.ID, Cause: cause}
}
