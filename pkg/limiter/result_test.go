package limiter_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-dev/weir/pkg/limiter"
)

// TestResultsDescribeTheBindingRate holds the numbers of a result that a caller shows.
func TestResultsDescribeTheBindingRate(t *testing.T) {
	second := rate(10, limiter.Second)
	minute := rate(60, 60*limiter.Second)
	now := limiter.Instant(1_790_000_010_250_000) // 250 ms and 30.25 s into windows
	type numbers struct {
		Granted, Remaining, Limit                int64
		ResetAfter, ExpiresIn, RetryAfter, Delay limiter.Micros
	}
	for name, c := range map[string]struct {
		params limiter.Params
		before []limiter.Command // at now
		ask    limiter.Command
		want   numbers
	}{
		"a window": {
			limiter.Params{Rates: []limiter.Rate{second}},
			nil, take(1, 4),
			numbers{4, 6, 10, 750_000, 750_000, 0, 0},
		},
		"the rate with the least left binds": {
			limiter.Params{Rates: []limiter.Rate{second, minute}},
			nil, take(1, 4),
			numbers{4, 6, 10, 750_000, 750_000, 0, 0},
		},
		"of rates that both have nothing left the one that ends last binds": {
			limiter.Params{Rates: []limiter.Rate{second, rate(10, 60*limiter.Second)}},
			[]limiter.Command{take(10, 10)},
			take(1, 1),
			numbers{0, 0, 10, 29_750_000, 750_000, 29_750_000, 0},
		},
		"when one rate is enough the one with the most left binds": {
			limiter.Params{Rates: []limiter.Rate{second, minute}, Any: true},
			nil, take(1, 14),
			numbers{14, 46, 60, 29_750_000, 750_000, 0, 0},
		},
		"a cost that only one of them can hold waits for that one": {
			limiter.Params{Rates: []limiter.Rate{second, minute}, Any: true},
			[]limiter.Command{take(55, 55)},
			take(11, 11),
			numbers{0, 5, 60, 29_750_000, 750_000, 29_750_000, 0},
		},
		"a sliding window, in parts of 100 ms": {
			limiter.Params{Algorithm: limiter.SlidingWindow, Buckets: 10, Rates: []limiter.Rate{second}},
			[]limiter.Command{take(8, 8)},
			take(3, 3),
			numbers{0, 2, 10, 1_050_000, 0, 1_050_000, 0},
		},
		"a sliding log": {
			limiter.Params{Algorithm: limiter.SlidingLog, Rates: []limiter.Rate{second}},
			[]limiter.Command{take(8, 8)},
			take(3, 3),
			numbers{0, 2, 10, 1_000_000, 0, 1_000_000, 0},
		},
		"a sliding log of what may be spent late": {
			limiter.Params{Algorithm: limiter.SlidingLog, Rates: []limiter.Rate{second}, Lifetime: 200_000},
			[]limiter.Command{take(8, 8)},
			take(3, 3),
			numbers{0, 2, 10, 1_200_000, 200_000, 1_200_000, 0},
		},
		"a token bucket": {
			limiter.Params{Algorithm: limiter.TokenBucket, Rates: []limiter.Rate{second}},
			[]limiter.Command{take(8, 8)},
			take(3, 3),
			numbers{0, 2, 10, 800_000, 0, 100_000, 0},
		},
		"a token bucket with a larger burst": {
			limiter.Params{Algorithm: limiter.TokenBucket, Rates: []limiter.Rate{{Limit: 10, Window: limiter.Second, Burst: 25}}},
			nil, take(1, 20),
			numbers{20, 5, 25, 2_000_000, 0, 0, 0},
		},
		"a bucket whose grants live 200 ms holds 2 units less": {
			limiter.Params{Algorithm: limiter.GCRA, Rates: []limiter.Rate{second}, Lifetime: 200_000},
			[]limiter.Command{take(8, 8)},
			take(3, 3),
			numbers{0, 0, 8, 800_000, 200_000, 300_000, 0},
		},
		"a leaky bucket": {
			limiter.Params{Algorithm: limiter.LeakyBucket, Rates: []limiter.Rate{second}, MaxDelay: 500_000},
			[]limiter.Command{take(1, 2)},
			take(2, 2),
			numbers{2, 2, 6, 400_000, 0, 0, 300_000},
		},
		"a full leaky bucket": {
			limiter.Params{Algorithm: limiter.LeakyBucket, Rates: []limiter.Rate{second}, MaxDelay: 500_000},
			[]limiter.Command{take(6, 6)},
			take(2, 2),
			numbers{0, 0, 6, 600_000, 0, 200_000, 0},
		},
	} {
		t.Run(name, func(t *testing.T) {
			if err := c.params.Validate(); err != nil {
				t.Fatal(err)
			}
			var s limiter.State
			for _, before := range c.before {
				s, _ = c.params.Step(s, now, before)
			}
			_, r := c.params.Step(s, now, c.ask)
			got := numbers{r.Granted, r.Remaining, r.Limit, r.ResetAfter, r.ExpiresIn, r.RetryAfter, r.Delay}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestResetForgetsWhatWasGranted of every algorithm, and nothing else.
func TestResetForgetsWhatWasGranted(t *testing.T) {
	now := limiter.Instant(1_790_000_010_250_000)
	rates := []limiter.Rate{rate(10, limiter.Second)}
	for name, p := range map[string]limiter.Params{
		"window":         {Rates: rates},
		"tenants":        {Rates: rates, Fairness: limiter.Fairness{Default: 1}},
		"sliding window": {Algorithm: limiter.SlidingWindow, Buckets: 3, Rates: rates},
		"sliding log":    {Algorithm: limiter.SlidingLog, Rates: rates, Lifetime: 100_000},
		"token bucket":   {Algorithm: limiter.TokenBucket, Rates: rates, Lifetime: 100_000},
		"leaky bucket":   {Algorithm: limiter.LeakyBucket, Rates: rates, MaxDelay: limiter.Second},
	} {
		p.Generation = 7
		var s limiter.State
		s, first := p.Step(s, now, take(1, 10))
		s, res := p.Step(s, now, limiter.Command{Op: limiter.Reset})
		if res.Reason != limiter.Granted || res.Remaining != res.Limit || res.ResetAfter < 0 || s.Generation != 7 {
			t.Errorf("%s: a reset answers %+v", name, res)
		}
		s, again := p.Step(s, now, take(1, 10))
		if again.Granted != first.Granted || first.Granted == 0 {
			t.Errorf("%s: %d granted, and %d after a reset", name, first.Granted, again.Granted)
		}
		c := limiter.Command{Op: limiter.Reset, Memory: limiter.Memory{Since: now}}
		if _, res := p.Step(s, now, c); res.Remaining != 0 {
			t.Errorf("%s: a reset makes a store remember: %+v", name, res)
		}
	}
}
