package twotier

import (
	"time"

	"github.com/weir-dev/weir/pkg/limiter"
)

// MaxPromise is how far ahead Gate.Promise goes.
const MaxPromise = time.Minute

// A promise is one to begin no window on the local share that starts too early. The zero
// value promises nothing.
type promise struct {
	until limiter.Instant // by the store's clock: windows may be begun that start then or later
	over  int64           // own instant at which the store's clock has surely come to until
}

// alone is what the limiters behind a gate do without the store.
type alone struct {
	promised promise
	begun    limiter.Instant // start of the newest window that one of them has begun; 0 for none
	blind    blind
}

// blind is when a limiter last went by itself while the store's clock was not known, and an
// own instant at which that window is over; zero for never.
type blind struct{ last, over int64 }

// Promise has the limiters behind the gate begin no window on their local shares that starts
// before the instant until of the store's clock, which showed now before the call. Windows
// that they have begun go on: begun is the start of the newest one or later, 0 for none. The
// promise is kept from the call on, whatever becomes of the store. None is made when ok is
// false: until is more than MaxPromise ahead, or it is not known what was begun.
func (g *Gate) Promise(now, until limiter.Instant) (begun limiter.Instant, ok bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	left, own, begun := nanos(until.Sub(now)), g.clock.now(), g.alone.begun
	if left > int64(MaxPromise) {
		return 0, false
	}
	if b := g.alone.blind; b != (blind{}) && own < b.over {
		if !g.offset.known {
			return 0, false
		}
		begun = max(begun, g.offset.span(b.last).to)
	}
	if p, over := &g.alone.promised, own+left+drift(max(0, left)); until > p.until {
		if *p != (promise{}) { // instants may be negative
			over = max(over, p.over)
		}
		*p = promise{until, over}
	}
	return begun, true
}

// begins notes that a limiter goes by itself at the own instant now, as it decided by v. It
// returns false, and v is too old, when there is another promise.
func (g *Gate) begins(v view, p limiter.Params, now int64) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.alone.promised != v.promised {
		return false
	}
	over := now
	for _, r := range p.Rates {
		over = max(over, now+nanos(r.Window))
		if v.clock.known {
			g.alone.begun = max(g.alone.begun, r.WindowAt(v.clock.span(now).to).Start())
		}
	}
	if !v.clock.known {
		if b := g.alone.blind; b != (blind{}) {
			over = max(over, b.over)
		}
		g.alone.blind = blind{now, over}
	}
	return true
}

// forbids returns the latest instant at which a promise takes the store to have served: a
// window that was open then and has no admission here is not begun.
func (p promise) forbids(known bool) limiter.Instant {
	switch {
	case p == promise{}:
		return unseen
	case known:
		return p.until - 1
	default:
		return instantOf(p.over)
	}
}

// patience returns how long a call of a limiter waits: longer while it may not begin a window
// by itself, since nobody else decides then.
func (g *Gate) patience(cfg *settings) time.Duration {
	if cfg.OnUnavailable != LocalShare {
		return cfg.Timeout
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if p := g.alone.promised; p == (promise{}) || g.clock.now() >= p.over {
		return cfg.Timeout
	}
	return max(cfg.Timeout, MoveTime)
}
