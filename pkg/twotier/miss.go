package twotier

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/weir-dev/weir/pkg/limiter"
	"github.com/weir-dev/weir/pkg/store"
	"github.com/weir-dev/weir/pkg/twotier/account"
)

const (
	// maxJoins is how many leases one request waits for. It is part of what the next one
	// asks for, but the store may grant less than all wait for: half of what is left at
	// least, so that few go without so often. Then they ask for themselves.
	maxJoins = 10
	// maxRounds is how many store calls one request waits for.
	maxRounds = maxJoins + 2
)

// errOutrun is for a request that no call brought an answer that held: each came too late,
// or other settings were in force by then. That says nothing about the limit.
var errOutrun = fmt.Errorf("%d calls in a row brought no answer that can be used", maxRounds)

// miss decides a request that held credits and remembered refusals do not.
func (k *Key) miss(ctx context.Context, cost int64) (Decision, error) {
	if cost < 1 {
		return Decision{}, fmt.Errorf("cost is %d, want at least 1", cost)
	}
	l := k.limiter()
	// A cost that is never granted does not wait: the next call would ask for it.
	if d, ok := k.tooLarge(l.settings.Load(), cost); ok {
		return d, nil
	}
	w := &waiter{cost: cost, came: l.clock.now()}
	for !k.register(w) {
		k = l.Key(split(k.lease.Load().name, k.tenanted))
	}
	defer k.finish(w)
	for round := range maxRounds {
		cfg := l.settings.Load()
		if d, ok := k.tooLarge(cfg, cost); ok {
			return d, nil
		}
		if cfg.Mode != Leased || l.slow.tooSlow(cfg) || round >= maxJoins {
			d, ok, err := k.decideByStore(ctx, cfg, w, round)
			if ok {
				return d, err
			}
			continue
		}
		if d, ok, err := k.wait(ctx, w); ok {
			return d, err
		}
	}
	return k.decideFailed(cost, &store.UnavailableError{Store: "the store of " + l.settings.Load().Scope.String(), Cause: errOutrun})
}

// wait decides the request if it can be decided now, or else waits for a call. It reports
// false when the request has to be decided again. That is after the first call that fails,
// too, while the request has patience left: one lost reply is not an outage. The next call
// is waited for no longer than that.
func (k *Key) wait(ctx context.Context, w *waiter) (Decision, bool, error) {
	patient := ctx
	if w.lost != nil {
		var cancel context.CancelFunc
		patient, cancel = k.limiter().clock.within(ctx, k.patience(w))
		defer cancel()
	}
	d, c, err := k.join(patient, w)
	if c == nil {
		return d, true, err
	}
	if err := k.limiter().clock.wait(patient, c.done); err != nil {
		if ctx.Err() == nil {
			d, err = k.givenUp(w)
		}
		return d, true, err
	}
	switch {
	case c.err == nil || c.cfg.breaker != k.limiter().settings.Load().breaker:
		return Decision{}, false, nil
	case w.lost == nil && k.patience(w) > 0:
		if _, lost := unavailableBy(c.err); lost {
			w.lost = c.err
			return Decision{}, false, nil
		}
	}
	d, err = k.decideFailed(w.cost, c.err)
	return d, true, err
}

// join decides the request if it can be decided now. Otherwise it returns the
// call in progress, or a new one, which it carries out when ctx leaves the time.
func (k *Key) join(ctx context.Context, w *waiter) (Decision, *call, error) {
	d, c, isCaller, err := k.decideOrCall(ctx, w)
	if !isCaller {
		return d, c, err
	}
	defer k.limiter().work.Done()
	k.fetch(c)
	if err := ctx.Err(); err != nil {
		return Decision{}, nil, err // and spends nothing of what it fetched
	}
	return Decision{}, c, nil
}

// decideOrCall is join without carrying out a call of the request's own.
func (k *Key) decideOrCall(ctx context.Context, w *waiter) (d Decision, c *call, isCaller bool, err error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if d, ok := k.takeDecision(w); ok {
		return d, nil, false, nil
	}
	l, cost := k.limiter(), w.cost
	cfg, now := l.settings.Load(), l.clock.now()
	if cfg.Draining {
		return l.refusedByDrain(cfg), nil, false, nil
	}
	// The grant of the call that just ended is visible under the lock.
	k.promote(cfg, now, cost)
	if k.lease.Load().decide(l, cost, &d) {
		k.inflight.queue.remove(w)
		k.setPaid(&d)
		return d, nil, false, nil
	}
	if c := k.inflight.call; c != nil && c.cfg.breaker == cfg.breaker {
		k.inflight.queue.add(w)
		return Decision{}, c, false, nil
	}
	if k.onLocalShare(now) {
		return k.decideLocally(cfg, cost, now), nil, false, nil
	}
	if err := cfg.unavailable(); err != nil {
		d, err := k.applyFailureAction(cfg, cost, now, err)
		return d, nil, false, err
	}
	k.inflight.queue.add(w)
	take := cfg.Ask(k.peekAccount(), cfg.paramsOf(k.value()), now, k.inflight.queue.first(), k.inflight.cost, l.holders.Load())
	if l.callsInline(ctx, cfg) && l.begin() {
		return Decision{}, k.beginCall(cfg, take, maxAsks), true, nil
	}
	if !k.callAsync(cfg, take, maxAsks) {
		return l.refused(cfg), nil, false, nil
	}
	return Decision{}, k.inflight.call, false, nil
}

// callsInline reports whether a request may carry out a call itself, which spares two
// changes of goroutine. The call is of use to others, so it is not given up with the
// request: the deadline of ctx has to be later than any call ends. A request that is
// cancelled without a deadline learns of it when the call ends.
func (l *Limiter) callsInline(ctx context.Context, cfg *settings) bool {
	deadline, ok := ctx.Deadline()
	return l.clock.virtual == nil && (!ok || time.Until(deadline) > (maxAsks+1)*cfg.breaker.timeout(cfg)+MoveTime)
}

// tooLarge refuses a request that costs more than will ever be granted.
func (k *Key) tooLarge(cfg *settings, cost int64) (Decision, bool) {
	most := account.LargestCost(cfg.paramsOf(k.value()))
	if cost <= most {
		return Decision{}, false
	}
	windows := k.limiter().windows.latest.Load()
	return Decision{Source: FromLease, Reason: limiter.TooLarge, Limit: most, Windows: windows}, true
}

// decideFailed decides a request whose store call ended in an error.
func (k *Key) decideFailed(cost int64, err error) (Decision, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	l := k.limiter()
	cfg := l.settings.Load()
	switch {
	case l.ctx.Err() != nil:
		return l.refused(cfg), nil
	case cfg.Draining:
		return l.refusedByDrain(cfg), nil
	default:
		return k.applyFailureAction(cfg, cost, l.clock.now(), err)
	}
}

// applyFailureAction decides without the store, as the policy says, and only when the
// error says that the store is unavailable; mu is held.
func (k *Key) applyFailureAction(cfg *settings, cost, now int64, err error) (Decision, error) {
	if _, ok := errors.AsType[*store.UnavailableError](err); !ok {
		return Decision{}, err
	}
	l := k.limiter()
	switch cfg.OnUnavailable {
	case LocalShare:
		return k.decideLocally(cfg, cost, now), nil
	case Allow:
		return l.allowed(cfg, now), nil
	case Deny:
		return l.withoutStore(cfg, now), nil
	default:
		return Decision{}, fmt.Errorf("unknown action %d: %w", cfg.OnUnavailable, err)
	}
}

// allowed admits a request whatever the store would say.
func (l *Limiter) allowed(cfg *settings, now int64) Decision {
	d := l.withoutStore(cfg, now)
	d.Allowed, d.Reason, d.RetryAfter = true, limiter.Granted, 0
	return d
}
