package twotier

import (
	"context"
	"time"

	"github.com/weir-dev/weir/pkg/limiter"
)

// ask decides one request by one store call, in modes Strict and CachedDeny. It
// reports false when the limiter has moved to another store meanwhile.
func (k *Key) ask(ctx context.Context, cfg *settings, cost int64) (Decision, bool, error) {
	l := k.limiter()
	if d, ok := k.before(cost); ok {
		return d, true, nil
	}
	if l.isClosed() {
		return l.refused(cfg), true, nil
	}
	if cfg.Draining { // and another store serves since it was loaded
		return Decision{}, false, nil
	}
	take := limiter.Command{Op: limiter.Take, Min: cost, Want: cost}
	if debt := k.owes(); debt > 0 {
		take.Min, take.Want = 1, min(cost+debt, limiter.MaxLimit) // a part of the debt is better than none
	}
	// take returns a grant only while it can be used, which is checked after the
	// wait for it.
	r, err := k.take(ctx, cfg, take, maxAsks)
	switch {
	case err == nil:
		d, ok := k.answer(cfg, take, cost, r)
		return d, ok, nil
	case ctx.Err() != nil:
		return Decision{}, true, ctx.Err()
	case l.settings.Load().gate != cfg.gate:
		return Decision{}, false, nil
	default:
		d, err := k.failed(cost, err)
		return d, true, err
	}
}

// before decides a request that the store must not be asked for, or need not.
func (k *Key) before(cost int64) (d Decision, ok bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	l := k.limiter()
	cfg, now := l.settings.Load(), l.clock.now()
	switch {
	case cfg.Draining:
		return l.refusedByDrain(cfg), true
	case k.isAlone(now):
		return k.admitAlone(cfg, cost, now), true
	default:
		return d, k.lease.Load().decide(l, cost, &d)
	}
}

// answer makes a reply effective and decides the request by it, or reports false
// when another store serves now. What was granted goes back when it may not be
// used: because the open window began on the local share meanwhile, or the store is
// being drained, or it pays for less than the request.
func (k *Key) answer(cfg *settings, take limiter.Command, cost int64, r Reply) (Decision, bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	l := k.limiter()
	now, inForce := l.clock.now(), l.settings.Load()
	grant := GrantOf(r.Sent, r.Result)
	switch {
	case inForce.gate != cfg.gate:
		return Decision{}, false
	case inForce.Draining:
		l.giveBack(k, cfg.gate, grant)
		return l.refusedByDrain(inForce), true
	case k.isAlone(now):
		l.giveBack(k, cfg.gate, grant)
		return k.admitAlone(inForce, cost, now), true
	}
	a := k.account()
	a.pay(&grant)
	a.Answer = a.answered(r)
	a.Refusal = cfg.refusalOf(a, take, r)
	t := l.termsOf(cfg, &Account{Answer: a.Answer, Hand: Hand{Front: Holding{Deadline: past, Charge: grant.Charge}}}, now)
	if cfg.Mode == CachedDeny && inForce == cfg && a.Until > now {
		k.keep(cfg, a, now)
	} else {
		k.keepExtra(a)
	}
	d := Decision{
		Allowed:    grant.Credits >= cost,
		Source:     FromStore,
		Reason:     r.Reason,
		Limit:      a.Limit,
		Remaining:  r.Remaining,
		ResetAfter: time.Duration(max(0, a.Resets-r.Received)),
		RetryAfter: time.Duration(nanos(r.RetryAfter)),
		Windows:    t.windows,
	}
	k.tell(&d)
	switch {
	case d.Allowed:
		d.Delay = time.Duration(nanos(r.Delay))
		d.from, d.cost = &lease{key: k, deadline: grant.Deadline, terms: t}, cost
		grant.Credits -= cost
	case d.Reason == limiter.Granted: // and went to the debt
		d.Reason, d.RetryAfter = limiter.Exhausted, relent
	}
	l.giveBack(k, cfg.gate, grant)
	return d, true
}
