package policy

import (
	"cmp"
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
