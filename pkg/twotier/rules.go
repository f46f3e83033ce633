package twotier

import (
	"github.com/weir-dev/weir/pkg/limiter"
	"github.com/weir-dev/weir/pkg/sizing"
)

// Rules say what becomes of an Account, by a Config and what follows from it. They
// are immutable.
type Rules struct {
	Config
	sizing   sizing.Rule
	maxLease int64 // units the largest lease prefetches
}

// RulesOf returns the rules by which a Limiter of cfg works.
func RulesOf(cfg Config) *Rules {
	r := &Rules{Config: cfg.normalize()}
	r.Mode = r.workableMode()
	if !r.Params.Algorithm.WindowCoupled() {
		r.Expiry = Coupled
	}
	r.sizing = r.sizingOf()
	r.maxLease = r.sizing.High
	if r.Size.Type == Fixed {
		r.maxLease = r.Size.Batch
	}
	return r
}

// workableMode returns the mode that the algorithm can be worked in.
func (r *Rules) workableMode() Mode {
	switch {
	case r.Params.Algorithm == limiter.LeakyBucket:
		return Strict // each request has a place in the queue of its own
	case r.Mode == Leased && !r.Params.Algorithm.WindowCoupled() && r.Params.Lifetime == 0:
		return CachedDeny // nothing is granted in advance
	default:
		return r.Mode
	}
}

// MaxCarried returns how many credits of a key may outlive their window.
func (r *Rules) MaxCarried() int64 {
	if r.Expiry != CarryOver {
		return 0
	}
	return r.maxLease - 1 + r.LowWater
}

// paramsOf returns the parameters of a value of the key.
func (r *Rules) paramsOf(value string) limiter.Params {
	if p, ok := r.Overrides[value]; ok {
		return p
	}
	return r.Params
}

// largestCost returns a cost above which the parameters never grant. They may not
// grant as much: of buckets the store takes more into account.
func largestCost(p limiter.Params) int64 {
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

// shortestOf returns the shortest window of the rates.
func shortestOf(p limiter.Params) limiter.Micros {
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
