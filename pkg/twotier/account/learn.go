package account

import (
	"github.com/weir-dev/weir/pkg/limiter"
	"github.com/weir-dev/weir/pkg/sizing"
)

// sizingOf returns the rule by which sizes are learned.
func sizingOf(c Config) sizing.Rule {
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

// learn takes note of what was asked for since the last answer, which the reply
// follows. When that belongs to another window, the demand of the last one is known:
// what was served and what was refused.
func (r *Rules) learn(a *State, c limiter.Command, reply Reply) {
	if !r.Learn() {
		a.Demand, a.Refused = 0, 0
		return
	}
	a.Demand += a.Refused
	a.Refused = 0
	life := 1.0
	if reply.Windows.N > 0 {
		open := shortest(reply.Windows)
		if a.Windows.N > 0 && shortest(a.Windows).Index != open.Index {
			left := a.Front.Credits + a.Back.Credits
			a.Sizer = r.sizing.Observe(a.Sizer, a.Demand-left)
			a.Demand = left
		}
		if reply.Algorithm.WindowCoupled() {
			life = float64(reply.ExpiresIn) / float64(open.Window)
		}
	}
	a.Demand += reply.Granted
	a.Sizer = r.sizing.Heard(a.Sizer, c.Want, reply.Result, life)
}

// pause returns for how long the store is not asked after the reply to c, because
// credits come back bit by bit.
func (r *Rules) pause(a State, c limiter.Command, reply Reply) int64 {
	if !r.Learn() || reply.Algorithm.WindowCoupled() || !sizing.Short(c.Want, reply.Result) {
		return 0
	}
	return r.sizing.Pause(a.Sizer)
}
