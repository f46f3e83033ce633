package twotier

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weir-dev/weir/pkg/limiter"
	"github.com/weir-dev/weir/pkg/store"
)

// A Key is one counter of a limiter.
type Key struct {
	lease   atomic.Pointer[lease]   // credits in hand; written with mu held
	refusal atomic.Pointer[refusal] // what needs no asking; written with mu held

	limiter *Limiter
	value   string

	mu      sync.Mutex // guards the rest
	call    *call      // the one outstanding store call
	waiting int64      // cost of the requests that have not been decided
	own     *own       // nil when nothing was admitted without the store
	evicted bool       // no longer in the table: decide on the key that is
}

func newKey(l *Limiter, value string) *Key { return &Key{limiter: l, value: value} }

func (k *Key) storeKey(cfg *Config) store.Key {
	if k.value == "" {
		return store.Key{Scope: cfg.Scope}
	}
	return store.Key{Scope: cfg.Scope, Hash: store.HashValue(k.value)}
}

// Acquire decides a request; see Limiter.Acquire.
func (k *Key) Acquire(ctx context.Context, cost int64) (d Decision, err error) {
	if k.spend(cost, &d) || k.refuse(cost, &d) {
		return d, nil
	}
	return k.miss(ctx, cost)
}

// spend admits a request from the credits in hand.
//
// The clock is read after the credits are taken, never before: a thread that
// loses the processor in between then sees the time at which it goes on, and a
// credit taken too late is found out. Credits taken from a dead lease are not
// put back; they are worth nothing. What else there is to write is written
// before the clock is read, too, and so is out of the way when the caller copies
// the decision.
func (k *Key) spend(cost int64, d *Decision) bool {
	e := k.lease.Load()
	if e == nil || cost < 1 {
		return false
	}
	left, ok := e.take(cost)
	if !ok {
		return false
	}
	d.Allowed = true
	d.Limit = e.limit
	d.Remaining = e.remaining + left
	d.Windows = e.windows
	d.key, d.cost = k, cost
	now := k.limiter.clock.now()
	d.ResetAfter = time.Duration(e.resets - now)
	if now >= e.deadline {
		*d = Decision{}
		return false
	}
	return true
}

// refuse refuses a request that the store is known to refuse, even if all
// credits in hand went to it.
func (k *Key) refuse(cost int64, d *Decision) bool {
	r := k.refusal.Load()
	if r == nil || cost < r.need || r.config != k.limiter.config.Load() {
		return false
	}
	d.Reason = r.reason
	d.Limit = r.limit
	d.Remaining = r.remaining
	d.Windows = r.windows
	now := k.limiter.clock.now()
	d.ResetAfter = time.Duration(max(0, r.resets-now))
	if r.retry {
		d.RetryAfter = time.Duration(r.until - now)
	}
	if now >= r.until || cost-k.lease.Load().held(now) < r.need {
		*d = Decision{}
		return false
	}
	return true
}

// refund puts the cost of a cancelled decision back. Credits of the same windows
// are alike, so the present lease takes it, whichever lease it came from; when
// those windows have no lease any more, it is lost.
func (k *Key) refund(windows *limiter.Windows, cost int64) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if e := k.lease.Load(); e != nil && e.windows.SameWindows(*windows) {
		e.credits.Add(cost)
	}
}

// surrender takes the credits in hand away from the key and returns those that
// are still worth something.
func (k *Key) surrender() (*limiter.Windows, int64) {
	k.mu.Lock()
	defer k.mu.Unlock()
	e := k.lease.Swap(nil)
	if e == nil {
		return nil, 0
	}
	credits := e.drain()
	if k.limiter.clock.now() >= e.deadline {
		return nil, 0
	}
	return e.windows, credits
}

// evict marks the key as gone when nothing it knows matters any more, and
// reports whether it did.
func (k *Key) evict(now int64) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.call != nil || k.waiting > 0 || k.isAlone(now) || k.own != nil {
		return false
	}
	if e := k.lease.Load(); e != nil && now < e.deadline {
		return false
	}
	if r := k.refusal.Load(); r != nil && now < r.until {
		return false
	}
	k.evicted = true
	return true
}
