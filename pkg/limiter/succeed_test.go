package limiter_test

import (
	"math/rand/v2"
	"testing"

	"github.com/weir-dev/weir/pkg/limiter"
)

// TestAChangeOfAlgorithmFitsIntoItsWindow goes from algorithm to algorithm at random
// under more demand than is admitted, with credits spent at any time of their life.
// No aligned window may hold more than the most that one of the algorithms, that
// were in force in it, admits.
func TestAChangeOfAlgorithmFitsIntoItsWindow(t *testing.T) {
	const (
		timelines = 2000
		window    = limiter.Second
		lifetime  = 50 * limiter.Millisecond
		limit     = 40
	)
	rate := limiter.Rate{Limit: limit, Window: window}
	bursty := limiter.Rate{Limit: limit, Window: window, Burst: 9}
	kinds := []limiter.Params{
		{Algorithm: limiter.FixedWindow, Rates: []limiter.Rate{rate}},
		{Algorithm: limiter.SlidingWindow, Buckets: 20, Lifetime: lifetime, Rates: []limiter.Rate{rate}},
		{Algorithm: limiter.SlidingLog, Lifetime: lifetime, Rates: []limiter.Rate{rate}},
		{Algorithm: limiter.TokenBucket, Lifetime: lifetime, Rates: []limiter.Rate{bursty}},
		{Algorithm: limiter.GCRA, Rates: []limiter.Rate{bursty}},
	}
	for seed := range uint64(timelines) {
		rng := rand.New(rand.NewPCG(seed, 7))
		spent, most := map[int64]int64{}, map[int64]int64{}
		var s limiter.State
		now, p := limiter.Instant(1_000*int64(window)), kinds[rng.IntN(len(kinds))]
		p.Generation = 1
		for now < limiter.Instant(1_012*int64(window)) {
			if rng.IntN(60) == 0 {
				p = kinds[rng.IntN(len(kinds))]
				p.Generation = s.Generation + 1
			}
			var res limiter.Result
			s, res = p.Step(s, now, limiter.Command{Min: 1, Want: 1 + rng.Int64N(8)})
			index := int64(now) / int64(window)
			most[index] = max(most[index], p.MostPerWindow(p.Rates[0]))
			for _, k := range kinds {
				if k.Algorithm == res.Algorithm {
					most[index] = max(most[index], k.MostPerWindow(k.Rates[0]))
				}
			}
			for range res.Granted {
				at := now.Add(limiter.Micros(rng.Int64N(int64(res.ExpiresIn) + 1)))
				if res.Algorithm.WindowCoupled() {
					at = now // in the window, whenever that is
				}
				spent[int64(at)/int64(window)]++
			}
			now = now.Add(limiter.Micros(rng.Int64N(int64(30 * limiter.Millisecond))))
		}
		for index, n := range spent {
			if most[index] > 0 && n > most[index] {
				t.Fatalf("seed %d: window %d holds %d, of at most %d", seed, index, n, most[index])
			}
		}
	}
}
