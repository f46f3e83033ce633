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
func (k *Key) Acquire(ctx context.Context, cost int64) (Decision, error) {
	if d, ok := k.spend(cost); ok {
		return d, nil
	}
	if d, ok := k.refuse(cost); ok {
		return d, nil
	}
	return k.miss(ctx, cost)
}

// spend admits a request from the credits in hand.
func (k *Key) spend(cost int64) (Decision, bool) {
	e := k.lease.Load()
	if e == nil || cost < 1 {
		return Decision{}, false
	}
	left, now, ok := e.spend(k.limiter.clock, cost)
	if !ok {
		return Decision{}, false
	}
	return Decision{
		Allowed:    true,
		Source:     FromLease,
		Limit:      e.limit,
		Remaining:  e.remaining + left,
		ResetAfter: time.Duration(max(0, e.resets-now)),
		Windows:    e.windows,
		key:        k,
		cost:       cost,
	}, true
}

// refuse refuses a request that the store is known to refuse, even if all
// credits in hand went to it.
func (k *Key) refuse(cost int64) (Decision, bool) {
	r := k.refusal.Load()
	if r == nil || cost < r.need || r.config != k.limiter.config.Load() {
		return Decision{}, false
	}
	now := k.limiter.clock.now()
	if now >= r.until || cost-k.lease.Load().held(now) < r.need {
		return Decision{}, false
	}
	d := Decision{
		Source:     FromLease,
		Reason:     r.reason,
		Limit:      r.limit,
		Remaining:  r.remaining,
		ResetAfter: time.Duration(max(0, r.resets-now)),
		Windows:    r.windows,
	}
	if r.retry {
		d.RetryAfter = time.Duration(r.until - now)
	}
	return d, true
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
