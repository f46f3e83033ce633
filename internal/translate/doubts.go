package translate

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/weir-dev/weir/api/v1alpha1"
	"github.com/weir-dev/weir/pkg/limiter"
	"github.com/weir-dev/weir/pkg/policy"
)

// longWindow is the length from which on losing a window to a crash hurts.
const longWindow = 60 * limiter.Second

// doubts returns what works and may yet not be what was meant.
func doubts(p *v1alpha1.RateLimitPolicy, translated policy.Policy) []string {
	spec := field.NewPath("spec")
	warnings := unusedClientIP(spec, p)
	if translated.Consistency.Mode == policy.Leased {
		warnings = append(warnings, largeBatch(spec, p, translated)...)
	}
	for i := range translated.Limits {
		path := spec.Child("limits").Index(i)
		warnings = append(warnings, encodedPaths(path, translated.Limits[i].Match)...)
		warnings = append(warnings, idleRates(path, &p.Spec.Limits[i], translated.Limits[i].Rates)...)
		if translated.Store.Type == policy.ControllerStore {
			warnings = append(warnings, longWindows(path, &p.Spec.Limits[i], translated.Limits[i].Rates)...)
		}
	}
	return warnings
}

func warn(path *field.Path, format string, args ...any) string {
	return path.String() + ": " + fmt.Sprintf(format, args...)
}

func unusedClientIP(spec *field.Path, p *v1alpha1.RateLimitPolicy) []string {
	if p.Spec.ClientIP == nil || slices.ContainsFunc(p.Spec.Limits, keyedByClientIP) {
		return nil
	}
	return []string{warn(spec.Child("clientIP"), "no limit has a key part of type ClientIP, so this has no effect: add one or remove clientIP")}
}

func keyedByClientIP(l v1alpha1.Limit) bool {
	return l.Key != nil && slices.ContainsFunc(l.Key.Parts, func(part v1alpha1.KeyPart) bool {
		return part.Type == v1alpha1.ClientIPPart
	})
}

// largeBatch warns when one lease can empty a window: every other pod would be
// refused although the budget is not spent.
func largeBatch(spec *field.Path, p *v1alpha1.RateLimitPolicy, translated policy.Policy) []string {
	smallest, limit, window := limiter.MaxLimit+1, "", v1alpha1.Duration("")
	for _, l := range p.Spec.Limits {
		for _, r := range l.Rates {
			if r.Limit < smallest {
				smallest, limit, window = r.Limit, l.Name, r.Window
			}
		}
	}
	batch := translated.Consistency.Batch
	if batch < smallest || smallest == 1 {
		return nil
	}
	size := fmt.Sprint(batch)
	if p.Spec.Consistency.Lease == nil {
		size += ", the default"
	}
	return []string{warn(spec.Child("consistency", "lease", "size", "batch"),
		"one lease (%s) can hold all that limit %s admits in %s (%d), so that other pods refuse: lower it, for example to %d",
		size, limit, window, smallest, max(1, smallest/10))}
}

// idleRates warns of rates that another rate of the limit keeps from ever being
// reached.
func idleRates(path *field.Path, l *v1alpha1.Limit, rates []limiter.Rate) []string {
	var warnings []string
	for i, idle := range rates {
		for j, other := range rates {
			if i != j && neverBinds(idle, other) {
				warnings = append(warnings, warn(path.Child("rates").Index(i),
					"%d per %s is never reached, because rates[%d] admits at most %d in any %s: lower its limit below that or remove the rate",
					idle.Limit, l.Rates[i].Window, j, other.Limit*windowsTouched(idle, other), l.Rates[i].Window))
				break
			}
		}
	}
	return warnings
}

// neverBinds reports whether other alone keeps every window of idle from
// admitting more than its limit.
func neverBinds(idle, other limiter.Rate) bool {
	return other.Limit <= idle.Limit/windowsTouched(idle, other)
}

// windowsTouched returns the most windows of other that one window of r shares
// time with. Both are aligned to multiples of their length, so the distance from
// one's start to the other's is a multiple of their greatest common divisor.
func windowsTouched(r, other limiter.Rate) int64 {
	latest := other.Window - greatestCommonDivisor(r.Window, other.Window)
	return int64((latest + r.Window + other.Window - 1) / other.Window)
}

func greatestCommonDivisor(a, b limiter.Micros) limiter.Micros {
	for b != 0 {
		a, b = b, a%b
	}
	return a
}

func longWindows(path *field.Path, l *v1alpha1.Limit, rates []limiter.Rate) []string {
	var warnings []string
	for i, r := range rates {
		if r.Window > longWindow {
			warnings = append(warnings, warn(path.Child("rates").Index(i).Child("window"),
				"after a crash of the controller nothing is admitted until an open window of %s ends: set spec.store.type to Redis, or use windows of at most 1m",
				l.Rates[i].Window))
		}
	}
	return warnings
}

// encodedPaths warns of paths written as in a URL. Sidecars compare decoded paths.
func encodedPaths(path *field.Path, matches []policy.Match) []string {
	var warnings []string
	for i, m := range matches {
		for j, p := range m.Paths {
			if p.Type != policy.RegularExpression && strings.Contains(p.Value, "%") {
				warnings = append(warnings, warn(path.Child("match").Index(i).Child("paths").Index(j).Child("value"),
					"paths are compared decoded, so %% stands for itself: write the character that %q encodes", p.Value))
			}
		}
	}
	return warnings
}
