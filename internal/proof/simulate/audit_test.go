package simulate

import (
	"testing"

	"github.com/weir-dev/weir/pkg/limiter"
)

// TestAuditorsMeasure gives an auditor what is admitted when, in milliseconds.
func TestAuditorsMeasure(t *testing.T) {
	rate := limiter.Rate{Limit: 10, Window: limiter.Second}
	burst := limiter.Rate{Limit: 10, Window: limiter.Second, Burst: 3}
	type admission struct{ at, units int64 }
	for name, tc := range map[string]struct {
		promise promise
		list    []admission
		want    int64
	}{
		"a full window":                      {&windowed{rate: rate, limit: 10}, []admission{{0, 10}}, 0},
		"a window and one":                   {&windowed{rate: rate, limit: 10}, []admission{{0, 10}, {999, 1}}, 1},
		"two full windows":                   {&windowed{rate: rate, limit: 10}, []admission{{999, 10}, {1000, 10}}, 0},
		"a full interval":                    {&sliding{rate: rate}, []admission{{500, 10}, {1500, 10}}, 0},
		"an interval over a window's end":    {&sliding{rate: rate}, []admission{{500, 10}, {1499, 4}}, 4},
		"the worst interval, not the latest": {&sliding{rate: rate}, []admission{{0, 12}, {5000, 1}}, 2},
		"a burst and what flows in":          {&bucket{rate: burst}, []admission{{0, 3}, {100, 1}, {300, 2}}, 0},
		"a burst too large":                  {&bucket{rate: burst}, []admission{{0, 5}}, 2},
		"a unit before it flows in":          {&bucket{rate: burst}, []admission{{0, 3}, {99, 1}}, 1},
		"no more than a burst is saved up":   {&bucket{rate: burst}, []admission{{0, 1}, {60_000, 4}}, 1},
		"a bucket whose burst is its limit":  {&bucket{rate: rate}, []admission{{0, 10}, {100, 1}}, 0},
		"a window whose limit was cut":       {&windowed{rate: rate, limit: 20}, []admission{{0, 20}, {1000, 11}}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			var most int64
			for _, a := range tc.list {
				most = max(most, tc.promise.admit(limiter.Instant(a.at*1000), a.units))
			}
			if most != tc.want {
				t.Errorf("overshoot %d, want %d", most, tc.want)
			}
		})
	}
}

func TestUtilizationIsAPartOfTheAdmissibleUnits(t *testing.T) {
	a := newAuditor(limiter.Params{Rates: []limiter.Rate{{Limit: 10, Window: limiter.Second}}}, 2*1_000_000, false)
	for _, w := range []struct{ second, offered, admitted int64 }{
		{1, 10, 0}, // before it counts
		{2, 4, 4},
		{3, 30, 6},
		{4, 30, 10}, // still open in the end
	} {
		at := limiter.Instant(w.second * 1_000_000)
		a.ask(at)
		a.offer(at, w.offered)
		a.admit(at, w.admitted, nil)
	}
	if got, want := a.usage.utilization(), 10.0/14; got != want {
		t.Errorf("utilization is %v, want %v", got, want)
	}
	if got := a.usage.roundTrips(); got != 1 {
		t.Errorf("%v round trips per window, want 1", got)
	}
}
