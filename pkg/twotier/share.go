package twotier

import (
	"math"
	"time"

	"github.com/weir-dev/weir/pkg/limiter"
)

// own is what this process admitted for one key without the store. The zero
// value has admitted nothing. It keeps this promise: in every window the key is
// charged either at the store or here, never at both, and here at most its part.
//
// Algorithms that have no windows are worked in aligned windows of the same
// length, with half the part. An interval meets at most one such window more than
// fit into it, so what all processes admit in it together is
//
//	at most  ½ · min(limit, burst) · (length/window + 2)
//
// which is never more than the burst and what flows in meanwhile, nor, within one
// window's length, than the limit. They also begin one window later: after what the
// store granted last has expired, and a whole window more, in which the tokens flow
// in that are given out here. So the promise holds across the begin of an outage,
// and while every process is cut off; an interval that holds the end of an outage
// may see the parts of one window more.
type own struct {
	ledger ledger
	last   int64           // instant of the last admission
	newest limiter.Instant // that the store's clock may have shown then; 0 while it was never known
	free   int64           // LeakyBucket: instant at which the queue is empty
	// blind says that the ledger's windows began while the store's clock was not known.
	// Until it is, they follow the own clock: a store window meets at most two of them, so
	// each gets half the part.
	blind bool
}

// unseen is when a store was last heard of that never was.
const unseen = limiter.Instant(math.MinInt64 / 2)

// admit decides a request of a limit with the number of holders at the own instant
// now. The store's clock may be set back: no window is begun that is older than one
// in which something was admitted.
func (o own) admit(p limiter.Params, holders int64, v view, now, cost int64) (own, localResult) {
	o, _ = o.remember(v.clock, now)
	at, seen := v.clock.span(now), v.seen
	switch {
	case !v.clock.known:
		o.blind = true
		at, seen = span{instantOf(now), instantOf(now)}, unseen
		if v.swapped != past {
			seen = instantOf(v.swapped)
		}
	case at.from < v.floor || o.isAfter(at.to):
		return o, localResult{limit: p.Rates[0].Limit, wait: max(limiter.Millisecond, max(v.floor, o.newest).Sub(at.from))}
	case v.swapped != past:
		seen = max(seen, v.clock.span(v.swapped).to)
	}
	part := partOf(p, holders, o.blind, v.clock.known)
	ledger, res := o.ledger.admit(part, at, seen, cost)
	if forbidden := v.promised.forbids(v.clock.known); res.allowed && forbidden > seen {
		ledger, res = o.ledger.admit(part, at, forbidden, cost)
		res.promised = !res.allowed
	}
	if !res.allowed {
		return o, res
	}
	if o.ledger.n > 0 {
		res.delay = max(0, o.free-now)
	}
	if res.delay > nanos(p.MaxDelay) {
		return o, localResult{limit: res.limit, share: res.share, wait: limiter.Millisecond, spent: true}
	}
	o.ledger, o.last, o.free = ledger, now, now+res.delay+part.pace(cost)
	if v.clock.known {
		o.newest = max(o.newest, at.to)
	}
	return o, res
}

// instantOf reads the own clock as if it were a store's.
func instantOf(now int64) limiter.Instant { return limiter.Instant(now / int64(time.Microsecond)) }

// covers reports whether a store window that is open at the own instant now may
// hold an admission of o. Nothing may be taken from the store for it: a window
// begun on the local share ends on it.
func (o own) covers(clock offset, now int64) bool {
	if o.ledger.n == 0 || !clock.known {
		return false
	}
	o = o.located(clock)
	from := clock.span(now).from
	for _, w := range o.ledger.open[:o.ledger.n] {
		if w.WindowAt(from).Index <= w.WindowAt(o.newest).Index {
			return true
		}
	}
	return false
}

// located returns o with the windows of the store's clock as soon as that is known. What
// was admitted in the last ones of the own clock counts as admitted in the newest that they
// can have met.
func (o own) located(clock offset) own {
	if o.newest != 0 || !clock.known {
		return o
	}
	o.newest = clock.span(o.last).to
	for i := range o.ledger.open[:o.ledger.n] {
		w := &o.ledger.open[i]
		granted := w.Granted
		*w = w.WindowAt(o.newest)
		w.Granted = granted
	}
	return o
}

// isAfter reports whether a window with an admission of o is newer than those that are
// open when the store's clock reads at.
func (o own) isAfter(at limiter.Instant) bool {
	for _, w := range o.ledger.open[:o.ledger.n] {
		if w.WindowAt(at).Index < w.WindowAt(o.newest).Index {
			return true
		}
	}
	return false
}

// remember returns what is left of o at the own instant now: nothing when all its windows
// are over. Then it also returns by when they had ended, 0 when that is not known.
func (o own) remember(clock offset, now int64) (left own, floor limiter.Instant) {
	o = o.located(clock)
	if !o.over(clock, now) {
		return o, 0
	}
	for _, w := range o.ledger.open[:o.ledger.n] {
		if o.newest > 0 {
			floor = max(floor, w.WindowAt(o.newest).End())
		}
	}
	return own{}, floor
}

// over reports whether all windows with an admission of o have ended, so that o
// need not be remembered.
func (o own) over(clock offset, now int64) bool {
	if clock.known {
		return !o.covers(clock, now)
	}
	for _, w := range o.ledger.open[:o.ledger.n] {
		if now-o.last < nanos(w.Window) {
			return false
		}
	}
	return true
}

// A part is what one process may admit alone of each rate of a limit.
type part struct {
	limiter.Params
	divisor int64
	unknown bool // the store's clock: windows follow the own one
}

// partOf returns the part of one holder of the given number. Windows that are not
// those of the contract get half.
func partOf(p limiter.Params, holders int64, blind, known bool) part {
	divisor := holders
	if blind || !p.Algorithm.WindowCoupled() {
		divisor *= 2
	}
	return part{p, divisor, !known}
}

// of returns the part of a rate in one window.
func (p part) of(r limiter.Rate) int64 {
	most := min(r.Limit, burstOf(r))
	if p.Algorithm == limiter.LeakyBucket {
		perWindow := max(1, int64(r.Window)/r.Limit) // between two units
		most = min(most, int64(p.MaxDelay)/perWindow+1)
	}
	return most / p.divisor
}

// known returns the last instant whose window the store may have granted from, if
// it was last heard of at seen.
func (p part) known(r limiter.Rate, seen limiter.Instant) limiter.Instant {
	if p.unknown {
		seen = seen.Add(r.Window) // a window of the store's that was open then has ended
	}
	if p.Algorithm.WindowCoupled() {
		return seen
	}
	return seen.Add(p.Lifetime + r.Window)
}

// pace returns how long a LeakyBucket takes for the cost, on this part of it.
func (p part) pace(cost int64) int64 {
	if p.Algorithm != limiter.LeakyBucket {
		return 0
	}
	var slowest int64
	for _, r := range p.Rates {
		slowest = max(slowest, cost*p.divisor*(nanos(r.Window)/r.Limit))
	}
	return slowest
}
