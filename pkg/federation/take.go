package federation

import (
	"context"
	"time"

	"github.com/weir-dev/weir/pkg/federation/escrow"
	"github.com/weir-dev/weir/pkg/limiter"
)

// take hands on what the escrow has, and waits for more when that is not enough.
func (r *Region) take(ctx context.Context, q *request) (limiter.Result, error) {
	var patience <-chan time.Time
	until, looks := r.patient(), false
	for {
		res, decided, err := r.draw(ctx, q, until, looks)
		if decided || err != nil {
			r.looked(looks)
			return res, err
		}
		wait, res, err := r.want(q, looks)
		if wait == nil {
			return res, err
		}
		if patience == nil {
			t := time.NewTimer(time.Duration(until - r.clock.Now()))
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

// patient returns the instant up to which a request that comes now waits.
func (r *Region) patient() int64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.clock.Now() + int64(r.config.Patience)
}

// draw takes from the escrow. It is decided unless that has too little. An escrow that is
// slower than requests are patient is as good as away; one that was asked again by a
// request that looks what an order brought may only have had too little time.
func (r *Region) draw(ctx context.Context, q *request, until int64, looks bool) (limiter.Result, bool, error) {
	r.mu.Lock()
	v, closed := r.vault(), r.closed
	timeout := min(r.config.Timeout, time.Duration(until-r.clock.Now()))
	r.mu.Unlock()
	if closed {
		return limiter.Result{}, false, r.unavailable(ErrClosed)
	}
	a, err := v.ask(ctx, timeout, escrow.Command{Op: escrow.Take, Min: q.Min, Want: q.Want})
	switch {
	case err != nil && ctx.Err() != nil:
		return limiter.Result{}, false, r.unavailable(ctx.Err())
	case err != nil && looks && r.clock.Now() >= until:
		return limiter.Result{}, false, nil
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
	if err != nil || a.Granted == 0 || now >= deadline || v.id != r.main.id {
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
