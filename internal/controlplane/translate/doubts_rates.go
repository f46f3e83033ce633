package translate

import (
	"math/bits"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/weir-dev/weir/api/v1alpha1"
	"github.com/weir-dev/weir/pkg/limiter"
	"github.com/weir-dev/weir/pkg/policy"
)

const (
	// shortestMonth is the length of February.
	shortestMonth = 28 * limiter.Day
	// rememberedGrants is how many grants a sliding log distinguishes.
	rememberedGrants = 1024
)

// rates returns doubts about the rates of the limit or of one of its overrides.
func (d limitDoubts) rates(path *field.Path, spec []v1alpha1.Rate, rates []limiter.Rate) []string {
	var warnings []string
	for i, r := range rates {
		at := path.Index(i)
		if j := d.lower(rates, i); j >= 0 {
			warnings = append(warnings, warn(at,
				"%d per %s is never reached, because rates[%d] alone keeps below it: lower its limit or remove the rate", r.Limit, windowOf(spec[i]), j))
		}
		if isLong(r) && !d.limit.Retention.Durable {
			warnings = append(warnings, warn(at.Child(windowField(spec[i])),
				"after a restart of the store nothing is admitted until an open window of %s ends: set spec.store.memory to Auto or Durable, or use windows of at most 1m", windowOf(spec[i])))
		}
		if d.limit.Algorithm == policy.SlidingLog && d.policy.Consistency.Mode != policy.Leased && r.Limit > rememberedGrants {
			warnings = append(warnings, warn(at.Child("limit"),
				"a SlidingLog distinguishes %d grants, and beyond them gives budget back later than it could: set algorithm to SlidingWindow, or mode to Leased", rememberedGrants))
		}
	}
	if d.limit.Any && len(rates) == 1 {
		warnings = append(warnings, warn(d.path.Child("combine"), "there is one rate only, so Any has no effect at %s: add a rate, or remove combine", path))
	}
	return warnings
}

// windowOf returns the length or the name of the windows.
func windowOf(r v1alpha1.Rate) string {
	if r.Cadence != "" {
		return string(r.Cadence)
	}
	return string(r.Window)
}

func windowField(r v1alpha1.Rate) string {
	if r.Cadence != "" {
		return "cadence"
	}
	return "window"
}

// lower returns the index of a rate that keeps rates[i] from ever being reached, -1
// when there is none.
func (d limitDoubts) lower(rates []limiter.Rate, i int) int {
	if d.limit.Any {
		return -1
	}
	for j, other := range rates {
		if j != i && neverBinds(d.limit.Algorithm, rates[i], other) {
			return j
		}
	}
	return -1
}

// neverBinds reports whether other alone keeps idle from ever refusing.
func neverBinds(a policy.Algorithm, idle, other limiter.Rate) bool {
	switch a {
	case policy.TokenBucket, policy.GCRA:
		return burst(other) <= burst(idle) && slower(other, idle)
	case policy.SlidingWindow, policy.SlidingLog:
		covering := int64((idle.Window + other.Window - 1) / other.Window)
		return other.Limit <= idle.Limit/covering
	default:
		return other.Limit <= idle.Limit/windowsTouched(idle, other)
	}
}

// slower reports whether a flows no faster than b.
func slower(a, b limiter.Rate) bool {
	aHigh, aLow := bits.Mul64(uint64(a.Limit), uint64(b.Window))
	bHigh, bLow := bits.Mul64(uint64(b.Limit), uint64(a.Window))
	return aHigh < bHigh || aHigh == bHigh && aLow <= bLow
}

// windowsTouched returns the most windows of other that one window of r shares time
// with. Where both are aligned to multiples of their length, the distance from one's
// start to the other's is a multiple of their greatest common divisor.
func windowsTouched(r, other limiter.Rate) int64 {
	length := other.Window
	if other.Monthly {
		length = shortestMonth
	}
	step := greatestCommonDivisor(r.Window, length)
	if r.Monthly || other.Monthly || r.Offset != other.Offset {
		step = 1
	}
	return int64((length - step + r.Window + length - 1) / length)
}

func greatestCommonDivisor(a, b limiter.Micros) limiter.Micros {
	for b != 0 {
		a, b = b, a%b
	}
	return a
}
