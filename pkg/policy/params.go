package policy

import (
	"cmp"
	"math"
	"math/bits"
	"slices"

	"github.com/weir-dev/weir/pkg/limiter"
	"github.com/weir-dev/weir/pkg/store"
)

var algorithms = map[Algorithm]limiter.Algorithm{
	FixedWindow:   limiter.FixedWindow,
	SlidingWindow: limiter.SlidingWindow,
	SlidingLog:    limiter.SlidingLog,
	TokenBucket:   limiter.TokenBucket,
	GCRA:          limiter.GCRA,
	LeakyBucket:   limiter.LeakyBucket,
}

// Params returns what the limit, which is one of p, is worked by, for every value
// of its key that has no override.
func (l *Limit) Params(p *Policy) limiter.Params {
	return limiter.Params{
		Algorithm:  algorithms[l.Algorithm], // FixedWindow when none is named
		Rates:      l.Rates,
		Any:        l.Any,
		Buckets:    l.Buckets,
		MaxDelay:   l.MaxDelay,
		Lifetime:   l.Lifetime,
		Fairness:   l.Fairness.params(),
		Since:      p.Since,
		Generation: p.Generation,
		Retention:  l.Retention,
	}
}

// params returns the weights by the hash of their tenant, as CompiledLimit.Tenant
// names it.
func (f *Fairness) params() limiter.Fairness {
	if f == nil {
		return limiter.Fairness{}
	}
	out := limiter.Fairness{Default: f.DefaultWeight, Reserve: f.Reserve}
	for _, w := range f.Weights {
		out.Weights = append(out.Weights, limiter.Weight{Tenant: store.HashValue(JoinParts(w.Tenant)), Weight: w.Weight})
	}
	slices.SortFunc(out.Weights, func(a, b limiter.Weight) int { return cmp.Compare(a.Tenant, b.Tenant) })
	return out
}

// Overridden returns what the limit is worked by for those values that have rates
// of their own, by the value of the key as CompiledLimit.Value returns it. It is
// nil for a limit without overrides.
func (l *Limit) Overridden(p *Policy) map[string]limiter.Params {
	if len(l.Overrides) == 0 {
		return nil
	}
	params := make(map[string]limiter.Params)
	for _, o := range l.Overrides {
		of := l.Params(p)
		of.Rates = o.Rates
		for _, v := range o.Values {
			params[JoinParts(v...)] = of
		}
	}
	return params
}

// ConsistencyOf returns how the limit, which is one of p, uses the store. It is the
// policy's consistency, except that a grant without a lifetime cannot be leased
// where no window says when it dies: then the store is asked for each request that
// it may admit.
func (l *Limit) ConsistencyOf(p *Policy) Consistency {
	if p.Consistency.Mode == Leased && l.Lifetime == 0 && !algorithms[l.Algorithm].WindowCoupled() {
		return Consistency{Mode: CachedDeny}
	}
	return p.Consistency
}

// Carry returns how many units each holder may carry into a window of the limit,
// which is one of p: none unless leases carry over. Then it is a lease but for one
// unit, and what was left when that was asked for ahead of need; the engine drops
// more. So a window admits at most limiter.Params.MostPerWindow and this for each
// holder.
func (l *Limit) Carry(p *Policy) int64 {
	c := l.ConsistencyOf(p)
	if c.Mode != Leased || c.Expiry != CarryOver {
		return 0
	}
	most := c.Largest()
	if c.Size != Fixed {
		most = min(most, l.AtOnce(l.Rates)) // what is learned stays within the limit
	}
	return most - 1 + c.LowWater
}

// AtOnce returns the most that the limit admits at once by these rates, its own or
// those of an override: a request that costs more is always refused. For a burst it
// is the burst less what flows in during the lifetime of credits; see
// limiter.Params.Lifetime.
func (l *Limit) AtOnce(rates []limiter.Rate) int64 {
	var least, most int64 = math.MaxInt64, 0
	for _, r := range rates {
		var amount int64
		switch l.Algorithm {
		default: // windows
			amount = r.Limit
		case TokenBucket, GCRA:
			amount = max(0, cmp.Or(r.Burst, r.Limit)-flow(r, l.Lifetime, int64(r.Window)-1))
		case LeakyBucket: // what may wait, and whose turn it is
			amount = min(flow(r, l.MaxDelay, 0), math.MaxInt64-1) + 1
		}
		least, most = min(least, amount), max(most, amount)
	}
	if l.Any {
		return most
	}
	return least
}

// flow returns how many units of the rate pass in the length, at most the largest
// int64; extra is added to the numerator, above the denominator Window.
func flow(r limiter.Rate, length limiter.Micros, extra int64) int64 {
	high, low := bits.Mul64(uint64(r.Limit), uint64(length))
	low, carry := bits.Add64(low, uint64(extra), 0)
	if high += carry; high >= uint64(r.Window) {
		return math.MaxInt64
	}
	count, _ := bits.Div64(high, low, uint64(r.Window))
	return int64(min(count, math.MaxInt64))
}

// Settled reports whether each request is charged in full before it is let
// through. Where the response names a cost above what was reserved nothing bounds
// what a window admits.
func (l *Limit) Settled() bool {
	c := l.Cost
	return c == nil || c.ResponseHeader == "" || c.RequestHeader == "" && c.Default == c.Max
}

// Hash names the counter of the value.
func (v Value) Hash() string { return store.HashValue(JoinParts(v...)) }
