package simulate

import (
	"math/rand/v2"
	"time"

	"github.com/weir-dev/weir/pkg/limiter"
)

// Storm is a scenario in which everything goes wrong that is allowed to. Replies come late
// or never, clocks are off by an hour and drift as far as they may, holders are cut off and
// crash, the store forgets, and limits are edited. The seed decides what goes wrong when.
func Storm(seed uint64, m Model, p limiter.Params) Scenario {
	rng := rand.New(rand.NewPCG(seed, ofStorm))
	window := time.Duration(p.Rates[0].Window) * time.Microsecond
	life := window // of credits
	if p.Lifetime > 0 {
		life = time.Duration(p.Lifetime) * time.Microsecond
	}
	s := Scenario{
		Seed: seed, Model: m, Params: p, Holders: 2 + rng.IntN(9), Windows: 20,
		Load: Load{Rate: (1 + 4*rng.Float64()) * float64(p.Rates[0].Limit) / window.Seconds(), MaxCost: 1 + rng.Int64N(3)},
		Network: Network{
			RTT: time.Duration(rng.Int64N(int64(life / 4))), Jitter: life / 10, Loss: 0.1 * rng.Float64(),
			Stall: 0.2 * rng.Float64(), Stalled: time.Duration(rng.Int64N(int64(2 * window))), Timeout: 2 * window,
		},
		// Two clocks may part by 200 ppm, half of it each.
		Clocks: Clocks{Offset: time.Hour, Drift: 100e-6, Wander: window / 3},
	}
	whenever := func() time.Duration { return time.Duration(rng.Int64N(int64(s.Windows) * int64(window))) }
	for range rng.IntN(3) {
		from, first := whenever(), rng.IntN(s.Holders)
		s.Faults.Partitions = append(s.Faults.Partitions, Partition{
			From: from, To: from + whenever()/4, First: first, Last: first + rng.IntN(s.Holders-first),
		})
	}
	for range rng.IntN(5) {
		s.Faults.Crashes = append(s.Faults.Crashes, Crash{At: whenever(), Down: window / 5, Holder: rng.IntN(s.Holders)})
	}
	for range rng.IntN(3) {
		s.Faults.Losses = append(s.Faults.Losses, Loss{At: whenever(), Down: whenever() / 20, Keeps: rng.IntN(2) == 0})
	}
	if p.Algorithm.WindowCoupled() {
		s.Faults.Edits = edits(rng, p, whenever(), window)
	}
	return s
}

// edits returns two edits of the limits: other ones, and those of p again.
func edits(rng *rand.Rand, p limiter.Params, at, window time.Duration) []Edit {
	other := p
	other.Rates = append([]limiter.Rate(nil), p.Rates...)
	for i := range other.Rates {
		other.Rates[i].Limit = max(1, int64(float64(p.Rates[i].Limit)*(0.3+rng.Float64())))
	}
	other.Generation++
	p.Generation += 2
	return []Edit{
		{At: at, Spread: window, Params: other},
		{At: at + 3*window, Spread: window, Params: p},
	}
}
