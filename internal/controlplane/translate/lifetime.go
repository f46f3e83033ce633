package translate

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/weir-dev/weir/api/v1alpha1"
	"github.com/weir-dev/weir/pkg/limiter"
	"github.com/weir-dev/weir/pkg/policy"
)

// The lifetime of credits that no window ends, where none is given: a twentieth of
// the window, within a range that a round trip to the store fits into and a person
// does not notice. At most a quarter of a bucket's burst flows in meanwhile, so that three
// quarters of it can still be granted at once.
const (
	shortestLifetime = 20 * limiter.Millisecond
	longestLifetime  = limiter.Second
	lifetimeParts    = 20
	burstParts       = 4

	// leastLifetime is the shortest that is worth a lease.
	leastLifetime = 5 * limiter.Millisecond
)

// lifetimes sets how long the credits of each limit without windows live.
func (t *translator) lifetimes(path *field.Path, p *v1alpha1.RateLimitPolicy, out *policy.Policy) {
	var given limiter.Micros
	if lease := p.Spec.Consistency.Lease; lease != nil && lease.Lifetime != "" {
		given = t.micros(path, string(lease.Lifetime))
	}
	for i := range out.Limits {
		l := &out.Limits[i]
		switch {
		case l.Params(out).Algorithm.WindowCoupled() || l.Algorithm == policy.LeakyBucket:
		case given == 0:
			l.Lifetime = lifetime(l)
		default:
			l.Lifetime = given
			t.checkLifetime(path, l, given)
		}
	}
}

// lifetime returns how long credits of the limit live where nothing is said; 0 when
// no time is left for them.
func lifetime(l *policy.Limit) limiter.Micros {
	shortest := longestLifetime
	for _, r := range everyRate(l) {
		shortest = min(shortest, max(shortestLifetime, r.Window/lifetimeParts), longest(l, r, dearest(l, r)))
		if isBucket(l) {
			shortest = min(shortest, scale(r.Window, burst(r), r.Limit)/burstParts)
		}
	}
	if shortest < leastLifetime {
		return 0
	}
	return shortest - shortest%limiter.Millisecond
}

// longest returns how long credits may live at most: for a window, or in a bucket for the
// time that leaves enough of its burst for a request of that cost.
func longest(l *policy.Limit, r limiter.Rate, cost int64) limiter.Micros {
	if !isBucket(l) {
		return r.Window
	}
	return scale(r.Window, max(0, burst(r)-cost), r.Limit)
}

// dearest returns the cost of the dearest request that the rate admits.
func dearest(l *policy.Limit, r limiter.Rate) int64 {
	switch {
	case l.Cost == nil:
		return 1
	case l.Cost.Max <= burst(r):
		return l.Cost.Max
	default:
		return l.Cost.Default
	}
}

// usual returns what a request costs whose headers do not say.
func usual(l *policy.Limit) int64 {
	if l.Cost == nil {
		return 1
	}
	return l.Cost.Default
}

func isBucket(l *policy.Limit) bool {
	return l.Algorithm == policy.TokenBucket || l.Algorithm == policy.GCRA
}

// everyRate returns the rates of the limit and of its overrides.
func everyRate(l *policy.Limit) []limiter.Rate {
	rates := slices.Clip(l.Rates)
	for _, o := range l.Overrides {
		rates = append(rates, o.Rates...)
	}
	return rates
}

// checkLifetime refuses a lifetime for which one of the rates has no room.
func (t *translator) checkLifetime(path *field.Path, l *policy.Limit, given limiter.Micros) {
	for _, r := range everyRate(l) {
		most, needed := longest(l, r, usual(l)), leastBurst(r, given, usual(l))
		switch {
		case given <= most:
			continue
		case !isBucket(l):
			t.invalid(path, text(given), fmt.Sprintf("is longer than a window of limit %s: shorten it to at most %s", l.Name, text(most)))
		case most < leastLifetime:
			t.invalid(path, text(given), fmt.Sprintf("leaves too little of the burst of limit %s (%d at %d per %s): raise its burst to %d or more, or set mode to Strict",
				l.Name, burst(r), r.Limit, text(r.Window), needed))
		default:
			t.invalid(path, text(given), fmt.Sprintf("leaves too little of the burst of limit %s (%d at %d per %s): shorten it to at most %s, or raise its burst to %d or more",
				l.Name, burst(r), r.Limit, text(r.Window), text(most-most%limiter.Millisecond), needed))
		}
		return
	}
}

// leastBurst returns a burst that leaves enough for a request of that cost while
// credits live that long.
func leastBurst(r limiter.Rate, lifetime limiter.Micros, cost int64) int64 {
	return scale(r.Limit, lifetime, r.Window) + 1 + cost
}
