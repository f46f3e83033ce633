package journal

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/weir-dev/weir/pkg/limiter"
)

// randomParams returns parameters of any algorithm, with one to three rates.
func randomParams(rng *rand.Rand, generation int64) limiter.Params {
	p := limiter.Params{Generation: generation, Algorithm: limiter.Algorithm(rng.IntN(6)), Any: rng.IntN(3) == 0}
	rates := 1 + rng.IntN(3)
	if p.Algorithm == limiter.LeakyBucket {
		rates, p.MaxDelay = 1, limiter.Micros(rng.Int64N(200))*limiter.Second
	}
	for i := range rates {
		r := limiter.Rate{Limit: 1 + rng.Int64N(40), Window: limiter.Micros(i*100+1+rng.IntN(60)) * limiter.Second}
		switch {
		case p.Algorithm == limiter.FixedWindow && i == rates-1 && rng.IntN(4) == 0:
			r.Window, r.Monthly = limiter.MaxWindow, true
		case p.Algorithm == limiter.FixedWindow:
			r.Offset = limiter.Micros(rng.IntN(90)) * limiter.Second
		case p.Algorithm == limiter.TokenBucket || p.Algorithm == limiter.GCRA:
			r.Burst = 1 + rng.Int64N(60)
		}
		p.Rates = append(p.Rates, r)
	}
	if p.Algorithm == limiter.SlidingWindow {
		p.Buckets = 1 + rng.Int64N(20)
	}
	if !p.Algorithm.WindowCoupled() && p.Algorithm != limiter.LeakyBucket && rng.IntN(2) == 0 {
		p.Lifetime = limiter.Micros(rng.Int64N(5)) * limiter.Second
	}
	return p
}

// TestASuccessorNeverHasMoreLeft has a leader grant for a while, with an edit of the limits
// of windows in between, and compares what it has left from then on with what a successor has that knows only the
// state at the beginning and an amount that was set aside.
func TestASuccessorNeverHasMoreLeft(t *testing.T) {
	var compared, equal int
	for seed := range uint64(15_000) {
		rng := rand.New(rand.NewPCG(seed, 1))
		p := randomParams(rng, 1)
		if p.Validate() != nil {
			continue
		}
		now := limiter.Instant(1_800_000_000_000_000) + limiter.Instant(rng.Int64N(int64(limiter.Day)))
		take := func(s *limiter.State) int64 {
			next, res := p.Step(*s, now, limiter.Command{Min: 1, Want: 1 + rng.Int64N(12)})
			*s = next
			return res.Granted
		}
		pass := func() { now = now.Add(limiter.Micros(rng.Int64N(int64(40 * limiter.Second)))) }
		var exact limiter.State
		for range rng.IntN(6) {
			pass()
			take(&exact)
		}
		base := exact
		var spent int64
		edit := rng.IntN(12)
		for i := range rng.IntN(8) {
			pass()
			spent += take(&exact)
			if i == edit && p.Algorithm == limiter.FixedWindow {
				p.Generation, p.Rates = 2, slices.Clone(p.Rates)
				for i := range p.Rates {
					p.Rates[i].Limit = 1 + rng.Int64N(40)
				}
			}
		}
		pass()
		loaded := p.Charge(base, now, spent+rng.Int64N(3))
		for range 12 {
			left := func(s limiter.State) int64 {
				_, res := p.Step(s, now, limiter.Command{Op: limiter.Peek, Min: 1, Want: 1})
				return res.Remaining
			}
			l, e := left(loaded), left(exact)
			if l > e {
				t.Fatalf("seed %d: the successor has %d left, its predecessor would have %d, by %+v\nbase   %+v\nexact  %+v\nloaded %+v", seed, l, e, p, base, exact, loaded)
			}
			compared++
			if l == e {
				equal++
			}
			if n := rng.Int64N(1 + l); n > 0 {
				loaded, exact = p.Charge(loaded, now, n), p.Charge(exact, now, n)
			}
			pass()
		}
	}
	t.Logf("%d comparisons, %d equal", compared, equal)
	if compared < 50_000 || equal == compared {
		t.Error("too little was compared")
	}
}
