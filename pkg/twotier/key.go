package twotier

import (
	"context"
	"sync"
	"sync/atomic"

	"github.com/weir-dev/weir/pkg/limiter"
	"github.com/weir-dev/weir/pkg/store"
)

// A Key is one counter of a limiter.
type Key struct {
	lease   atomic.Pointer[lease] // never nil; written with mu held
	limiter *Limiter
	value   string

	mu      sync.Mutex // guards the rest; taken before the table's
	call    *call      // the one outstanding store call
	waiting int64      // cost of the requests that have not been decided
	own     *own       // nil when nothing was admitted without the store
	evicted bool       // no longer in the table: decide on the key that is
}

func newKey(l *Limiter, value string) *Key {
	k := &Key{limiter: l, value: value}
	k.lease.Store(k.blank())
	return k
}

// blank returns a lease that neither admits nor refuses anything.
func (k *Key) blank() *lease {
	return &lease{key: k, value: k.value, deadline: past, view: &noView, refusal: &noRefusal}
}

// publish makes e the key's lease; mu is held. When the key was evicted, its
// value may belong to another key by now.
func (k *Key) publish(e *lease) {
	k.lease.Store(e)
	if !k.evicted {
		k.limiter.keys.update(e)
	}
}

func (k *Key) storeKey(cfg *Config) store.Key {
	if k.value == "" {
		return store.Key{Scope: cfg.Scope}
	}
	return store.Key{Scope: cfg.Scope, Hash: store.HashValue(k.value)}
}

// Acquire decides a request; see Limiter.Acquire.
func (k *Key) Acquire(ctx context.Context, cost int64) (d Decision, err error) {
	if k.lease.Load().decide(k.limiter, cost, &d) {
		return d, nil
	}
	return k.miss(ctx, cost)
}

// refund puts the cost of a cancelled decision back. Credits of the same windows
// are alike, so the present lease takes it, whichever lease it came from; when
// the key has no lease of those windows any more, it is lost.
func (k *Key) refund(windows *limiter.Windows, cost int64) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if e := k.lease.Load(); e.chargedTo(windows) {
		e.credits.Add(cost)
	}
}

// surrender takes the credits in hand away from the key and returns those that
// are still worth something.
func (k *Key) surrender() (*limiter.Windows, int64) {
	k.mu.Lock()
	defer k.mu.Unlock()
	e := k.lease.Load()
	k.publish(k.blank())
	credits := e.drain()
	if k.limiter.clock.now() >= e.deadline {
		return nil, 0
	}
	return e.view.windows, credits
}

// evict marks the key as gone when it is idle: nothing it knows matters any
// more. It reports whether it did. A key that is locked is not idle, and waiting
// for it here would turn the order of locks around.
func (k *Key) evict(now int64) bool {
	if !k.mu.TryLock() {
		return false
	}
	defer k.mu.Unlock()
	e, busy := k.lease.Load(), k.call != nil || k.waiting > 0
	if busy || now < e.deadline || now < e.refusal.until || k.isAlone(now) || k.own != nil {
		return false
	}
	k.evicted = true
	return true
}
