package account

import "github.com/weir-dev/weir/pkg/limiter"

// A windowCounts counts admissions in windows.
type windowCounts struct {
	n    int
	open [2 * limiter.MaxRates]limiter.OpenWindow // Granted is what was admitted
}

// A LocalDecision says what a LocalShare decided.
type LocalDecision struct {
	Allowed   bool
	Limit     int64          // of the rate that binds
	Share     int64          // of that rate
	Remaining int64          // of the share
	Resets    limiter.Micros // until the window of that rate ends
	Wait      limiter.Micros // refused: until other windows begin
	Delay     int64          // LeakyBucket: until it is the request's turn, in nanoseconds
	Promised  bool           // refused, because it is promised that no such window is begun
	Spent     bool           // refused, because too little is left of a share that was begun
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
func (c windowCounts) admit(p localLimit, at Interval, seen limiter.Instant, cost int64) (windowCounts, LocalDecision) {
	var next windowCounts
	var res LocalDecision
	for i, r := range p.Rates {
		w := c.window(r, at.From)
		share := p.inWindow(r)
		left, ends := max(0, share-w.Granted), w.End().Sub(at.From)
		served := r.WindowAt(p.lastServed(r, seen)).Index >= w.Index && w.Granted == 0
		usable := r.WindowAt(at.To).Index == w.Index && !served
		fits := usable && cost <= left
		spent := usable && !fits && w.Granted > 0
		if i == 0 || p.Any == (left > res.Remaining) && left != res.Remaining {
			res.Limit, res.Share, res.Remaining, res.Resets = r.Limit, share, left, ends
		}
		res.combine(i == 0, p.Any, fits, spent, ends)
		if usable || !p.Any {
			w.Granted += min(cost, left)
		}
		next.add(w)
	}
	if !res.Allowed {
		return c, res
	}
	res.Wait, res.Remaining, res.Spent = 0, max(0, res.Remaining-cost), false
	next.keepRemoved(c, at.From)
	return next, res
}

// combine adds the decision of a rate whose window ends after that time.
func (d *LocalDecision) combine(first, anyOf, fits, spent bool, ends limiter.Micros) {
	switch {
	case first:
		d.Allowed, d.Spent = fits, spent
	case anyOf:
		d.Allowed, d.Spent = d.Allowed || fits, d.Spent && spent
	default:
		d.Allowed, d.Spent = d.Allowed && fits, d.Spent || spent
	}
	switch {
	case fits:
	case anyOf && d.Wait > 0:
		d.Wait = min(d.Wait, ends)
	default:
		d.Wait = max(d.Wait, ends)
	}
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
