package limiter

import (
	"math/bits"
	"slices"
)

// An Absence is a time in which holders were not served by the store. Each may have
// admitted its share of the limit by itself, in every window that began before it was
// back: so the store grants of such a window no more than the shares of those that were
// back when it began.
type Absence struct {
	From  Instant // when the store was left; windows that began before are not concerned
	Until Instant // when nobody was absent any more, MaxInstant while somebody may be
	Back  []Shares
}

// Shares are equal parts of a limit, of holders that are back.
type Shares struct {
	Of int64     // each is the limit divided by this, at least 1
	At []Instant // when each holder was back, in order
}

// back returns how much of an amount belongs to those who were back before the instant.
func (a *Absence) back(amount int64, at Instant) int64 {
	var all int64
	for _, s := range a.Back {
		all = plus(all, partOf(amount, int64(s.before(at)), s.Of))
	}
	return min(amount, all)
}

// before returns how many were back before the instant.
func (s *Shares) before(at Instant) int {
	n, _ := slices.BinarySearch(s.At, at)
	return n
}

// partOf returns amount·parts/of, rounded down, at most the amount.
func partOf(amount, parts, of int64) int64 {
	if parts >= of {
		return amount
	}
	high, low := bits.Mul64(uint64(amount), uint64(parts))
	quotient, _ := bits.Div64(high, low, uint64(of))
	return int64(quotient)
}

// concerns reports whether a window of the rate has begun in the absence: who acts without
// the store begins with a window.
func (a *Absence) concerns(r Rate, now Instant) bool {
	return r.start(r.index(a.From-1)+1) <= min(now, a.Until)
}

// present returns how much of an amount the store may grant in a window that began at
// the instant.
func (m *Memory) present(amount int64, start Instant) int64 {
	left := amount
	for i := range m.Absences {
		if a := &m.Absences[i]; start >= a.From && start <= a.Until {
			left = min(left, a.back(amount, start))
		}
	}
	return left
}

// presentSince is present for a sliding sum: of those who were back in a window that had
// ended when the time began that the sum looks back on. Until then each may have
// admitted its share in that time.
func (m *Memory) presentSince(r Rate, now Instant) int64 {
	left, over := r.Limit, r.start(r.index(now.Add(-r.Window)))
	for i := range m.Absences {
		a := &m.Absences[i]
		if a.concerns(r, now) && over <= a.Until {
			left = min(left, a.back(r.Limit, over))
		}
	}
	return left
}

// changed returns the begin of the last window for which a bucket has other holders
// to serve than for the one before, 0 when there is none. The bucket is full then: the
// units that holders admitted by themselves before they were back are not yet made up for.
func (m *Memory) changed(r Rate, now Instant) Instant {
	var last Instant
	next := func(at Instant) Instant { return r.start(r.index(at) + 1) }
	for i := range m.Absences {
		a := &m.Absences[i]
		if !a.concerns(r, now) {
			continue
		}
		for _, s := range a.Back {
			if n := s.before(r.start(r.index(now))); n > 0 {
				last = max(last, next(s.At[n-1]))
			}
		}
		if after := next(a.Until); after <= now {
			last = max(last, after)
		}
	}
	return last
}

// unit returns how much a unit fills the bucket: more, while the store serves only some
// of the holders, so that these have their part of the burst and of the rate. It is 0
// when nobody has any.
func (p *Params) unit(r Rate, now Instant, memory *Memory) int64 {
	cost, _ := r.pace()
	brim := p.brim(r)
	switch present := memory.presentIn(r, now, brim); present {
	case brim:
		return cost
	case 0:
		return 0
	default:
		return scaleUp(cost, Micros(brim), Micros(present))
	}
}

// presentIn is present for a bucket, by windows of its rate.
func (m *Memory) presentIn(r Rate, now Instant, amount int64) int64 {
	if len(m.Absences) == 0 {
		return amount
	}
	return m.present(amount, r.start(r.index(now)))
}
