package twotier

import (
	"time"

	"github.com/weir-dev/weir/pkg/limiter"
)

// MaxPromise is how far ahead Breaker.Promise goes.
const MaxPromise = time.Minute

// A promise is one to begin no window on the local share that starts too early. The zero
// value promises nothing.
type promise struct {
	until   limiter.Instant // by the store's clock: windows may be begun that start then or later
	expires int64           // local instant at which the store's clock has surely come to until
}

// localWindows is what the limiters behind a breaker admit without the store.
type localWindows struct {
	promised promise
	begun    limiter.Instant // start of the newest window that one of them has begun; 0 for none
	unsynced unsynced
}

// unsynced is when a limiter last admitted locally while the store's clock was not known, and an
// local instant at which that window is over; zero for never.
type unsynced struct{ last, expires int64 }

// Promise has the limiters behind the breaker begin no window on their local shares that starts
// before the instant until of the store's clock, which showed now before the call. Windows
// that they have begun go on: begun is the start of the newest one or later, 0 for none. The
// promise is kept from the call on, whatever becomes of the store. None is made when ok is
// false: until is more than MaxPromise ahead, or it is not known what was begun.
func (b *Breaker) Promise(now, until limiter.Instant) (begun limiter.Instant, ok bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	left, local, begun := nanos(until.Sub(now)), b.clock.now(), b.local.begun
	if left > int64(MaxPromise) {
		return 0, false
	}
	if u := b.local.unsynced; u != (unsynced{}) && local < u.expires {
		if !b.offset.known {
			return 0, false
		}
		begun = max(begun, b.offset.interval(u.last).to)
	}
	if p, over := &b.local.promised, local+left+drift(max(0, left)); until > p.until {
		if *p != (promise{}) { // instants may be negative
			over = max(over, p.expires)
		}
		*p = promise{until, over}
	}
	return begun, true
}

// beginLocal notes that a limiter begins to admit locally at the local instant now, as it decided by v. It
// returns false, and v is too old, when there is another promise.
func (b *Breaker) beginLocal(v storeTime, p limiter.Params, now int64) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.local.promised != v.promised {
		return false
	}
	over := now
	for _, r := range p.Rates {
		over = max(over, now+nanos(r.Window))
		if v.clock.known {
			b.local.begun = max(b.local.begun, r.WindowAt(v.clock.interval(now).to).Start())
		}
	}
	if !v.clock.known {
		if u := b.local.unsynced; u != (unsynced{}) {
			over = max(over, u.expires)
		}
		b.local.unsynced = unsynced{now, over}
	}
	return true
}

// servedUpTo returns the latest instant at which a promise takes the store to have served: a
// window that was open then and has no admission here is not begun.
func (p promise) servedUpTo(known bool) limiter.Instant {
	switch {
	case p == promise{}:
		return neverSeen
	case known:
		return p.until - 1
	default:
		return instantOf(p.expires)
	}
}

// timeout returns how long a call of a limiter waits: longer while it may not begin a window
// by itself, since nobody else decides then.
func (b *Breaker) timeout(cfg *settings) time.Duration {
	if cfg.OnUnavailable != LocalShare {
		return cfg.Timeout
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if p := b.local.promised; p == (promise{}) || b.clock.now() >= p.expires {
		return cfg.Timeout
	}
	return max(cfg.Timeout, MoveTime)
}
