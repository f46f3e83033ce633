package twotier

import (
	"context"
	"time"

	"github.com/weir-dev/weir/pkg/limiter"
	"github.com/weir-dev/weir/pkg/twotier/account"
)

// decideByStore decides one request by the store, in modes Strict and CachedDeny, and in mode
// Leased when leases come too late or brought it nothing. It reports false when the request
// has to be decided again, which tries counts.
func (k *Key) decideByStore(ctx context.Context, cfg *settings, w *waiter, tries int) (Decision, bool, error) {
	l, cost := k.limiter(), w.cost
	if d, ok := k.decideBeforeCall(w); ok {
		return d, true, nil
	}
	if l.isClosed() {
		return l.refused(cfg), true, nil
	}
	if cfg.Draining { // and another store serves since it was loaded
		return Decision{}, false, nil
	}
	debt := k.owes()
	if tries < maxCombined && debt == 0 && cfg.combines(cost) && !l.slow.tooSlow(cfg) {
		return k.combineCall(ctx, cfg)
	}
	take := limiter.Command{Op: limiter.Take, Min: cost, Want: cost}
	if debt > 0 {
		take.Min, take.Want = 1, min(cost+debt, limiter.MaxLimit) // a part of the debt is better than none
	}
	return k.callStore(ctx, cfg, take, cost)
}

// callStore decides one request by a call of its own.
func (k *Key) callStore(ctx context.Context, cfg *settings, take limiter.Command, cost int64) (Decision, bool, error) {
	// take returns a grant only while it can be used, which is checked after the
	// wait for it. A grant that lives too shortly for the store is of use to the
	// request that was waiting when it was granted.
	asks, slow := maxAsks, k.limiter().slow.tooSlow(cfg)
	if slow {
		asks = 1
	}
	k.mu.Lock()
	c := k.newCall(cfg, take, asks)
	k.mu.Unlock()
	r, ok, err := k.take(ctx, c)
	if err != nil {
		return k.decideUnanswered(ctx, cfg, cost, err)
	}
	if !ok || slow && r.Algorithm.WindowCoupled() && r.Late(k.limiter().clock.now()) {
		return Decision{}, false, nil
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	v, ok := k.settleDirect(c, r, cost, 1)
	if !ok {
		return Decision{}, false, nil
	}
	d, ok := v.next(k)
	return d, ok, nil
}

// decideUnanswered decides a request whose call ended in an error.
func (k *Key) decideUnanswered(ctx context.Context, cfg *settings, cost int64, err error) (Decision, bool, error) {
	switch {
	case ctx.Err() != nil:
		return Decision{}, true, ctx.Err()
	case k.limiter().settings.Load().breaker != cfg.breaker:
		return Decision{}, false, nil
	default:
		d, err := k.decideFailed(cost, err)
		return d, true, err
	}
}

// decideBeforeCall decides a request that the store must not be asked for, or need not. It no longer
// waits for calls of others.
func (k *Key) decideBeforeCall(w *waiter) (d Decision, ok bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.inflight.queue.remove(w)
	if d, ok := k.takeDecision(w); ok {
		return d, true
	}
	l, cost := k.limiter(), w.cost
	cfg, now := l.settings.Load(), l.clock.now()
	switch {
	case cfg.Draining:
		return l.refusedByDrain(cfg), true
	case k.onLocalShare(now):
		return k.decideLocally(cfg, cost, now), true
	case cfg.Mode == Leased:
		k.promote(cfg, now, cost)
	}
	return d, k.lease.Load().decide(l, cost, &d)
}

// settleDirect makes a reply effective for the number of requests of the cost; mu is held.
// It reports false when they have to be decided again: because another store serves
// now or is about to, or the open window began on the local share meanwhile. Granted
// units that pay for none of them go back.
func (k *Key) settleDirect(c *call, r account.Reply, cost, requests int64) (replyDecision, bool) {
	l := k.limiter()
	cfg, now, inForce := c.cfg, l.clock.now(), l.settings.Load()
	switch {
	case inForce.breaker != cfg.breaker:
		return replyDecision{}, false
	case inForce.Draining || k.onLocalShare(now):
		l.returnAsync(k, cfg.breaker, account.GrantOf(r.Sent, r.Result))
		return replyDecision{}, false
	}
	a, grant := cfg.SettleDirect(k.takeAccount(), c.want.command(), r)
	a = a.Returned(k.returnedSince(c))
	t := l.infoOf(cfg, &account.State{Answer: a.Answer, Balance: account.Balance{Front: account.Grant{Deadline: account.Past, Charge: grant.Charge}}}, now)
	if cfg.remembersReplies() && inForce == cfg && a.Until > now {
		k.setAccount(cfg, a, now)
	} else { // a grant may have been made before what is refused since
		k.restoreAccount(a)
		k.setRare(a)
	}
	v := replyDecision{cost: cost, admits: min(grant.Credits/cost, requests), Decision: Decision{
		Source:     FromStore,
		Reason:     r.Reason,
		Limit:      a.Limit,
		Remaining:  r.Remaining,
		ResetAfter: time.Duration(max(0, a.Resets-r.Received)),
		RetryAfter: time.Duration(account.Nanos(r.RetryAfter)),
		Windows:    t.windows,
	}}
	switch {
	case r.Unknown:
		v.Source = FromFailureAction
	case v.admits > 0:
		v.Delay = time.Duration(account.Nanos(r.Delay))
		v.from = &lease{key: k, deadline: grant.Deadline, info: t}
		grant.Credits -= v.admits * cost
	case v.Reason == limiter.Granted: // and went to the debt
		v.Reason, v.RetryAfter = limiter.Exhausted, account.DefaultRefusal
	}
	l.returnAsync(k, cfg.breaker, grant)
	return v, true
}

// remembersReplies reports whether what a store said to one request is said to the next. Where
// leases are asked for beside it, an older answer would take the place of theirs.
func (s *settings) remembersReplies() bool {
	return s.Mode == CachedDeny || s.Mode == Leased && !s.Params.Algorithm.WindowCoupled()
}

// A replyDecision is what a reply means for the requests that it answers.
type replyDecision struct {
	Decision       // of the last that is admitted, or of all when none is
	admits   int64 // requests that it admits yet
	cost     int64 // of each
}

// next decides a request by the verdict; mu is held. It reports false for one that
// is left over: others were admitted, and what the store says to it is not known.
func (v *replyDecision) next(k *Key) (Decision, bool) {
	d := v.Decision
	switch {
	case v.admits > 0:
		v.admits--
		d.Allowed, d.cost = true, v.cost
		d.Remaining += v.admits * v.cost
	case d.Reason == limiter.Granted:
		return Decision{}, false
	}
	k.setPaid(&d)
	return d, true
}
