package limiter

import (
	"math"
	"math/bits"
)

// MostPerWindow returns the most that is spent in one aligned window of the rate,
// which is one of p:
//
//	FixedWindow                the limit
//	SlidingWindow, SlidingLog  the limit, as in every interval of that length
//	TokenBucket, GCRA          the burst, and the limit that flows in meanwhile
//	LeakyBucket                what may wait, and the limit that flows out meanwhile
//
// Where one rate that admits is enough it is what all of them admit in that time,
// since each grant is charged in full to one of them. A result beyond the largest
// int64 is that.
func (p Params) MostPerWindow(r Rate) int64 {
	if !p.Any {
		return p.mostIn(r.Window, r)
	}
	var most int64
	for _, o := range p.Rates {
		most = plus(most, p.mostIn(r.Window, o))
	}
	return most
}

// mostIn returns what one rate alone admits at most in an aligned window of that
// length.
func (p Params) mostIn(length Micros, r Rate) int64 {
	switch {
	case p.Algorithm.machine() == bucketMachine:
		cost, _ := r.pace()
		return plus(p.brim(r)/cost, scaleUp(r.Limit, length, r.Window))
	case length == r.Window:
		return r.Limit
	case p.Algorithm.machine() == slidingMachine:
		return scaleUp(r.Limit, Micros(ceilDiv(int64(length), int64(r.Window))), 1)
	default: // its windows may be cut at both ends, and a month may be short
		return scaleUp(r.Limit, length/min(r.Window, 28*Day)+2, 1)
	}
}

// MostAtOnce returns the most that one Take is ever granted, to whatever tenant.
func (p Params) MostAtOnce() int64 {
	var most int64
	for i, r := range p.Rates {
		grants := r.Limit
		if p.Algorithm.machine() == bucketMachine {
			grants = p.capacity(r)
		}
		if i == 0 || p.Any == (grants > most) {
			most = grants
		}
	}
	return most
}

// scaleUp returns amount·part/whole, rounded up, at most the largest int64.
func scaleUp(amount int64, part, whole Micros) int64 {
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

// Longest returns the rate with the longest window, the first of several.
func (p Params) Longest() Rate {
	r := p.Rates[0]
	for _, other := range p.Rates[1:] {
		if other.Window > r.Window {
			r = other
		}
	}
	return r
}
