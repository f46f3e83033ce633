package limiter

import (
	"math/bits"
	"slices"
)

// An Absence is a time in which holders were not served by the store. Each may have
// admitted its share of the limit by itself, in every window that began before it was
// back: so the store grants of such a window no more than the shares of those that were
// back when it began. A holder that is back promises to begin no window by itself before
// some instant, and counts as back for windows that begin before that.
type Absence struct {
	From  Instant // when the store was left; windows that began before are not concerned
	Until Instant // when holders act as they always do; windows that begin later are not concerned
	// Whole is when nobody was absent any more, 0 while somebody may be: a window that
	// begins later belongs to all, but for those whose promise is over.
	Whole Instant
	Back  []Shares // of holders, from when they were back
	Lapse []Shares // of holders, from when their promise was over; none is later than Until
	Again []Shares // of holders whose promise was over, from when they had made another one
}

// Shares are equal parts of a limit, each from an instant on.
type Shares struct {
	Of int64     // each is the limit divided by this, at least 1
	At []Instant // of each holder, in order
}

// back returns how much of an amount belongs to those that were back before the instant
// from and whose promise was not over at the instant to.
func (a *Absence) back(amount int64, from, to Instant) int64 {
	all := amount
	if a.Whole == 0 || from <= a.Whole {
		all = 0
		for _, s := range a.Back {
			all = plus(all, partOf(amount, int64(s.before(from)), s.Of))
		}
	}
	for _, s := range a.Lapse {
		all -= roundedUp(amount, int64(s.before(to+1)-a.again(s.Of, from)), s.Of)
	}
	return max(0, min(amount, all))
}

// again returns how many holders of such shares had made another promise before the instant.
func (a *Absence) again(of int64, at Instant) (n int) {
	for _, s := range a.Again {
		if s.Of == of {
			n += s.before(at)
		}
	}
	return n
}

// before returns how many there were before the instant.
func (s *Shares) before(at Instant) int {
	n, _ := slices.BinarySearch(s.At, at)
	return n
}

// partOf returns amount·parts/of, rounded down, at most the amount.
func partOf(amount, parts, of int64) int64 {
	quotient, _ := divided(amount, parts, of)
	return quotient
}

// roundedUp returns amount·parts/of, rounded up, at most the amount.
func roundedUp(amount, parts, of int64) int64 {
	quotient, rest := divided(amount, parts, of)
	return quotient + min(rest, 1)
}

func divided(amount, parts, of int64) (quotient, rest int64) {
	if parts >= of {
		return amount, 0
	}
	high, low := bits.Mul64(uint64(amount), uint64(parts))
	q, r := bits.Div64(high, low, uint64(of))
	return int64(q), int64(r)
}

// concerns reports whether a window of the rate has begun in the absence: a holder that
// acts without the store begins with a window.
func (a *Absence) concerns(r Rate, now Instant) bool {
	return r.start(r.index(a.From-1)+1) <= min(now, a.Until)
}

// present returns how much of an amount the store may grant in a window that began at
// the instant.
func (m *Memory) present(amount int64, start Instant) int64 {
	left := amount
	for i := range m.Absences {
		if a := &m.Absences[i]; start >= a.From && start <= a.Until {
			left = min(left, a.back(amount, start, start))
		}
	}
	return left
}

// presentSince is present for a sliding sum: of those that were back in a window that
// had ended when the time began that the sum looks back on. Until then each may have
// admitted its share in that time.
func (m *Memory) presentSince(r Rate, now Instant) int64 {
	left, over := r.Limit, r.start(r.index(now.Add(-r.Window)))
	for i := range m.Absences {
		a := &m.Absences[i]
		if a.concerns(r, now) && over <= a.Until {
			left = min(left, a.back(r.Limit, over, r.start(r.index(now))))
		}
	}
	return left
}

// changed returns the begin of the last window for which a bucket has other holders
// to serve than for the one before, 0 when there is none. The bucket is full then: the
// units that holders admitted by themselves before they were back are not yet made up for.
func (m *Memory) changed(r Rate, now Instant) Instant {
	var last Instant
	for i := range m.Absences {
		if a := &m.Absences[i]; a.concerns(r, now) {
			last = max(last, a.changed(r, now))
		}
	}
	return last
}

func (a *Absence) changed(r Rate, now Instant) (last Instant) {
	// after notes the first window that begins later, if it has begun.
	after := func(at Instant) {
		if next := r.start(r.index(at) + 1); at > 0 && next <= now {
			last = max(last, next)
		}
	}
	after(a.Whole)
	if a.Whole == 0 || len(a.Lapse) > 0 {
		after(a.Until)
	}
	start := r.start(r.index(now))
	after(newest(a.Back, start))
	after(newest(a.Again, start))
	after(newest(a.Lapse, start+1) - 1)
	return last
}

// newest returns the newest instant of shares before another one, 0 for none.
func newest(shares []Shares, before Instant) (at Instant) {
	for _, s := range shares {
		if n := s.before(before); n > 0 {
			at = max(at, s.At[n-1])
		}
	}
	return at
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
