package storetest

import (
	"math/rand/v2"

	"github.com/weir-dev/weir/pkg/limiter"
)

// Params returns parameters of a random algorithm and generation 1. The windows of
// algorithms without windows are short, so that the memory of a store covers them
// after Settle; those of FixedWindow have the given lengths or are months.
func Params(rng *rand.Rand, lengths []limiter.Micros) limiter.Params {
	for {
		p := limiter.Params{Generation: 1, Algorithm: limiter.Algorithm(rng.IntN(int(limiter.LeakyBucket) + 1)), Any: rng.IntN(4) == 0}
		if p.Algorithm == limiter.FixedWindow {
			windows(rng, &p, lengths)
		} else {
			p.Rates = Rates(rng, []limiter.Micros{limiter.MinWindow, limiter.MinWindow + 7, limiter.MinWindow * 3 / 2}, 40)
			coupledByTime(rng, &p)
		}
		if p.Validate() == nil {
			return p
		}
	}
}

// Settle is how long a new store has to wait until the short windows of Params,
// and what may be spent late of them, lie in its memory.
const Settle = limiter.Second

func windows(rng *rand.Rand, p *limiter.Params, lengths []limiter.Micros) {
	p.Rates = Rates(rng, lengths, 40)
	if rng.IntN(4) == 0 {
		p.Rates[0] = limiter.Rate{Limit: 1 + rng.Int64N(40), Window: limiter.MaxWindow, Monthly: true}
	}
	if rng.IntN(4) == 0 {
		p.Rates[0].Offset = limiter.Micros(rng.Int64N(2*int64(limiter.MaxOffset))) - limiter.MaxOffset
	}
	if len(p.Rates) == 1 && !p.Any && rng.IntN(2) == 0 {
		p.Fairness.Default = 1 + rng.Int64N(3)
		for _, tenant := range tenants[:rng.IntN(len(tenants))] {
			p.Fairness.Weights = append(p.Fairness.Weights, limiter.Weight{Tenant: tenant, Weight: 1 + rng.Int64N(5)})
		}
	}
}

// tenants are those of the commands, in order.
var tenants = []string{"", "bronze", "gold", "silver"}

func coupledByTime(rng *rand.Rand, p *limiter.Params) {
	const late = 20 * int64(limiter.Millisecond)
	switch p.Algorithm {
	case limiter.SlidingWindow:
		p.Buckets = 1 + rng.Int64N(20)
	case limiter.TokenBucket, limiter.GCRA:
		for i := range p.Rates {
			p.Rates[i].Burst = rng.Int64N(2 * p.Rates[i].Limit)
		}
	case limiter.LeakyBucket:
		p.MaxDelay = limiter.Micros(rng.Int64N(5 * late))
		return
	default:
	}
	if rng.IntN(2) == 0 {
		p.Lifetime = limiter.Micros(rng.Int64N(late))
	}
}

// Rates returns 1 to len(lengths) rates of different lengths and limits up to
// most.
func Rates(rng *rand.Rand, lengths []limiter.Micros, most int64) []limiter.Rate {
	var rates []limiter.Rate
	for _, i := range rng.Perm(len(lengths))[:1+rng.IntN(min(len(lengths), limiter.MaxRates))] {
		rates = append(rates, limiter.Rate{Limit: 1 + rng.Int64N(most), Window: lengths[i]})
	}
	return rates
}

// Command returns an operation on up to most units. A return gives back a grant,
// or one that never was.
func Command(rng *rand.Rand, most int64, grant limiter.Result) limiter.Command {
	low := 1 + rng.Int64N(most)
	c := limiter.Command{
		Min: low, Want: low + rng.Int64N(most), First: rng.IntN(3) == 0, Tenant: tenants[rng.IntN(len(tenants))],
	}
	switch n := rng.IntN(40); {
	case n == 0:
		c.Op = limiter.Reset
	case n < 6:
		c.Op = limiter.Peek
	case n < 16:
		c.Op, c.Min, c.Windows, c.At = limiter.Return, 0, grant.Windows, grant.Now
		switch rng.IntN(8) {
		case 0:
			c.Windows.Open[0].Index--
		case 1:
			c.At += limiter.Instant(rng.IntN(2001) - 1000)
		}
	}
	return c
}
