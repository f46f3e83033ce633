package twotier

import (
	"context"
	"time"

	"github.com/weir-dev/weir/pkg/limiter"
	"github.com/weir-dev/weir/pkg/store"
	"github.com/weir-dev/weir/pkg/twotier/account"
)

// A Reconnecting store is thought available again as soon as there is a new connection to it:
// its breaker closes, and no window that begins from then on begins on the local share before
// the store was asked. When it dies, its connections end, and calls fail at once. So silence on one
// rather shows a store that is slow and serves others, and is waited out for SilenceTime.
type Reconnecting interface {
	// Connections returns how many there have been, and until when the store may have granted others
	// of any window: when the last one was lost that was, or when an answer came later than anybody
	// waited for it. It is the zero time for neither.
	Connections() (n uint64, lost time.Time)
	// Moved reports whether the nth connection ended because the store moves, and there is another
	// one: a call that failed meanwhile is not a failure of the store, and is made again.
	// While the store moves, Moved waits for that, at most for MoveTime since the connection ended;
	// otherwise it returns at once.
	Moved(ctx context.Context, n uint64) bool
}

// MoveTime is how long calls wait for a store that moves. Then it is unavailable.
const MoveTime = time.Second

// SilenceTime is how long calls at least wait for an answer over a connection that stands, before a
// window is begun on the local share.
const SilenceTime = time.Second

// checkConnection closes the breaker when there is a new connection to the store. The lock is held.
func (b *Breaker) checkConnection() {
	r, ok := b.store.(Reconnecting)
	if !ok {
		return
	}
	if n, _ := r.Connections(); n != b.connection {
		b.connection, b.circuit = n, circuit{failures: failuresToOpen - 1, epoch: b.circuit.epoch + 1}
		clear(b.parts)
	}
}

// MaxPromise is how far ahead Breaker.Promise goes.
const MaxPromise time.Duration = account.MaxPromise

// Promise has the limiters behind the breaker begin no window on their local shares that starts
// before the instant until of the store's clock, which showed now before the call. Windows
// that they have begun go on: begun is the start of the newest one or later, 0 for none. The
// promise is kept from the call on, whatever becomes of the store. None is made when ok is
// false: until is more than MaxPromise ahead, or it is not known what was begun.
func (b *Breaker) Promise(now, until limiter.Instant) (begun limiter.Instant, ok bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.local, begun, ok = b.local.Promise(b.offset, now, until, b.clock.now())
	return begun, ok
}

// beginLocal notes that a limiter begins to admit locally at the local instant now, as it
// decided by v. It reports false, and v is too old, when there is another promise.
func (b *Breaker) beginLocal(v account.StoreTime, p limiter.Params, now int64) (ok bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.local, ok = b.local.Begin(v, p, now)
	return ok
}

// timeout returns how long a call of a limiter waits: longer over a connection whose end would be
// known, where the limiter would begin a window that the store may be granting others of.
func (b *Breaker) timeout(cfg *settings) time.Duration {
	if cfg.OnUnavailable != LocalShare {
		return cfg.Timeout
	}
	if r, ok := b.store.(Reconnecting); ok {
		if n, _ := r.Connections(); n > 0 {
			return max(cfg.Timeout, SilenceTime)
		}
	}
	return cfg.Timeout
}

// account.StoreTime returns what is known of the store's time: it was last heard of when it may have
// granted units of the counter. While only the part that the counter is in is away,
// replies to the others do not advance that.
func (b *Breaker) storeTime(key store.Key) account.StoreTime {
	b.mu.Lock()
	defer b.mu.Unlock()
	v := account.StoreTime{Clock: b.offset, Seen: b.seen, Floor: b.floor, Swapped: account.Past, Promised: b.local.Promised()}
	if c := b.partCircuit(key); c != nil {
		v.Seen = c.seen
	}
	return v
}

// storeClock returns what is known of the store's clock.
func (b *Breaker) storeClock() account.ClockOffset {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.offset
}

// raiseFloor notes the floor of windows that a key forgets.
func (b *Breaker) raiseFloor(floor limiter.Instant) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.floor = max(b.floor, floor)
}

// disconnectedAt returns the instant until which there was a connection to the store although
// nothing was asked; past when that is not known.
func (b *Breaker) disconnectedAt() int64 {
	r, ok := b.store.(Reconnecting)
	if !ok {
		return account.Past
	}
	_, lost := r.Connections()
	if lost.IsZero() {
		return account.Past
	}
	return b.clock.now() - int64(time.Since(lost))
}

// A learning is a refusal by which the store said that it cannot know what it granted
// before. It is one for all keys of the limit: they share the store's memory.
type learning struct {
	reason limiter.Reason
	until  int64 // local instant
}

// noteLearning notes the answer to a take.
func (l *Limiter) noteLearning(r account.Reply) {
	switch r.Reason {
	case limiter.Amnesia, limiter.ClockBehind:
		l.learning.Store(&learning{reason: r.Reason, until: r.Received + account.Nanos(r.RetryAfter)})
	case limiter.Granted:
		if l.learning.Load() != nil { // mostly nothing is written
			l.learning.Store(nil)
		}
	case limiter.Exhausted, limiter.TooLarge, limiter.StaleGeneration, limiter.Forfeited:
		// They do not show what the store remembers.
	}
}

// isLearning returns for how long the store goes on so, and why.
func (l *Limiter) isLearning() (limiter.Reason, time.Duration) {
	v := l.learning.Load()
	if v == nil {
		return limiter.Granted, 0
	}
	left := time.Duration(v.until - l.clock.now())
	if left <= 0 {
		return limiter.Granted, 0
	}
	return v.reason, left
}
