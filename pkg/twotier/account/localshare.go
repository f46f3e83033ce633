package account

import (
	"math"

	"github.com/weir-dev/weir/pkg/limiter"
)

// LocalShare is what this process admitted for one key without the store. The zero
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
type LocalShare struct {
	counts windowCounts
	last   int64           // instant of the last admission
	newest limiter.Instant // that the store's clock may have shown then; 0 while it was never known
	free   int64           // LeakyBucket: instant at which the queue is empty
	// ownClock says that the counted windows began while the store's clock was not known.
	// Until it is, they follow the local clock: a store window meets at most two of them, so
	// each gets half the limit.
	ownClock bool
}

// NeverSeen is when a store was last heard of that never was.
const NeverSeen = limiter.Instant(math.MinInt64 / 2)

// Admit decides a request of a limit with the number of holders at the local instant
// now. The store's clock may be set back: no window is begun that is older than one
// in which something was admitted.
func (s LocalShare) Admit(p limiter.Params, holders int64, v StoreTime, now, cost int64) (LocalShare, LocalDecision) {
	s, _ = s.Prune(v.Clock, now)
	at, seen := v.Clock.Interval(now), v.Seen
	switch {
	case !v.Clock.Known:
		s.ownClock = true
		at, seen = Interval{instantOf(now), instantOf(now)}, NeverSeen
		if v.Swapped != Past {
			seen = instantOf(v.Swapped)
		}
	case at.From < v.Floor || s.newerThan(at.To):
		return s, LocalDecision{Limit: p.Rates[0].Limit, Wait: max(limiter.Millisecond, max(v.Floor, s.newest).Sub(at.From))}
	case v.Swapped != Past:
		seen = max(seen, v.Clock.Interval(v.Swapped).To)
	}
	limit := localLimitOf(p, holders, s.ownClock, v.Clock.Known)
	counts, res := s.counts.admit(limit, at, seen, cost)
	if forbidden := v.Promised.servedUpTo(v.Clock.Known); res.Allowed && forbidden > seen {
		counts, res = s.counts.admit(limit, at, forbidden, cost)
		res.Promised = !res.Allowed
	}
	if !res.Allowed {
		return s, res
	}
	if s.counts.n > 0 {
		res.Delay = max(0, s.free-now)
	}
	if res.Delay > Nanos(p.MaxDelay) {
		return s, LocalDecision{Limit: res.Limit, Share: res.Share, Wait: limiter.Millisecond, Spent: true}
	}
	s.counts, s.last, s.free = counts, now, now+res.Delay+limit.serviceTime(cost)
	if v.Clock.Known {
		s.newest = max(s.newest, at.To)
	}
	return s, res
}

// instantOf reads the local clock as if it were a store's.
func instantOf(now int64) limiter.Instant { return limiter.Instant(now / microsecond) }

// Covers reports whether a store window that is open at the local instant now may
// hold an admission of s. Nothing may be taken from the store for it: a window
// begun on the local share ends on it.
func (s LocalShare) Covers(clock ClockOffset, now int64) bool {
	if s.counts.n == 0 || !clock.Known {
		return false
	}
	s = s.aligned(clock)
	from := clock.Interval(now).From
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
func (s LocalShare) aligned(clock ClockOffset) LocalShare {
	if s.newest != 0 || !clock.Known {
		return s
	}
	s.newest = clock.Interval(s.last).To
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
func (s LocalShare) newerThan(at limiter.Instant) bool {
	for _, w := range s.counts.open[:s.counts.n] {
		if w.WindowAt(at).Index < w.WindowAt(s.newest).Index {
			return true
		}
	}
	return false
}

// Prune returns what is left of s at the local instant now: nothing when all its windows
// are over. Then it also returns by when they had ended, 0 when that is not known.
func (s LocalShare) Prune(clock ClockOffset, now int64) (left LocalShare, floor limiter.Instant) {
	s = s.aligned(clock)
	if !s.ended(clock, now) {
		return s, 0
	}
	for _, w := range s.counts.open[:s.counts.n] {
		if s.newest > 0 {
			floor = max(floor, w.WindowAt(s.newest).End())
		}
	}
	return LocalShare{}, floor
}

// ended reports whether all windows with an admission of s have ended, so that s
// need not be remembered.
func (s LocalShare) ended(clock ClockOffset, now int64) bool {
	if clock.Known {
		return !s.Covers(clock, now)
	}
	for _, w := range s.counts.open[:s.counts.n] {
		if now-s.last < Nanos(w.Window) {
			return false
		}
	}
	return true
}
