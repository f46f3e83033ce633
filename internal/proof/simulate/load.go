package simulate

import (
	"math/rand/v2"
	"slices"
	"time"
)

// A source makes requests.
type source struct {
	rng     *rand.Rand
	mean    float64   // nanoseconds between two requests
	until   []float64 // cumulated parts of the holders, nil when they are equal
	holders int
	maxCost int64
}

func newSource(l Load, holders int, rng *rand.Rand) *source {
	s := &source{rng: rng, mean: float64(time.Second) / l.Rate, holders: holders, maxCost: max(1, l.MaxCost)}
	total := 0.0
	for _, part := range l.Share {
		total += part
		s.until = append(s.until, total)
	}
	return s
}

// pause returns the time until the next request.
func (s *source) pause() instant { return max(1, instant(s.rng.ExpFloat64()*s.mean)) }

// request returns the holder and the cost of the next request.
func (s *source) request() (holder int, cost int64) {
	if s.until == nil {
		holder = s.rng.IntN(s.holders)
	} else {
		at := s.rng.Float64() * s.until[len(s.until)-1]
		holder, _ = slices.BinarySearch(s.until, at)
	}
	if s.maxCost == 1 {
		return holder, 1
	}
	return holder, 1 + s.rng.Int64N(s.maxCost)
}
