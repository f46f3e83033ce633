package policy

import (
	"math"
	"math/bits"

	"github.com/weir-dev/weir/pkg/limiter"
)

// Ceilings returns what the fleet admits at most in one aligned window of each
// rate of params, credits that were carried in not counted:
//
//	FixedWindow                      the limit
//	SlidingWindow, SlidingLog        the limit, as in every interval of that length
//	TokenBucket, GCRA                the burst, and the limit that flows in meanwhile
//	LeakyBucket                      what may wait, and the limit that flows out meanwhile
//	any of them, one rate is enough  the sum of what each rate admits in that time
//
// Amounts beyond the largest int64 are that.
func Ceilings(params limiter.Params) []int64 {
	ceilings := make([]int64, len(params.Rates))
	for i, r := range params.Rates {
		if !params.Any {
			ceilings[i] = admitted(params, r, r.Window)
			continue
		}
		for _, o := range params.Rates {
			ceilings[i] = plus(ceilings[i], admitted(params, o, r.Window))
		}
	}
	return ceilings
}

// admitted returns what one rate alone admits at most in an aligned window of
// that length.
func admitted(params limiter.Params, r limiter.Rate, length limiter.Micros) int64 {
	switch params.Algorithm {
	case limiter.FixedWindow:
		if length == r.Window {
			return r.Limit
		}
		return portion(r.Limit, int64(length/r.Window)+2, 1) // one that is cut at each end
	case limiter.SlidingWindow, limiter.SlidingLog:
		return portion(r.Limit, (int64(length)+int64(r.Window)-1)/int64(r.Window), 1)
	case limiter.LeakyBucket:
		waiting := plus(portion(r.Limit, int64(params.MaxDelay), int64(r.Window)), 1)
		return plus(waiting, portion(r.Limit, int64(length), int64(r.Window)))
	default:
		burst := r.Burst
		if burst == 0 {
			burst = r.Limit
		}
		return plus(burst, portion(r.Limit, int64(length), int64(r.Window)))
	}
}

// Carry returns how many units each holder may carry into a window of the limit,
// which is one of p: none unless leases carry over. Then a lease may be untouched
// but for one unit, and on top of what was left when it was asked for ahead of
// need.
func (l *Limit) Carry(p *Policy) int64 {
	c := l.ConsistencyOf(p)
	if c.Mode != Leased || c.Expiry != CarryOver {
		return 0
	}
	largest := c.Largest()
	if l.Cost != nil {
		largest = max(largest, l.Cost.Max)
	}
	return largest - 1 + c.LowWater
}

// Settled reports whether each request is charged in full before it is let
// through. Where the response names a cost above what was reserved nothing bounds
// what a window admits.
func (l *Limit) Settled() bool {
	c := l.Cost
	return c == nil || c.ResponseHeader == "" || c.RequestHeader == "" && c.Default == c.Max
}

// portion returns amount·part/whole, rounded up.
func portion(amount, part, whole int64) int64 {
	high, low := bits.Mul64(uint64(amount), uint64(part))
	low, carry := bits.Add64(low, uint64(whole-1), 0)
	high += carry
	if high >= uint64(whole) {
		return math.MaxInt64
	}
	quotient, _ := bits.Div64(high, low, uint64(whole))
	return int64(min(quotient, math.MaxInt64))
}

func plus(a, b int64) int64 {
	if a > math.MaxInt64-b {
		return math.MaxInt64
	}
	return a + b
}
