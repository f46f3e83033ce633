package twotier

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/weir-dev/weir/pkg/limiter"
	"github.com/weir-dev/weir/pkg/store"
)

// Bounds on asking again. A grant may arrive too late to be used, and what
// arrives may be spent by others; both end, because a request that has to wait
// is part of what the next call asks for.
const (
	maxRounds = 8 // store calls one request waits for
	maxAsks   = 3 // attempts of one call whose grants come too late
)

// relent is how long a refusal is remembered that names no time of its own.
const relent = time.Second

// A call is a store call under way. Requests that miss meanwhile wait for it.
type call struct {
	done chan struct{} // closed when the fields below are set
	err  error
}

// miss decides a request that credits in hand and remembered refusals do not.
func (k *Key) miss(ctx context.Context, cost int64) (Decision, error) {
	if cost < 1 {
		return Decision{}, fmt.Errorf("cost is %d, want at least 1", cost)
	}
	// What is never granted does not wait: the next call would ask for it.
	if r := k.limiter.config.Load().tightest(); cost > r.Limit {
		return k.limiter.tooLarge(r), nil
	}
	for !k.enter(cost) {
		k = k.limiter.Key(k.value)
	}
	defer k.leave(cost)
	for range maxRounds {
		cfg := k.limiter.config.Load()
		if r := cfg.tightest(); cost > r.Limit {
			return k.limiter.tooLarge(r), nil
		}
		if cfg.Mode == Strict {
			return k.strict(ctx, cfg, cost)
		}
		d, c, err := k.join(cfg, cost)
		if c == nil {
			return d, err
		}
		select {
		case <-c.done:
		case <-ctx.Done():
			return Decision{}, ctx.Err()
		}
		if c.err != nil {
			return k.failed(cfg, cost, c.err)
		}
	}
	return k.limiter.outrun(k.limiter.config.Load()), nil
}

// enter registers a request as waiting. It returns false when the key was
// evicted in the meantime.
func (k *Key) enter(cost int64) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.evicted {
		return false
	}
	k.waiting += cost
	return true
}

func (k *Key) leave(cost int64) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.waiting -= cost
}

// join decides the request if it can be decided now. Otherwise it returns the
// call under way, or a new one.
func (k *Key) join(cfg *Config, cost int64) (Decision, *call, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	// What the call that just ended brought is visible under the lock.
	var d Decision
	if k.lease.Load().decide(k.limiter, cost, &d) {
		return d, nil, nil
	}
	if k.call != nil {
		return Decision{}, k.call, nil
	}
	now := k.limiter.clock.now()
	if k.isAlone(now) {
		return k.admitAlone(cfg, cost, now), nil, nil
	}
	if err := k.limiter.gate.closed(); err != nil {
		d, err := k.unavailable(cfg, cost, now, err)
		return d, nil, err
	}
	// Credits in hand are too few but count: they join what is granted.
	need := cost - k.lease.Load().held(now)
	take := limiter.Command{
		Op:   limiter.Take,
		Min:  max(need, 1),
		Want: min(max(need, k.limiter.batch(cfg), k.waiting), limiter.MaxLimit),
	}
	c := &call{done: make(chan struct{})}
	if !k.limiter.start(func() { k.fetch(c, cfg, take) }) {
		return k.limiter.refused(cfg), nil, nil
	}
	k.call = c
	return Decision{}, c, nil
}

// batch returns the units a lease asks for ahead of demand: the configured batch,
// but no more than one holder's fair part of the limit. Of a small budget the
// first to ask would otherwise take all, for requests that go to others.
func (l *Limiter) batch(cfg *Config) int64 {
	fair := cfg.Batch
	if n := l.holders.Load(); n > 0 {
		fair = (cfg.tightest().Limit + n - 1) / n
	}
	return min(cfg.Batch, fair)
}

// fetch carries out a call. It belongs to the limiter, not to a request: a
// client that goes away does not fail the others that wait.
func (k *Key) fetch(c *call, cfg *Config, take limiter.Command) {
	r, err := k.take(k.limiter.ctx, cfg, take)
	k.mu.Lock()
	defer k.mu.Unlock()
	switch {
	case err != nil:
	case k.isAlone(k.limiter.clock.now()):
		// The reply told the store's clock, and by that the open window began on
		// the local share. The requests that wait are decided on it, too.
		k.forgo(r)
	default:
		k.settle(cfg, take, r)
	}
	c.err = err
	k.call = nil
	close(c.done)
}

// take asks for a grant until one can be used: one whose deadline has passed
// when it arrives is dropped, for its windows may be over. Its next attempt
// comes when they are.
func (k *Key) take(ctx context.Context, cfg *Config, take limiter.Command) (reply, error) {
	for range maxAsks {
		r, err := k.limiter.ask(ctx, k, cfg, take)
		if err != nil || r.Granted == 0 {
			return r, err
		}
		now := k.limiter.clock.now()
		if now < deadlineOf(r.sent, r.ExpiresIn) {
			return r, nil
		}
		if err := sleep(ctx, time.Duration(r.sent+nanos(r.ExpiresIn)-now)); err != nil {
			return r, err
		}
	}
	// The store answers slower than windows pass: stop using them up.
	now := k.limiter.clock.now()
	pause := limiter.Micros(relent / time.Microsecond)
	return reply{sent: now, received: now, Result: limiter.Result{Reason: limiter.Exhausted, RetryAfter: pause}}, nil
}

func sleep(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return ctx.Err()
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// settle makes a reply effective; mu is held.
func (k *Key) settle(cfg *Config, take limiter.Command, r reply) {
	if r.Granted > 0 && k.limiter.config.Load().Mode == Strict {
		k.forgo(r) // a strict limiter holds no credits
		return
	}
	old, next := k.lease.Load(), k.blank()
	next.view, next.remaining = k.limiter.viewOf(cfg, &r, old.view), r.Remaining
	next.refusal = k.limiter.refusals.share(refusalOf(cfg, take, &r, next.view.resets))
	next.deadline = old.deadline
	if r.Granted > 0 {
		next.deadline = deadlineOf(r.sent, r.ExpiresIn)
	}
	// Credits left over are charged to the same windows, or they are void. They
	// get the new deadline, which bounds the end of the same windows.
	credits := r.Granted
	if left := old.drain(); k.limiter.clock.now() < old.deadline && old.chargedTo(next.view.windows) {
		credits += left
	}
	next.credits.Store(credits)
	k.publish(next)
}

// forgo gives back a grant that may not be used.
func (k *Key) forgo(r reply) {
	if r.Granted > 0 {
		k.limiter.giveBack(k, &r.Windows, r.Granted)
	}
}

// viewOf reads a reply. One that names no windows leaves what was known.
func (l *Limiter) viewOf(cfg *Config, r *reply, known *view) *view {
	switch {
	case r.Windows.N > 0:
		v := viewOf(r, l.share(r.Windows))
		// A view of the same windows that was received earlier ends earlier, and is
		// right, too.
		if last := l.views.latest.Load(); last != nil && last.windows == v.windows && last.limit == v.limit {
			v.resets = last.resets
		}
		return l.views.share(v)
	case known.windows != nil:
		return known
	default:
		return &view{windows: l.windows.latest.Load(), limit: cfg.tightest().Limit}
	}
}

// failed decides a request whose store call ended in an error.
func (k *Key) failed(cfg *Config, cost int64, err error) (Decision, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.limiter.ctx.Err() != nil {
		return k.limiter.refused(cfg), nil
	}
	return k.unavailable(cfg, cost, k.limiter.clock.now(), err)
}

// unavailable decides without the store, as the policy says, and only when the
// error says that the store is unavailable; mu is held.
func (k *Key) unavailable(cfg *Config, cost, now int64, err error) (Decision, error) {
	if _, ok := errors.AsType[*store.UnavailableError](err); !ok {
		return Decision{}, err
	}
	switch cfg.OnUnavailable {
	case LocalShare:
		return k.admitAlone(cfg, cost, now), nil
	case Allow:
		d := k.limiter.withoutStore(cfg, now)
		d.Allowed, d.Reason, d.RetryAfter = true, limiter.Granted, 0
		return d, nil
	case Deny:
		return k.limiter.withoutStore(cfg, now), nil
	default:
		return Decision{}, fmt.Errorf("unknown action %d: %w", cfg.OnUnavailable, err)
	}
}
