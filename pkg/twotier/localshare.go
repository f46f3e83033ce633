package twotier

import (
	"math"

	"github.com/weir-dev/weir/pkg/limiter"
)

// localShare is what this process admitted for one key without the store. The zero
// value has admitted nothing. It keeps this promise: in every window the key is
// charged either at the store or here, never at both, and here at most its share.
//
// Algorithms that have no windows are worked in aligned windows of the same
// length, with half the limit. An interval meets at most one such window more than
// fit into it, so what all processes admit in it together is
//
//	at most  ½ · min(limit, burst) · (length/window + 2)
//
// which is never more than the burst and what flows in meanwhile, nor, within one
// window's length, than the limit. They also begin one window later: after what the
// store granted last has expired, and a whole window more, in which the tokens flow
// in that are given out here. So the promise holds across the begin of an outage,
// and while every process is cut off; an interval that holds the end of an outage
// may see the shares of one window more.
type localShare struct {
	counts windowCounts
	last   int64           // instant of the last admission
	newest limiter.Instant // that the store's clock may have shown then; 0 while it was never known
	free   int64           // LeakyBucket: instant at which the queue is empty
	// ownClock says that the counted windows began while the store's clock was not known.
	// Until it is, they follow the local clock: a store window meets at most two of them, so
	// each gets half the limit.
	ownClock bool
}

// neverSeen is when a store was last heard of that never was.
const neverSeen = limiter.Instant(math.MinInt64 / 2)

// admit decides a request of a limit with the number of holders at the local instant
// now. The store's clock may be set back: no window is begun that is older than one
// in which something was admitted.
func (s localShare) admit(p limiter.Params, holders int64, v storeTime, now, cost int64) (localShare, localDecision) {
	s, _ = s.prune(v.clock, now)
	at, seen := v.clock.interval(now), v.seen
	switch {
	case !v.clock.known:
		s.ownClock = true
		at, seen = interval{instantOf(now), instantOf(now)}, neverSeen
		if v.swapped != past {
			seen = instantOf(v.swapped)
		}
	case at.from < v.floor || s.newerThan(at.to):
		return s, localDecision{limit: p.Rates[0].Limit, wait: max(limiter.Millisecond, max(v.floor, s.newest).Sub(at.from))}
	case v.swapped != past:
		seen = max(seen, v.clock.interval(v.swapped).to)
	}
	limit := localLimitOf(p, holders, s.ownClock, v.clock.known)
	counts, res := s.counts.admit(limit, at, seen, cost)
	if forbidden := v.promised.servedUpTo(v.clock.known); res.allowed && forbidden > seen {
		counts, res = s.counts.admit(limit, at, forbidden, cost)
		res.promised = !res.allowed
	}
	if !res.allowed {
		return s, res
	}
	if s.counts.n > 0 {
		res.delay = max(0, s.free-now)
	}
	if res.delay > Nanos(p.MaxDelay) {
		return s, localDecision{limit: res.limit, share: res.share, wait: limiter.Millisecond, spent: true}
	}
	s.counts, s.last, s.free = counts, now, now+res.delay+limit.serviceTime(cost)
	if v.clock.known {
		s.newest = max(s.newest, at.to)
	}
	return s, res
}

// instantOf reads the local clock as if it were a store's.
func instantOf(now int64) limiter.Instant { return limiter.Instant(now / microsecond) }

// covers reports whether a store window that is open at the local instant now may
// hold an admission of s. Nothing may be taken from the store for it: a window
// begun on the local share ends on it.
func (s localShare) covers(clock clockOffset, now int64) bool {
	if s.counts.n == 0 || !clock.known {
		return false
	}
	s = s.aligned(clock)
	from := clock.interval(now).from
	for _, w := range s.counts.open[:s.counts.n] {
		if w.WindowAt(from).Index <= w.WindowAt(s.newest).Index {
			return true
		}
	}
	return false
}

// aligned returns s with the windows of the store's clock as soon as that is known. What
// was admitted in the last ones of the local clock counts as admitted in the newest that they
// can have met.
func (s localShare) aligned(clock clockOffset) localShare {
	if s.newest != 0 || !clock.known {
		return s
	}
	s.newest = clock.interval(s.last).to
	for i := range s.counts.open[:s.counts.n] {
		w := &s.counts.open[i]
		granted := w.Granted
		*w = w.WindowAt(s.newest)
		w.Granted = granted
	}
	return s
}

// newerThan reports whether a window with an admission of s is newer than those that are
// open when the store's clock reads at.
func (s localShare) newerThan(at limiter.Instant) bool {
	for _, w := range s.counts.open[:s.counts.n] {
		if w.WindowAt(at).Index < w.WindowAt(s.newest).Index {
			return true
		}
	}
	return false
}

// prune returns what is left of s at the local instant now: nothing when all its windows
// are over. Then it also returns by when they had ended, 0 when that is not known.
func (s localShare) prune(clock clockOffset, now int64) (left localShare, floor limiter.Instant) {
	s = s.aligned(clock)
	if !s.ended(clock, now) {
		return s, 0
	}
	for _, w := range s.counts.open[:s.counts.n] {
		if s.newest > 0 {
			floor = max(floor, w.WindowAt(s.newest).End())
		}
	}
	return localShare{}, floor
}

// ended reports whether all windows with an admission of s have ended, so that s
// need not be remembered.
func (s localShare) ended(clock clockOffset, now int64) bool {
	if clock.known {
		return !s.covers(clock, now)
	}
	for _, w := range s.counts.open[:s.counts.n] {
		if now-s.last < Nanos(w.Window) {
			return false
		}
	}
	return true
}

// A localLimit is what one process may admit locally of each rate of a limit.
type localLimit struct {
	limiter.Params
	divisor  int64
	ownClock bool // the store's clock: windows follow the local one
}

// localLimitOf returns the local limit of one holder of the given number. Windows that are not
// those of the contract get half.
func localLimitOf(p limiter.Params, holders int64, ownClock, known bool) localLimit {
	divisor := holders
	if ownClock || !p.Algorithm.WindowCoupled() {
		divisor *= 2
	}
	return localLimit{p, divisor, !known}
}

// inWindow returns the local limit of a rate in one window.
func (p localLimit) inWindow(r limiter.Rate) int64 {
	most := min(r.Limit, burstOf(r))
	if p.Algorithm == limiter.LeakyBucket {
		perWindow := max(1, int64(r.Window)/r.Limit) // between two units
		most = min(most, int64(p.MaxDelay)/perWindow+1)
	}
	return most / p.divisor
}

// lastServed returns the last instant whose window the store may have granted from, if
// it was last heard of at seen.
func (p localLimit) lastServed(r limiter.Rate, seen limiter.Instant) limiter.Instant {
	if p.ownClock {
		seen = seen.Add(r.Window) // a window of the store's that was open then has ended
	}
	if p.Algorithm.WindowCoupled() {
		return seen
	}
	return seen.Add(p.Lifetime + r.Window)
}

// serviceTime returns how long a LeakyBucket takes for the cost at the local limit.
func (p localLimit) serviceTime(cost int64) int64 {
	if p.Algorithm != limiter.LeakyBucket {
		return 0
	}
	var slowest int64
	for _, r := range p.Rates {
		slowest = max(slowest, cost*p.divisor*(Nanos(r.Window)/r.Limit))
	}
	return slowest
}
