package translate

import (
	"math/rand/v2"
	"testing"

	"github.com/weir-dev/weir/pkg/limiter"
	"github.com/weir-dev/weir/pkg/policy"
)

func TestLifetimeWhereNoneIsGiven(t *testing.T) {
	const ms = limiter.Millisecond
	bucket := func(limit int64, window limiter.Micros, burst int64) policy.Limit {
		return policy.Limit{Algorithm: policy.TokenBucket, Rates: []limiter.Rate{{Limit: limit, Window: window, Burst: burst}}}
	}
	sliding := func(windows ...limiter.Micros) policy.Limit {
		l := policy.Limit{Algorithm: policy.SlidingLog}
		for _, w := range windows {
			l.Rates = append(l.Rates, limiter.Rate{Limit: 10, Window: w})
		}
		return l
	}
	costing := func(l policy.Limit, cost int64) policy.Limit {
		l.Cost = &policy.Cost{Default: 1, Max: cost, RequestHeader: "x"}
		return l
	}
	overridden := bucket(100, 1000*ms, 0)
	overridden.Overrides = []policy.Override{{Rates: []limiter.Rate{{Limit: 100, Window: 1000 * ms, Burst: 10}}}}
	for name, tc := range map[string]struct {
		limit policy.Limit
		want  limiter.Micros
	}{
		"a twentieth of the window":                {sliding(2000 * ms), 100 * ms},
		"a twentieth of the shortest window":       {sliding(60_000*ms, 2000*ms), 100 * ms},
		"at least 20ms":                            {sliding(100 * ms), 20 * ms},
		"at most a second":                         {sliding(limiter.MaxWindow), 1000 * ms},
		"a twentieth of a bucket's window":         {bucket(100, 1000*ms, 0), 50 * ms},
		"a quarter of what a burst takes":          {bucket(100, 1000*ms, 10), 25 * ms},
		"a quarter of the smallest burst":          {overridden, 25 * ms},
		"in whole milliseconds":                    {bucket(300, 1000*ms, 22), 18 * ms},
		"a burst of two leaves one":                {bucket(10, 1000*ms, 2), 50 * ms},
		"nothing of a burst of one":                {bucket(100, 1000*ms, 1), 0},
		"nothing that is shorter than 5ms":         {bucket(1000, 1000*ms, 19), 0},
		"just 5ms":                                 {bucket(1000, 1000*ms, 20), 5 * ms},
		"what the dearest request leaves":          {costing(bucket(100, 1000*ms, 10), 9), 10 * ms},
		"nothing when one takes the whole":         {costing(bucket(100, 1000*ms, 10), 10), 0},
		"a cost that is never admitted is ignored": {costing(bucket(100, 1000*ms, 10), 11), 25 * ms},
	} {
		t.Run(name, func(t *testing.T) {
			if got := lifetime(&tc.limit); got != tc.want {
				t.Errorf("credits live %dµs, want %dµs", got, tc.want)
			}
		})
	}
}

// TestALifetimeAlwaysLeavesRoom tries limits of any size: what credits take off a
// burst is never what the dearest request needs, and the core accepts it.
func TestALifetimeAlwaysLeavesRoom(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	upTo := func(most int64) int64 { return 1 + int64(random.ExpFloat64()*float64(most)/8)%most }
	for range 20_000 {
		l := policy.Limit{Algorithm: policy.GCRA, Cost: &policy.Cost{Default: 1, Max: upTo(100), RequestHeader: "x"}}
		window := limiter.MinWindow + limiter.Micros(upTo(int64(limiter.MaxWindow-limiter.MinWindow)>>random.IntN(30)))
		l.Rates = []limiter.Rate{{Limit: upTo(limiter.MaxLimit >> random.IntN(38)), Window: window, Burst: upTo(limiter.MaxLimit >> random.IntN(38))}}
		if l.Params(new(policy.Policy)).Validate() != nil {
			continue // it cannot be counted exactly, whatever its lifetime
		}
		l.Lifetime = lifetime(&l)
		if err := l.Params(new(policy.Policy)).Validate(); err != nil {
			t.Fatalf("%+v: %v", l, err)
		}
		if l.Lifetime == 0 {
			continue
		}
		if l.Lifetime < leastLifetime || l.Lifetime > longestLifetime {
			t.Fatalf("%+v: credits live %dµs", l, l.Lifetime)
		}
		if left, need := l.AtOnce(l.Rates), dearest(&l, l.Rates[0]); left < need {
			t.Fatalf("%+v: %d are left of the burst, a request costs %d", l, left, need)
		}
	}
}
