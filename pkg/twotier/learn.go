package twotier

import (
	"github.com/weir-dev/weir/pkg/limiter"
	"github.com/weir-dev/weir/pkg/sizing"
)

// sizingOf returns the rule by which sizes are learned.
func sizingOf(c RuleConfig) sizing.Rule {
	limit := LargestCost(c.Params)
	high := limit
	if c.Max > 0 {
		high = min(c.Max, limit)
	}
	low := min(max(c.Min, 1), high)
	z := sizing.Rule{Low: low, High: high, Start: min(max(c.Batch, low), high), Predictive: c.Predicts}
	if !c.Params.Algorithm.WindowCoupled() {
		window := ShortestWindow(c.Params)
		z.Part, z.LongestPause = float64(c.Params.Lifetime)/float64(window), Nanos(window)
	}
	return z
}

// size returns the units a lease asks for ahead of demand.
//
// The store bounds what it grants from a window by the holders that leased in the
// window before. It cannot know of a holder that did not, and nothing guides grants
// that are time-coupled: those holders ask for no more than their part of the limit.
// The first to ask would otherwise take all of a small budget, for requests that go
// to others.
func (r *Rules) size(a Account, p limiter.Params, now, holders int64) int64 {
	size := r.batch
	if r.learned {
		life := 1.0
		if p.Algorithm.WindowCoupled() {
			life = a.windowLeft(now)
		}
		size = r.sizing.Lease(a.sizer, life)
	}
	size = min(size, LargestCost(p))
	if guided := p.Algorithm.WindowCoupled() && a.guided(now); holders > 0 && !guided {
		size = min(size, (LargestCost(p)+holders-1)/holders)
	}
	return size
}

// guided reports whether the store was asked in the open windows or those before.
func (a Answer) guided(now int64) bool {
	return a.Windows.N > 0 && now-a.Ends < Nanos(shortest(a.Windows).Window)
}

// windowLeft returns the part of the shortest window that is left; nobody knows it exactly.
func (a Answer) windowLeft(now int64) float64 {
	if a.Windows.N == 0 {
		return 1
	}
	length := Nanos(shortest(a.Windows).Window)
	left := (a.Ends - now) % length
	if left <= 0 {
		left += length
	}
	return float64(left) / float64(length)
}

// learn takes note of what was asked for since the last answer, which the reply
// follows. When that belongs to another window, the demand of the last one is known:
// what was served and what was refused.
func (r *Rules) learn(a *Account, c limiter.Command, reply Reply) {
	if !r.Learn() {
		a.demand, a.refused = 0, 0
		return
	}
	a.demand += a.refused
	a.refused = 0
	life := 1.0
	if reply.Windows.N > 0 {
		open := shortest(reply.Windows)
		if a.Windows.N > 0 && shortest(a.Windows).Index != open.Index {
			left := a.Front.Credits + a.Back.Credits
			a.sizer = r.sizing.Observe(a.sizer, a.demand-left)
			a.demand = left
		}
		if reply.Algorithm.WindowCoupled() {
			life = float64(reply.ExpiresIn) / float64(open.Window)
		}
	}
	a.demand += reply.Granted
	a.sizer = r.sizing.Heard(a.sizer, c.Want, reply.Result, life)
}

// pause returns for how long the store is not asked after the reply to c, because
// credits come back bit by bit.
func (r *Rules) pause(a Account, c limiter.Command, reply Reply) int64 {
	if !r.Learn() || reply.Algorithm.WindowCoupled() || !sizing.Short(c.Want, reply.Result) {
		return 0
	}
	return r.sizing.Pause(a.sizer)
}
