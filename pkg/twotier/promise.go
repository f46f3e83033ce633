package twotier

import "github.com/weir-dev/weir/pkg/limiter"

// maxPromise is how far ahead LocalWindows.Promise goes, in nanoseconds.
const maxPromise = 60_000 * millisecond

// A promise is one to begin no window on the local share that starts too early. The zero
// value promises nothing.
type promise struct {
	until   limiter.Instant // by the store's clock: windows may be begun that start then or later
	expires int64           // local instant at which the store's clock has surely come to until
}

// Pending reports whether the promise is to be kept at the local instant now.
func (p promise) Pending(now int64) bool { return p != (promise{}) && now < p.expires }

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

// localWindows is what all keys of a store have begun and promised on their local shares. The
// zero value has begun and promised nothing.
type localWindows struct {
	promised promise
	begun    limiter.Instant // start of the newest window that one of them has begun; 0 for none
	unsynced unsynced
}

// unsynced is when a key last admitted locally while the store's clock was not known, and a
// local instant at which that window is over; zero for never.
type unsynced struct{ last, expires int64 }

// Promised returns the promise in force.
func (w localWindows) Promised() promise { return w.promised }

// Promise begins no window that starts before the instant until of the store's clock, which
// showed at before the local instant now. Windows that were begun go on: begun is the start of
// the newest one or later, 0 for none. No promise is made when ok is false: until is more than
// maxPromise ahead, or it is not known what was begun.
func (w localWindows) Promise(clock clockOffset, at, until limiter.Instant, now int64) (next localWindows, begun limiter.Instant, ok bool) {
	left, begun := Nanos(until.Sub(at)), w.begun
	if left > maxPromise {
		return w, 0, false
	}
	if u := w.unsynced; u != (unsynced{}) && now < u.expires {
		if !clock.known {
			return w, 0, false
		}
		begun = max(begun, clock.interval(u.last).to)
	}
	if p, expires := w.promised, now+left+drift(max(0, left)); until > p.until {
		if p != (promise{}) { // instants may be negative
			expires = max(expires, p.expires)
		}
		w.promised = promise{until, expires}
	}
	return w, begun, true
}

// Begin notes that a key begins to admit locally at the local instant now, as it decided by v.
// It reports false, and v is too old, when there is another promise.
func (w localWindows) Begin(v storeTime, p limiter.Params, now int64) (next localWindows, ok bool) {
	if w.promised != v.promised {
		return w, false
	}
	over := now
	for _, r := range p.Rates {
		over = max(over, now+Nanos(r.Window))
		if v.clock.known {
			w.begun = max(w.begun, r.WindowAt(v.clock.interval(now).to).Start())
		}
	}
	if !v.clock.known {
		if u := w.unsynced; u != (unsynced{}) {
			over = max(over, u.expires)
		}
		w.unsynced = unsynced{now, over}
	}
	return w, true
}
