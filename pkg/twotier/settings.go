package twotier

import (
	"math"

	"github.com/weir-dev/weir/pkg/limiter"
)

// settings are a configuration in force, with what follows from it. They are
// immutable: another configuration or store is other settings, and what was asked
// under the old ones is known by that.
type settings struct {
	Config
	gate   *Gate // of the store
	sizing sizing
	most   int64 // units the largest lease asks for ahead of need
	blank  *terms
}

func newSettings(l *Limiter, cfg Config, gate *Gate) *settings {
	s := &settings{Config: cfg.normalize(), gate: gate}
	s.Mode = s.workable()
	s.sizing = s.sizingOf()
	s.most = s.sizing.high
	if s.Size.Type == Fixed {
		s.most = s.Size.Batch
	}
	if !s.Params.Algorithm.WindowCoupled() {
		s.Expiry = Coupled
	}
	s.blank = &terms{limiter: l, settings: s, lowWater: neverLow, need: math.MaxInt64, until: past, ends: past}
	return s
}

// workable returns the mode that the algorithm can be worked in.
func (s *settings) workable() Mode {
	switch {
	case s.Params.Algorithm == limiter.LeakyBucket:
		return Strict // each request has a place in the queue of its own
	case s.Mode == Leased && !s.Params.Algorithm.WindowCoupled() && s.Params.Lifetime == 0:
		return CachedDeny // nothing is granted in advance
	default:
		return s.Mode
	}
}

func (s *settings) sizingOf() sizing {
	limit := largestCost(s.Params)
	high := limit
	if s.Size.Max > 0 {
		high = min(s.Size.Max, limit)
	}
	low := min(max(s.Size.Min, 1), high)
	return sizing{
		low: low, high: high, start: min(max(s.Size.Batch, low), high),
		predictive: s.Size.Type == Predictive,
	}
}

// learns reports whether sizes are learned.
func (s *settings) learns() bool { return s.Mode == Leased && s.Size.Type != Fixed }

// paramsOf returns the parameters of the key's value.
func (s *settings) paramsOf(value string) limiter.Params {
	if p, ok := s.Overrides[value]; ok {
		return p
	}
	return s.Params
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
