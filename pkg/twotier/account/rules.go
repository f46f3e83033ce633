package account

import (
	"github.com/weir-dev/weir/pkg/limiter"
	"github.com/weir-dev/weir/pkg/sizing"
)

// A Config is what Rules follow from.
type Config struct {
	// Params are the rates, valid by their Validate.
	Params limiter.Params
	// Leases says that credits are granted in advance, rather than one decision at a time.
	Leases bool
	// Learns says that the size of a lease is learned, and Predicts that it then follows a
	// forecast. Batch is the size otherwise, and the one that learning begins with; at least 1.
	Learns, Predicts bool
	Batch            int64
	// Min and Max bound what is learned; a Max of 0 is the limit.
	Min, Max int64
	// CarryOver lets credits outlive their window, LowWater of them besides those of a lease.
	CarryOver bool
	LowWater  int64
}

// Rules say what becomes of an State. They are immutable.
type Rules struct {
	params    limiter.Params
	leases    bool
	learned   bool // sizes are, rather than fixed
	batch     int64
	carryOver bool
	sizing    sizing.Rule
	carried   int64 // the most credits of a key that may outlive their window
}

// NewRules returns the rules that follow from c.
func NewRules(c Config) *Rules {
	r := &Rules{params: c.Params, leases: c.Leases, learned: c.Learns, batch: c.Batch, carryOver: c.CarryOver, sizing: sizingOf(c)}
	if c.CarryOver {
		largest := r.sizing.High
		if !r.learned {
			largest = c.Batch
		}
		r.carried = largest - 1 + c.LowWater
	}
	return r
}

// MaxCarried returns how many credits of a key may outlive their window.
func (r *Rules) MaxCarried() int64 { return r.carried }

// Learn reports whether sizes are learned.
func (r *Rules) Learn() bool { return r.leases && r.learned }

// LargestCost returns a cost above which the parameters never grant. They may grant less:
// a store takes more than that into a leaky bucket.
func LargestCost(p limiter.Params) int64 {
	if p.Algorithm == limiter.LeakyBucket {
		return limiter.MaxLimit
	}
	var most int64
	for i, r := range p.Rates {
		grants := burstOf(r)
		if i == 0 || p.Any == (grants > most) {
			most = grants
		}
	}
	return most
}

// burstOf returns the most units of the rate at once.
func burstOf(r limiter.Rate) int64 {
	if r.Burst > 0 {
		return r.Burst
	}
	return r.Limit
}

// ShortestWindow returns the length of the shortest window of the rates.
func ShortestWindow(p limiter.Params) limiter.Micros {
	window := p.Rates[0].Window
	for _, r := range p.Rates {
		window = min(window, r.Window)
	}
	return window
}

// shortest returns the window of the least length; there is at least one window.
func shortest(w limiter.Windows) limiter.OpenWindow {
	least := w.Open[0]
	for _, v := range w.Slice() {
		if v.Window < least.Window {
			least = v
		}
	}
	return least
}
