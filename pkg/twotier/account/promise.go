package account

import "github.com/weir-dev/weir/pkg/limiter"

// MaxPromise is how far ahead LocalWindows.Promise goes, in nanoseconds.
const MaxPromise = 60_000 * millisecond

// A Promise is one to begin no window on the local share that starts too early. The zero
// value promises nothing.
type Promise struct {
	Until   limiter.Instant // by the store's clock: windows may be begun that start then or later
	Expires int64           // local instant at which the store's clock has surely come to until
}

// servedUpTo returns the latest instant at which a promise takes the store to have served: a
// window that was open then and has no admission here is not begun.
func (p Promise) servedUpTo(known bool) limiter.Instant {
	switch {
	case p == Promise{}:
		return NeverSeen
	case known:
		return p.Until - 1
	default:
		return instantOf(p.Expires)
	}
}

// LocalWindows is what all keys of a store have begun and promised on their local shares. The
// zero value has begun and promised nothing.
type LocalWindows struct {
	promised Promise
	begun    limiter.Instant // start of the newest window that one of them has begun; 0 for none
	unsynced unsynced
}

// unsynced is when a key last admitted locally while the store's clock was not known, and a
// local instant at which that window is over; zero for never.
type unsynced struct{ last, expires int64 }

// Promised returns the promise in force.
func (w LocalWindows) Promised() Promise { return w.promised }

// Promise begins no window that starts before the instant until of the store's clock, which
// showed at before the local instant now. Windows that were begun go on: begun is the start of
// the newest one or later, 0 for none. No promise is made when ok is false: until is more than
// MaxPromise ahead, or it is not known what was begun.
func (w LocalWindows) Promise(clock ClockOffset, at, until limiter.Instant, now int64) (next LocalWindows, begun limiter.Instant, ok bool) {
	left, begun := Nanos(until.Sub(at)), w.begun
	if left > MaxPromise {
		return w, 0, false
	}
	if u := w.unsynced; u != (unsynced{}) && now < u.expires {
		if !clock.Known {
			return w, 0, false
		}
		begun = max(begun, clock.Interval(u.last).To)
	}
	if p, expires := w.promised, now+left+drift(max(0, left)); until > p.Until {
		if p != (Promise{}) { // instants may be negative
			expires = max(expires, p.Expires)
		}
		w.promised = Promise{until, expires}
	}
	return w, begun, true
}

// Begin notes that a key begins to admit locally at the local instant now, as it decided by v.
// It reports false, and v is too old, when there is another promise.
func (w LocalWindows) Begin(v StoreTime, p limiter.Params, now int64) (next LocalWindows, ok bool) {
	if w.promised != v.Promised {
		return w, false
	}
	over := now
	for _, r := range p.Rates {
		over = max(over, now+Nanos(r.Window))
		if v.Clock.Known {
			w.begun = max(w.begun, r.WindowAt(v.Clock.Interval(now).To).Start())
		}
	}
	if !v.Clock.Known {
		if u := w.unsynced; u != (unsynced{}) {
			over = max(over, u.expires)
		}
		w.unsynced = unsynced{now, over}
	}
	return w, true
}
