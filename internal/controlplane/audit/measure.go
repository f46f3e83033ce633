package audit

import (
	"math"
	"slices"
	"time"
)

// Advance measures the windows that every holder has accounted for by now and
// returns what holders have to be asked before more can be measured.
func (l *Limit) Advance(now time.Time) []Query {
	unmeasured := l.unmeasured()
	if len(unmeasured) == 0 {
		return nil
	}
	var queries []Query
	reached := l.times()
	for _, w := range unmeasured {
		if !w.over && (reached[w.id.since] >= w.id.end() || now.Sub(w.heard) >= duration(w.id.length())) {
			w.close(l.members, now)
		}
		if !w.over || !w.settled(l.members, l.overdue(w, now)) {
			continue
		}
		if q, ok := l.ask(w); ok {
			queries = append(queries, q)
		}
		if w.answered(l.members) && !l.awaits(w, now) {
			l.measure(w)
		}
	}
	return queries
}

// overdue reports whether w is not waited for any longer. A holder may take a
// window to be open for its length too long when it could not learn its end.
func (l *Limit) overdue(w *window, now time.Time) bool {
	return w.id.end() <= l.period(w.id.since).dropped || now.Sub(w.closed) > duration(w.id.length())+patience*l.interval
}

// unmeasured returns the windows that are still to be measured, oldest first.
func (l *Limit) unmeasured() []*window {
	var out []*window
	for _, w := range l.windows {
		if !w.measured {
			out = append(out, w)
		}
	}
	slices.SortFunc(out, func(a, b *window) int { return a.id.compare(b.id) })
	return out
}

func (l *Limit) measure(w *window) {
	w.measured = true
	f := l.figures[w.id.windows]
	if f == nil {
		return // of a rate the policy no longer has
	}
	m := l.outcome(w)
	w.known = m.known
	f.enter(m)
	if unused, ok := l.leastUnused(); ok {
		l.worstUnused = max(l.worstUnused, unused)
	}
}

// outcome sets what is known of w against what it may admit.
func (l *Limit) outcome(w *window) measurement {
	carry, unsettled := l.promised.Carry, l.promised.Unsettled
	if l.mixes(w) {
		carry, unsettled = max(carry, l.before.carry), unsettled || l.before.unsettled
	}
	var losses int64
	known := true
	if l.resumes(w) {
		losses, known = l.lossesIn(w)
	}
	m := w.measure(l.ceilingsOf(w), carry, losses)
	m.unexplained = !known && m.excess > 0
	m.unsettled = unsettled || w.id.open().Start() <= l.promised.Reset && l.promised.Reset < w.id.end()
	m.early, m.full = !w.began.After(l.since), w.began.After(l.changed)
	m.past = w.id.since != l.promised.Since
	return m
}

// A measurement is what came out of one window.
type measurement struct {
	id        windowID
	end       time.Time
	known     bool // nothing is missing; otherwise overshoot is the least it can be
	early     bool // the window may have begun before every holder was known, or before the generation
	past      bool // the window is of a store that no longer serves
	full      bool // the window lay wholly within one generation
	overshoot int64
	bound     int64 // of the counter with that overshoot
	excess    int64 // the most that a counter is beyond its bound
	unbounded bool  // holders admitted by the failure action with no share to bound it
	unsettled bool  // requests were let through before it was known what they cost
	// unexplained says that it admitted more than is bounded, and that it is not known how
	// often its store lost its memory meanwhile.
	unexplained bool
	unused      int32 // basis points of the limit: refused although the budget was there
}

// limitless reports whether nothing bounds what the window admitted.
func (m measurement) limitless() bool { return m.unbounded || m.unsettled || m.unexplained }

// measure sets what holders let through against the ceilings. Each holder may have
// carried that number of units into the window, and each loss of memory of the store may have
// admitted once more what a counter may.
func (w *window) measure(of ceilings, carry, losses int64) measurement {
	m := measurement{
		id:    w.id,
		end:   time.UnixMicro(int64(w.id.end())),
		known: w.complete() && (w.query == nil || !w.query.unknown),
	}
	var all KeyCount
	var alone int64 // what holders may have admitted on their own
	for _, t := range w.tallies {
		all.Admitted += t.admitted
		all.Refused += t.refused
		alone = plus(alone, plus(t.share, carry))
		m.unbounded = m.unbounded || t.unbounded > 0
	}
	m.bound = plus(alone, times(losses, of("").most)) // while no counter shows more
	each := func(c KeyCount, of ceiling) { m.worst(c, of, plus(alone, times(losses, of.most))) }
	if w.query == nil {
		each(all, of(""))
		return m
	}
	sums := w.sums()
	for _, hash := range w.query.hashes {
		each(sums[hash], of(hash))
	}
	return m
}

// worst keeps the larger of what was measured and of what one counter shows, which may be
// beyond its ceiling by the bound.
func (m *measurement) worst(c KeyCount, of ceiling, bound int64) {
	over := c.Admitted - of.most
	if over > m.overshoot {
		m.bound = bound
	}
	m.overshoot, m.excess = max(m.overshoot, over), max(m.excess, over-bound)
	if of.limit == 0 {
		return // a counter that has none of these windows
	}
	unused := max(0, min(c.Admitted+c.Refused, of.limit)-c.Admitted)
	m.unused = max(m.unused, int32(float64(unused)/float64(of.limit)*BasisPoints))
}

// sums returns what all holders let through of each key of the query; a key is left out
// that nobody used. It works in proportion to what holders name, not to
// holders × keys.
func (w *window) sums() map[string]KeyCount {
	asked, out := w.query.about(), make(map[string]KeyCount, len(w.query.hashes))
	for _, t := range w.tallies {
		for hash := range t.named() {
			if _, ok := asked[hash]; !ok {
				continue
			}
			c, _ := t.count(hash)
			sum := out[hash]
			sum.Admitted += c.Admitted
			sum.Refused += c.Refused
			out[hash] = sum
		}
	}
	return out
}

// plus returns the sum of two counts, at most the largest there is.
func plus(a, b int64) int64 {
	if a > math.MaxInt64-b {
		return math.MaxInt64
	}
	return a + b
}
