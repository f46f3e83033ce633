package twotier

import (
	"math"
	"time"

	"github.com/weir-dev/weir/pkg/limiter"
)

// own is what this process admitted for one key without the store. The zero
// value has admitted nothing. It keeps this promise: in every store window the
// key is charged either at the store or here, never at both, and here at most
// limit / holders.
type own struct {
	ledger ledger
	last   int64 // instant of the last admission
	// blind says that the ledger's windows follow the own clock, because the
	// store's was not known when they began. A store window meets at most two of
	// them, so each gets half the share.
	blind bool
}

// admit decides a request at the own instant now. The clock of the store is
// known as well as clock says, and it was last heard of at seen.
func (o own) admit(rates []limiter.Rate, holders int64, clock offset, seen limiter.Instant, now, cost int64) (own, localResult) {
	at, blind := clock.span(now), !clock.known || o.blind && o.covers(clock, now)
	if blind != o.blind {
		o = own{blind: blind}
	}
	divisor := holders
	if blind {
		if clock.known && ambiguous(rates, at) {
			return o, localResult{limit: rates[0].Limit, wait: limiter.Millisecond}
		}
		t := limiter.Instant(now / int64(time.Microsecond))
		at, seen, divisor = span{t, t}, math.MinInt64, 2*holders
	}
	ledger, res := o.ledger.admit(rates, divisor, at, seen, cost)
	if res.allowed {
		o.ledger, o.last = ledger, now
	}
	return o, res
}

// covers reports whether a store window that is open at the own instant now may
// hold an admission of o. Nothing may be taken from the store for it: a window
// begun on the local share ends on it.
func (o own) covers(clock offset, now int64) bool {
	if o.ledger.n == 0 || !clock.known {
		return false
	}
	from, last := clock.span(now).from, clock.span(o.last).to
	for _, w := range o.ledger.open[:o.ledger.n] {
		if windowOf(from, w.length) <= windowOf(last, w.length) {
			return true
		}
	}
	return false
}

// over reports whether all windows with an admission of o have ended, so that o
// need not be remembered.
func (o own) over(clock offset, now int64) bool {
	if clock.known {
		return !o.covers(clock, now)
	}
	for _, w := range o.ledger.open[:o.ledger.n] {
		if now-o.last < nanos(w.length) {
			return false
		}
	}
	return true
}

func ambiguous(rates []limiter.Rate, at span) bool {
	for _, r := range rates {
		if windowOf(at.from, r.Window) != windowOf(at.to, r.Window) {
			return true
		}
	}
	return false
}

// A ledger counts admissions in aligned windows.
type ledger struct {
	n    int
	open [2 * limiter.MaxRates]ownWindow
}

// An ownWindow is one window and what was admitted in it.
type ownWindow struct {
	length limiter.Micros
	index  int64
	used   int64
}

// A localResult says what a ledger decided.
type localResult struct {
	allowed   bool
	limit     int64          // of the rate that binds
	share     int64          // of that rate
	remaining int64          // of the share
	resets    limiter.Micros // until the window of that rate ends
	wait      limiter.Micros // refused: until other windows begin
}

// admit decides a request when the clock the windows are aligned to reads
// something in at.
//
//	for some rate                                          the request is
//	the clock may be in either of two windows              refused
//	the window was open at seen and has no admission here  refused
//	cost is more than the share has left                   refused
//	otherwise                                              admitted, charged to every rate
//
// seen is the latest instant the store is known to have served at: it may have
// granted units of the windows that were open then.
func (g ledger) admit(rates []limiter.Rate, divisor int64, at span, seen limiter.Instant, cost int64) (ledger, localResult) {
	var next ledger
	res := localResult{allowed: true}
	for i, r := range rates {
		w := g.window(r.Window, at.from)
		share := r.Limit / divisor
		left := share - w.used
		ends := limiter.Instant((w.index + 1) * int64(r.Window)).Sub(at.from)
		if i == 0 || left < res.remaining {
			res.limit, res.share, res.remaining, res.resets = r.Limit, share, left, ends
		}
		served := windowOf(seen, r.Window) >= w.index && w.used == 0
		if windowOf(at.to, r.Window) != w.index || served || cost > left {
			res.allowed = false
			res.wait = max(res.wait, ends)
		}
		w.used += cost
		next.add(w)
	}
	res.remaining = max(0, res.remaining)
	if !res.allowed {
		return g, res
	}
	res.remaining -= cost
	// Windows of lengths that an edit took away stay until they end, as they do
	// at the store.
	for _, w := range g.open[:g.n] {
		if windowOf(at.from, w.length) == w.index && !next.has(w.length) && next.n < len(next.open) {
			next.add(w)
		}
	}
	return next, res
}

// window returns the window of the length that contains now, as it stands.
func (g ledger) window(length limiter.Micros, now limiter.Instant) ownWindow {
	i := windowOf(now, length)
	for _, w := range g.open[:g.n] {
		if w.length == length && w.index == i {
			return w
		}
	}
	return ownWindow{length: length, index: i}
}

func (g *ledger) has(length limiter.Micros) bool {
	for _, w := range g.open[:g.n] {
		if w.length == length {
			return true
		}
	}
	return false
}

func (g *ledger) add(w ownWindow) {
	g.open[g.n] = w
	g.n++
}

func windowOf(t limiter.Instant, length limiter.Micros) int64 { return int64(t) / int64(length) }
