package twotier

import "github.com/weir-dev/weir/pkg/limiter"

// A windowCounts counts admissions in windows.
type windowCounts struct {
	n    int
	open [2 * limiter.MaxRates]limiter.OpenWindow // Granted is what was admitted
}

// A localDecision says what a localShare decided.
type localDecision struct {
	allowed   bool
	limit     int64          // of the rate that binds
	share     int64          // of that rate
	remaining int64          // of the share
	resets    limiter.Micros // until the window of that rate ends
	wait      limiter.Micros // refused: until other windows begin
	delay     int64          // LeakyBucket: until it is the request's turn, in nanoseconds
	promised  bool           // refused, because it is promised that no such window is begun
	spent     bool           // refused, because too little is left of a share of which some was admitted
}

// admit decides a request when the clock the windows are aligned to reads
// something in at.
//
//	for a rate                                             the request is
//	the clock may be in either of two windows              refused
//	the window was open at seen and has no admission here  refused
//	cost is more than the limit has left                   refused
//	otherwise                                              admitted, charged to the rate
//
// Every rate has to admit it, or with Params.Any one of them. seen is the latest
// instant the store is known to have served at: it may have granted units of the
// windows that were open then.
func (c windowCounts) admit(p localLimit, at interval, seen limiter.Instant, cost int64) (windowCounts, localDecision) {
	var next windowCounts
	var res localDecision
	for i, r := range p.Rates {
		w := c.window(r, at.from)
		share := p.inWindow(r)
		left, ends := max(0, share-w.Granted), w.End().Sub(at.from)
		served := r.WindowAt(p.lastServed(r, seen)).Index >= w.Index && w.Granted == 0
		usable := r.WindowAt(at.to).Index == w.Index && !served
		fits := usable && cost <= left
		spent := usable && !fits && w.Granted > 0
		if i == 0 || p.Any == (left > res.remaining) && left != res.remaining {
			res.limit, res.share, res.remaining, res.resets = r.Limit, share, left, ends
		}
		switch {
		case i == 0:
			res.allowed, res.spent = fits, spent
		case p.Any:
			res.allowed, res.spent = res.allowed || fits, res.spent && spent
		default:
			res.allowed, res.spent = res.allowed && fits, res.spent || spent
		}
		switch {
		case fits:
		case p.Any && res.wait > 0:
			res.wait = min(res.wait, ends)
		default:
			res.wait = max(res.wait, ends)
		}
		if usable || !p.Any {
			w.Granted += min(cost, left)
		}
		next.add(w)
	}
	if !res.allowed {
		return c, res
	}
	res.wait, res.remaining, res.spent = 0, max(0, res.remaining-cost), false
	next.keepRemoved(c, at.from)
	return next, res
}

// keepRemoved keeps windows of c that rates which an edit took away had: until they end,
// as at the store.
func (c *windowCounts) keepRemoved(old windowCounts, now limiter.Instant) {
	for _, w := range old.open[:old.n] {
		if w.Contains(now) && c.find(w.Rate) == nil && c.n < len(c.open) {
			c.add(w)
		}
	}
}

// window returns the window of the rate that contains now, as it stands.
func (c windowCounts) window(r limiter.Rate, now limiter.Instant) limiter.OpenWindow {
	open := r.WindowAt(now)
	if w := c.find(r); w != nil && w.Index == open.Index {
		open.Granted = w.Granted
	}
	return open
}

// find returns the window of the same length and alignment as the rate's.
func (c *windowCounts) find(r limiter.Rate) *limiter.OpenWindow {
	for i := range c.open[:c.n] {
		if w := &c.open[i]; w.Window == r.Window && w.Offset == r.Offset && w.Monthly == r.Monthly {
			return w
		}
	}
	return nil
}

func (c *windowCounts) add(w limiter.OpenWindow) {
	c.open[c.n] = w
	c.n++
}
