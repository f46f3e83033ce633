package limiter_test

import (
	"testing"

	"github.com/weir-dev/weir/pkg/limiter"
)

// BenchmarkStep takes one unit after another of limits that are never reached.
func BenchmarkStep(b *testing.B) {
	second := []limiter.Rate{{Limit: limiter.MaxLimit, Window: limiter.Second}}
	even := []limiter.Rate{{Limit: 1_000_000_000, Window: limiter.Second}}
	for name, p := range map[string]limiter.Params{
		"FixedWindow":            {Rates: second},
		"FixedWindow, two rates": {Rates: append([]limiter.Rate{{Limit: limiter.MaxLimit, Window: limiter.MaxWindow}}, second...)},
		"FixedWindow, tenants":   {Rates: second, Fairness: limiter.Fairness{Default: 1}},
		"SlidingWindow":          {Algorithm: limiter.SlidingWindow, Rates: second, Buckets: 10},
		"SlidingLog, 1024 parts": {Algorithm: limiter.SlidingLog, Rates: second},
		"TokenBucket":            {Algorithm: limiter.TokenBucket, Rates: even},
		"GCRA, with a lifetime":  {Algorithm: limiter.GCRA, Rates: even, Lifetime: limiter.Second / 10},
		"LeakyBucket":            {Algorithm: limiter.LeakyBucket, Rates: even, MaxDelay: limiter.Second},
	} {
		b.Run(name, func(b *testing.B) {
			var s limiter.State
			var res limiter.Result
			now := limiter.Instant(1_800_000_000_000_000)
			b.ReportAllocs()
			for b.Loop() {
				if s, res = p.Step(s, now, limiter.Command{Min: 1, Want: 1}); res.Granted != 1 {
					b.Fatal(res)
				}
				now++
			}
		})
	}
}
