package limiter

import (
	"errors"
	"fmt"
)

// Params are what a limit is worked by: what Step makes of a state and a command.
type Params struct {
	Algorithm Algorithm
	Rates     []Rate // 1 to MaxRates, of different windows
	// Any makes one rate that admits enough; otherwise every rate has to. Either way
	// each counts all that was granted.
	Any bool
	// Buckets is the number of parts a window is counted in, 1 to MaxBuckets.
	// SlidingWindow only.
	Buckets int64
	// MaxDelay is the longest a grant may have to wait, 0 to MaxWindow.
	// LeakyBucket only.
	MaxDelay Micros
	// Lifetime is how long after the grant a unit may be spent; 0 when it is spent
	// at once. The algorithm's promise holds for the instants of spending, whenever
	// within the lifetime they are. Time-coupled algorithms only.
	Lifetime Micros
	// Fairness splits the window over tenants. FixedWindow with one rate only.
	Fairness Fairness
	// Since is when the store took the limit over from another one, on its own
	// clock: it does not know what was granted before. 0 when it never did.
	Since      Instant
	Generation int64 // of the policy, 0 to MaxGeneration
	// Retention is how the store keeps the counter.
	Retention Retention
}

// MaxBuckets bounds how finely SlidingWindow counts.
const MaxBuckets = 1000

// Validate reports what is wrong with the parameters.
func (p Params) Validate() error {
	errs := append(make([]error, 0, 8), p.validateRates()) // as many as there may be: they take no memory
	if p.Generation < 0 || p.Generation > MaxGeneration {
		errs = append(errs, fmt.Errorf("generation is %d, outside 0 to %d", p.Generation, MaxGeneration))
	}
	if p.Algorithm > LeakyBucket {
		return errors.Join(append(errs, fmt.Errorf("algorithm is %d, which is unknown", p.Algorithm))...)
	}
	only := func(a Algorithm, name string, value, low, high int64) {
		switch {
		case p.Algorithm != a && value != 0:
			errs = append(errs, fmt.Errorf("%s is %d, but it belongs to %v", name, value, a))
		case p.Algorithm == a && (value < low || value > high):
			errs = append(errs, fmt.Errorf("%s is %d, outside %d to %d", name, value, low, high))
		}
	}
	only(SlidingWindow, "buckets", p.Buckets, 1, MaxBuckets)
	only(LeakyBucket, "maxDelay", int64(p.MaxDelay), 0, int64(MaxWindow))
	switch {
	case p.Lifetime < 0 || p.Lifetime > MaxWindow:
		errs = append(errs, fmt.Errorf("lifetime is %dµs, outside 0 to 744h", p.Lifetime))
	case p.Lifetime > 0 && (p.Algorithm.WindowCoupled() || p.Algorithm == LeakyBucket):
		errs = append(errs, fmt.Errorf("lifetime is %dµs, but %v does not grant in advance by time", p.Lifetime, p.Algorithm))
	}
	if p.Algorithm == LeakyBucket && len(p.Rates) > 1 {
		errs = append(errs, fmt.Errorf("rates has %d entries, but what waits in a LeakyBucket leaves at one pace: keep the slowest", len(p.Rates)))
	}
	errs = append(errs, p.Retention.validate(), p.validateFairness())
	if err := errors.Join(errs...); err != nil {
		return err
	}
	for i, r := range p.Rates {
		if err := p.validateBucket(r); err != nil {
			errs = append(errs, fmt.Errorf("rates[%d]: %w", i, err))
		}
	}
	return errors.Join(errs...)
}

func (p Params) validateRates() error {
	if len(p.Rates) == 0 || len(p.Rates) > MaxRates {
		return fmt.Errorf("a limit has 1 to %d rates, not %d", MaxRates, len(p.Rates))
	}
	var errs []error
	for i, r := range p.Rates {
		if err := p.validateRate(r); err != nil {
			errs = append(errs, fmt.Errorf("rates[%d]%w", i, err))
		}
		for j := range i {
			if p.Rates[j].sameWindows(r) {
				errs = append(errs, fmt.Errorf("rates[%d].window equals rates[%d].window; keep the smaller limit of the two", i, j))
			}
		}
	}
	return errors.Join(errs...)
}

func (p Params) validateRate(r Rate) error {
	switch {
	case r.Burst != 0 && p.Algorithm != TokenBucket && p.Algorithm != GCRA:
		return fmt.Errorf(".burst is %d, but %v has no burst", r.Burst, p.Algorithm)
	case (r.Offset != 0 || r.Monthly) && p.Algorithm != FixedWindow:
		return fmt.Errorf(": %v has no aligned windows to shift", p.Algorithm)
	}
	return r.validate()
}

// validateBucket reports a bucket whose level would not be exact, or one that its
// own lifetime leaves nothing of.
func (p Params) validateBucket(r Rate) error {
	if p.Algorithm.machine() != bucketMachine {
		return nil
	}
	cost, drain := r.pace()
	if r.burst() > MaxExact/cost-1 {
		return fmt.Errorf("a burst of %d at %d per %dµs cannot be counted exactly: choose a limit that divides the window evenly, a smaller burst or a shorter window",
			r.burst(), r.Limit, r.Window)
	}
	if int64(max(p.Lifetime, p.MaxDelay)) > MaxExact/drain-cost/drain-1 {
		return fmt.Errorf("a wait of %dµs at %d per %dµs cannot be counted exactly: choose a limit that divides the window evenly or a shorter wait",
			max(p.Lifetime, p.MaxDelay), r.Limit, r.Window)
	}
	if p.capacity(r) < 1 {
		return fmt.Errorf("a burst of %d is spent on the lifetime of grants, %dµs: choose a larger burst or a shorter lifetime",
			r.burst(), p.Lifetime)
	}
	return nil
}

func (p Params) validateFairness() error {
	f := p.Fairness
	switch {
	case f.Default == 0 && len(f.Weights) == 0:
		return nil
	case p.Algorithm != FixedWindow || len(p.Rates) != 1 || p.Any:
		return errors.New("fairness splits one window: it needs FixedWindow with one rate, and any false")
	case f.Default < 1 || f.Default > MaxWeight:
		return fmt.Errorf("fairness.default is %d, outside 1 to %d", f.Default, MaxWeight)
	case len(f.Weights) > MaxDeclared:
		return fmt.Errorf("fairness.weights declares %d tenants, more than %d: leave those with the default weight out", len(f.Weights), MaxDeclared)
	}
	for i, w := range f.Weights {
		switch {
		case w.Weight < 1 || w.Weight > MaxWeight:
			return fmt.Errorf("fairness.weights[%d].weight is %d, outside 1 to %d", i, w.Weight, MaxWeight)
		case w.Tenant == OtherTenants:
			return fmt.Errorf("fairness.weights[%d].tenant is %q, which stands for all that are not distinguished", i, w.Tenant)
		case i > 0 && w.Tenant <= f.Weights[i-1].Tenant:
			return fmt.Errorf("fairness.weights[%d].tenant is not after the one before: order the weights by tenant, each once", i)
		}
	}
	return nil
}
