package translate

import (
	"math"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/weir-dev/weir/api/v1alpha1"
	"github.com/weir-dev/weir/pkg/limiter"
	"github.com/weir-dev/weir/pkg/policy"
)

// leaseDoubts are about how credits are leased; path is that of the lease.
func leaseDoubts(path *field.Path, p *v1alpha1.RateLimitPolicy, out *policy.Policy) []string {
	var warnings []string
	c := out.Consistency
	name, smallest := smallestLimit(out)
	switch {
	case smallest <= 1:
	case c.Size == policy.Fixed && c.Batch >= smallest:
		warnings = append(warnings, large(path.Child("size", "batch"), "lease", c.Batch, name, smallest))
	case c.Size != policy.Fixed && c.Min >= smallest:
		warnings = append(warnings, large(path.Child("size", "min"), "lease", c.Min, name, smallest))
	case c.LowWater >= smallest:
		warnings = append(warnings, large(path.Child("lowWater"), "pod", c.LowWater, name, smallest))
	}
	if c.Expiry == policy.CarryOver && c.Size != policy.Fixed && p.Spec.Consistency.Lease.Size.Max == nil {
		warnings = append(warnings, warn(path.Child("expiry"),
			"a window may admit up to pods · %d more than the limit, because a lease may have that many credits by default: set size.type to Fixed, or size.max", c.Max-1+c.LowWater))
	}
	if end := longestLife(out); c.ReturnIdleAfter >= end && end > 0 {
		warnings = append(warnings, warn(path.Child("returnIdleAfter"),
			"credits die after at most %s anyway, so none are ever given back: shorten it, or remove it", text(end)))
	}
	return warnings
}

// large warns when one holder can empty a window: every other would refuse although
// the budget is not spent.
func large(path *field.Path, what string, size int64, limit string, smallest int64) string {
	return warn(path, "one %s (%d) can hold all that limit %s admits at once (%d), so that other pods refuse: lower it, for example to %d",
		what, size, limit, smallest, max(1, smallest/10))
}

// smallestLimit returns the least that one of the limits admits at once.
func smallestLimit(p *policy.Policy) (name string, smallest int64) {
	smallest = math.MaxInt64
	for i := range p.Limits {
		if most := p.Limits[i].AtOnce(p.Limits[i].Rates); most < smallest {
			name, smallest = p.Limits[i].Name, most
		}
	}
	return name, smallest
}

// longestLife returns how long any credit of the policy lives at most.
func longestLife(p *policy.Policy) limiter.Micros {
	var longest limiter.Micros
	for i := range p.Limits {
		l := &p.Limits[i]
		switch {
		case !l.Params(p).Algorithm.WindowCoupled():
			longest = max(longest, l.Lifetime)
		default:
			longest = max(longest, firstToEnd(l.Rates))
			for _, o := range l.Overrides {
				longest = max(longest, firstToEnd(o.Rates))
			}
		}
	}
	return longest
}

// firstToEnd returns how long the shortest window lasts, which ends the credits of
// all.
func firstToEnd(rates []limiter.Rate) limiter.Micros {
	shortest := limiter.MaxWindow
	for _, r := range rates {
		shortest = min(shortest, r.Window)
	}
	return shortest
}

// unleased warns of a limit whose credits would die before they are spent.
func (d limitDoubts) unleased() []string {
	if d.policy.Consistency.Mode != policy.Leased || d.limit.ConsistencyOf(d.policy).Mode == policy.Leased {
		return nil
	}
	var needed int64
	for _, r := range everyRate(d.limit) {
		needed = max(needed, leastBurst(r, leastLifetime, dearest(d.limit, r)), burstParts*leastBurst(r, leastLifetime, 0))
	}
	return []string{warn(d.path.Child("rates"),
		"the burst is too small for credits to be spent from memory, so the store is asked for each request that it may admit: raise burst to %d or more, or set spec.consistency.mode to CachedDeny", needed)}
}
