package adaptive

import (
	"errors"
	"fmt"

	"github.com/weir-dev/weir/pkg/limiter"
)

// Algorithm says how the limit follows from latency.
type Algorithm uint8

// The algorithms.
const (
	Gradient2 Algorithm = iota // in proportion to how much latency rose
	AIMD                       // up by steps, down by a factor
	Fixed                      // not at all: the limit is Max
)

// Config says how a limit is inferred.
type Config struct {
	Algorithm         Algorithm
	Min, Max, Initial int64 // 1 ≤ Min ≤ Initial ≤ Max; Fixed reads Max only

	Baseline Baseline
	// Smoothing is how much of the way a round moves the estimate, over 0 to 1; when the
	// second in a row shows twice the tolerated latency, all of it. Gradient2 only.
	Smoothing float64
	// Tolerance is how many times the baseline latency may be before it is a sign of
	// load, at least 1.
	Tolerance float64
	// Backoff is what the estimate is multiplied by when there is too much load, 0.5
	// to less than 1. AIMD only.
	Backoff float64
}

// BaselineType says how latency without load is known.
type BaselineType uint8

// The types of a baseline.
const (
	Measured BaselineType = iota // it is measured when latency leaves it for long
	Rolling                      // it is the minimum of the latest samples
)

// Baseline says how latency without load is known.
//
// A rolling one follows a backend that became slower within Samples, but takes latency
// under load that lasts for the backend's own, so the limit creeps up to Max. A measured
// one is the mean of what was measured, and falls by later samples. It is measured again
// only when it is in doubt, by holding the load down for a moment, as BBR does with the
// propagation time (Cardwell and others, 2016).
type Baseline struct {
	Type BaselineType

	// Samples is over how many of the latest samples a rolling baseline is the minimum,
	// at least 1. The other fields apply to a measured one.
	Samples int
	// Interval is how often it may be measured, at least 10 µs. That takes place at
	// multiples of the interval, so holders whose clocks agree hold their load down
	// together; and only while the limit is in use and, for the half of it, no samples
	// showed the baseline. For as long as the limit rests, a measurement holds for six
	// times as long.
	//
	// One takes about two latencies and one for each ProbeSamples/ProbeLimit of a holder.
	// It ends after a tenth of the interval, or after four latencies when that is later,
	// and after half of the interval in any case. The interval should be over a hundred
	// times the latency.
	Interval limiter.Micros
	// ProbeLimit is how many the fleet may have in flight meanwhile. Every holder may have
	// one, though. 0 is the limit in force over twice the tolerance, half of what leaves
	// no queue.
	ProbeLimit int64
	// ProbeSamples is how many samples a measurement takes, at least 1.
	ProbeSamples int
}

// Validate reports what is wrong with the configuration.
func (c Config) Validate() error {
	var errs []error
	check := func(ok bool, format string, args ...any) {
		if !ok {
			errs = append(errs, fmt.Errorf(format, args...))
		}
	}
	if c.Algorithm > Fixed {
		return fmt.Errorf("algorithm is %d, which is unknown", c.Algorithm)
	}
	check(c.Max >= 1, "max is %d, below 1", c.Max)
	if c.Algorithm == Fixed {
		return errors.Join(errs...)
	}
	check(c.Min >= 1 && c.Min <= c.Max, "min is %d, outside 1 to max, which is %d", c.Min, c.Max)
	check(c.Initial >= c.Min && c.Initial <= c.Max, "initial is %d, outside min to max, which are %d and %d", c.Initial, c.Min, c.Max)
	check(c.Tolerance >= 1, "tolerance is %v, below 1", c.Tolerance)
	switch c.Algorithm {
	case Gradient2:
		check(c.Smoothing > 0 && c.Smoothing <= 1, "smoothing is %v, outside over 0 to 1", c.Smoothing)
	case AIMD:
		check(c.Backoff >= 0.5 && c.Backoff < 1, "backoff is %v, outside 0.5 to less than 1", c.Backoff)
	case Fixed:
	}
	switch b := c.Baseline; b.Type {
	case Measured:
		check(b.Interval >= 10, "baseline interval is %dµs, below 10µs", b.Interval)
		check(b.ProbeLimit >= 0, "baseline probeLimit is %d, below 0", b.ProbeLimit)
		check(b.ProbeSamples >= 1, "baseline probeSamples is %d, below 1", b.ProbeSamples)
	case Rolling:
		check(b.Samples >= 1, "baseline samples is %d, below 1", b.Samples)
	default:
		check(false, "baseline type is %d, which is unknown", b.Type)
	}
	return errors.Join(errs...)
}

// clamp returns the estimate within the bounds.
func (c Config) clamp(estimate float64) float64 {
	return min(max(estimate, float64(c.Min)), float64(c.Max))
}
