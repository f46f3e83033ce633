package limiter_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/weir-dev/weir/pkg/limiter"
)

func TestMostPerWindow(t *testing.T) {
	const second = limiter.Second
	for name, tc := range map[string]struct {
		params limiter.Params
		want   int64 // of the first rate
	}{
		"a window has its limit":          {limiter.Params{Rates: []limiter.Rate{{Limit: 7, Window: second}}}, 7},
		"a sliding window has its limit":  {limiter.Params{Algorithm: limiter.SlidingWindow, Buckets: 10, Rates: []limiter.Rate{{Limit: 7, Window: second}}}, 7},
		"a bucket has its burst on top":   {limiter.Params{Algorithm: limiter.TokenBucket, Rates: []limiter.Rate{{Limit: 7, Window: second, Burst: 3}}}, 10},
		"a burst is the limit by default": {limiter.Params{Algorithm: limiter.GCRA, Rates: []limiter.Rate{{Limit: 7, Window: second}}}, 14},
		"a queue has what waits on top":   {limiter.Params{Algorithm: limiter.LeakyBucket, MaxDelay: second / 2, Rates: []limiter.Rate{{Limit: 10, Window: second}}}, 16},
		"one of two that it is a part of": {limiter.Params{Any: true, Rates: []limiter.Rate{{Limit: 7, Window: second}, {Limit: 100, Window: 60 * second}}}, 207},
		"one of two that cover it often":  {limiter.Params{Any: true, Rates: []limiter.Rate{{Limit: 100, Window: 60 * second}, {Limit: 7, Window: second}}}, 100 + 62*7},
		"what no number holds": {limiter.Params{Any: true, Rates: []limiter.Rate{
			{Limit: 1, Window: limiter.MaxWindow}, {Limit: limiter.MaxLimit, Window: limiter.MinWindow},
		}}, math.MaxInt64},
	} {
		t.Run(name, func(t *testing.T) {
			if got := tc.params.MostPerWindow(tc.params.Rates[0]); got != tc.want {
				t.Errorf("got %d, want %d", got, tc.want)
			}
		})
	}
}

// TestNoWindowAdmitsMoreThanItsMost asks greedily at random instants.
func TestNoWindowAdmitsMoreThanItsMost(t *testing.T) {
	for seed := range uint64(300) {
		random := rand.New(rand.NewPCG(seed, 1))
		p := anyPromise(random)
		admitted := map[limiter.OpenWindow]int64{}
		var s limiter.State
		now := limiter.Instant(random.Int64N(1e12))
		for range 400 {
			now = now.Add(limiter.Micros(random.Int64N(int64(p.Rates[0].Window)/4 + 1)))
			var res limiter.Result
			want := 1 + random.Int64N(20)
			s, res = p.Step(s, now, limiter.Command{Op: limiter.Take, Min: 1, Want: want})
			for _, r := range p.Rates {
				admitted[r.WindowAt(now)] += res.Granted
			}
		}
		for w, sum := range admitted {
			if most := p.MostPerWindow(w.Rate); sum > most {
				t.Fatalf("seed %d: %+v admitted %d in window %d of %+v, at most %d", seed, p, sum, w.Index, w.Rate, most)
			}
		}
	}
}

func anyPromise(random *rand.Rand) limiter.Params {
	p := limiter.Params{Algorithm: limiter.Algorithm(random.IntN(6)), Any: random.IntN(2) == 0}
	switch p.Algorithm {
	case limiter.SlidingWindow:
		p.Buckets = 1 + random.Int64N(60)
	case limiter.LeakyBucket:
		p.MaxDelay, p.Any = limiter.Micros(random.Int64N(int64(limiter.Second))), false
	default:
	}
	window := limiter.MinWindow
	for range 1 + random.IntN(3) {
		window += limiter.Micros(1+random.Int64N(9)) * limiter.MinWindow
		r := limiter.Rate{Limit: 1 + random.Int64N(50), Window: window}
		if p.Algorithm == limiter.TokenBucket || p.Algorithm == limiter.GCRA {
			r.Burst = random.Int64N(50)
		}
		if p.Algorithm == limiter.FixedWindow {
			r.Offset = limiter.Micros(random.Int64N(int64(window)))
		}
		p.Rates = append(p.Rates, r)
	}
	return p
}

func TestTheLongestRate(t *testing.T) {
	for name, tc := range map[string]struct{ rates, want []int64 }{ // windows in seconds
		"of one":              {[]int64{5}, []int64{5, 0}},
		"first":               {[]int64{9, 5, 7}, []int64{9, 0}},
		"last":                {[]int64{5, 7, 9}, []int64{9, 2}},
		"the first of equals": {[]int64{5, 9, 9}, []int64{9, 1}},
	} {
		t.Run(name, func(t *testing.T) {
			var p limiter.Params
			for i, seconds := range tc.rates {
				p.Rates = append(p.Rates, limiter.Rate{Limit: int64(i), Window: limiter.Micros(seconds) * limiter.Second})
			}
			if got := p.Longest(); got.Window != limiter.Micros(tc.want[0])*limiter.Second || got.Limit != tc.want[1] {
				t.Errorf("got %+v, want window %d of rate %d", got, tc.want[0], tc.want[1])
			}
		})
	}
}
