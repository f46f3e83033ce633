package simulate

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/weir-dev/weir/pkg/limiter"
	"github.com/weir-dev/weir/pkg/twotier"
)

// perWindow is one rate of 200 units each 200 ms.
var perWindow = limiter.Params{Generation: 1, Rates: []limiter.Rate{{Limit: 200, Window: 200 * limiter.Millisecond}}}

func with(a limiter.Algorithm, lifetime limiter.Micros) limiter.Params {
	p := perWindow
	p.Algorithm, p.Lifetime = a, lifetime
	if a == limiter.SlidingWindow {
		p.Buckets = 10
	}
	return p
}

// weir is the configuration most runs have.
var weir = twotier.Config{Size: twotier.Size{Type: twotier.Adaptive, Batch: 20, Min: 1}, OnUnavailable: twotier.Deny}

// promises are the configurations that promise never to admit more than the
// algorithm allows.
func promises() map[string]Scenario {
	fixed, predictive, early, deny, strict := weir, weir, weir, weir, weir
	fixed.Size = twotier.Size{Type: twotier.Fixed, Batch: 20}
	predictive.Size.Type = twotier.Predictive
	early.LowWater = 5
	deny.Mode = twotier.CachedDeny
	strict.Mode = twotier.Strict
	twoRates := perWindow
	twoRates.Rates = []limiter.Rate{{Limit: 60, Window: 100 * limiter.Millisecond}, {Limit: 200, Window: 500 * limiter.Millisecond}}
	burst := with(limiter.TokenBucket, 20*limiter.Millisecond)
	burst.Rates = []limiter.Rate{{Limit: 200, Window: 200 * limiter.Millisecond, Burst: 50}}
	list := map[string]Scenario{}
	add := func(name string, cfg twotier.Config, p limiter.Params) {
		list[name] = Scenario{Model: Weir(name, cfg), Params: p}
	}
	add("windows", weir, perWindow)
	add("windows, fixed batch", fixed, perWindow)
	add("windows, predictive", predictive, perWindow)
	add("windows, fetched early", early, perWindow)
	add("windows, cached denials", deny, perWindow)
	add("windows, strict", strict, perWindow)
	add("two lengths of windows", weir, twoRates)
	add("sliding log", weir, with(limiter.SlidingLog, 20*limiter.Millisecond))
	add("sliding window", weir, with(limiter.SlidingWindow, 20*limiter.Millisecond))
	add("token bucket", weir, burst)
	add("token bucket, fetched early", early, burst)
	add("token bucket, strict", strict, with(limiter.TokenBucket, 0))
	add("GCRA", weir, with(limiter.GCRA, 40*limiter.Millisecond))
	return list
}

func TestNothingIsAdmittedBeyondThePromise(t *testing.T) {
	for name, s := range promises() {
		t.Run(name, func(t *testing.T) {
			var offered, admitted int64
			for seed := range uint64(seeds) {
				r := Run(Storm(seed, s.Model, s.Params))
				offered, admitted = offered+r.Offered, admitted+r.Admitted
				if r.Overshoot > 0 {
					t.Errorf("seed %d: admitted %d too many", seed, r.Overshoot)
				}
			}
			if admitted < offered/20 {
				t.Errorf("admitted %d of %d: the test tests little", admitted, offered)
			}
		})
	}
}

// TestABrokenRuleIsNoticed weakens what keeps the promise, one rule at a time.
func TestABrokenRuleIsNoticed(t *testing.T) {
	carryOver := weir
	carryOver.Expiry = twotier.CarryOver
	carryOver.Size = twotier.Size{Type: twotier.Fixed, Batch: 100}
	base := func() Scenario { return Scenario{Model: Weir("weir", weir), Params: perWindow} }
	for name, s := range map[string]Scenario{
		"deadlines count from when the reply came": func() Scenario {
			s := base()
			s.weaken = func(r *limiter.Result, took limiter.Micros) { r.ExpiresIn += took }
			return s
		}(),
		"replies are used however late they are": func() Scenario {
			s := base()
			s.weaken = func(r *limiter.Result, _ limiter.Micros) { r.ExpiresIn += 10 * limiter.Second }
			return s
		}(),
		"deadlines allow nothing for drift": func() Scenario {
			s := base()
			s.weaken = func(r *limiter.Result, _ limiter.Micros) { r.ExpiresIn += r.ExpiresIn/5000 + limiter.Millisecond }
			s.Clocks.Drift = 0.1
			return s
		}(),
		"credits carry over": {Model: Weir("carry-over", carryOver), Params: perWindow},
		"the store forgets and does not know": func() Scenario {
			s := base()
			s.Faults.Losses = []Loss{{}}
			return s
		}(),
		"a bucket that leaves no room for lifetimes": func() Scenario {
			s := base()
			s.Params = with(limiter.TokenBucket, 20*limiter.Millisecond)
			s.Params.Rates = []limiter.Rate{{Limit: 200, Window: 200 * limiter.Millisecond, Burst: 50}}
			s.weaken = func(r *limiter.Result, _ limiter.Micros) { r.ExpiresIn *= 20 }
			return s
		}(),
		"all or nothing, carried over": {Model: AllOrNothing("carry-over", 20, true), Params: perWindow},
	} {
		t.Run(name, func(t *testing.T) {
			for seed := range uint64(200) {
				storm := Storm(seed, s.Model, s.Params)
				storm.weaken = s.weaken
				if s.Clocks.Drift > 0 {
					storm.Clocks.Drift = s.Clocks.Drift
				}
				w := newWorld(storm)
				w.store.amnesiac = len(s.Faults.Losses) > 0
				w.run()
				w.close()
				if w.audit.overshoot > 0 {
					t.Logf("seed %d: admitted %d too many", seed, w.audit.overshoot)
					return
				}
			}
			t.Error("nobody noticed in 200 runs")
		})
	}
}

func TestASeedReplaysStepByStep(t *testing.T) {
	models := promises()
	models["all or nothing"] = Scenario{Model: AllOrNothing("a", 20, false), Params: perWindow}
	models["static"] = Scenario{Model: Static(), Params: perWindow}
	for name, s := range models {
		t.Run(name, func(t *testing.T) {
			play := func(seed uint64) ([]step, Result) {
				w := newWorld(Storm(seed, s.Model, s.Params))
				w.trace.keep = true
				w.run()
				w.close()
				return w.trace.steps, w.result()
			}
			first, a := play(7)
			second, b := play(7)
			if !slices.Equal(first, second) || a.Digest != b.Digest || len(first) < 1000 {
				t.Errorf("runs of %d and %d steps with digests %x and %x, want the same", len(first), len(second), a.Digest, b.Digest)
			}
			if name == "static" {
				if _, c := play(8); c.Digest == a.Digest {
					t.Error("another seed gave the same run")
				}
			}
		})
	}
}

// TestAnAcknowledgedEditIsInForce lowers a limit while most replies come late, so
// that calls which began before the edit ask again after it.
func TestAnAcknowledgedEditIsInForce(t *testing.T) {
	lower := perWindow
	lower.Generation, lower.Rates = 2, []limiter.Rate{{Limit: 20, Window: 200 * limiter.Millisecond}}
	for seed := range uint64(100) {
		r := Run(Scenario{
			Seed: seed, Model: Weir("weir", weir), Params: perWindow, Holders: 2, Windows: 6,
			Load:    Load{Rate: 1500},
			Network: Network{RTT: 4 * time.Millisecond, Stall: 0.5, Stalled: 150 * time.Millisecond, Timeout: time.Second},
			Faults:  Faults{Edits: []Edit{{At: 700 * time.Millisecond, Spread: 20 * time.Millisecond, Params: lower}}},
		})
		if r.Overshoot > 0 {
			t.Errorf("seed %d: admitted %d beyond the limit that all enforce", seed, r.Overshoot)
		}
	}
}

// overload is a load of three times the limit, 1,000 units in 100 ms, on n holders.
func overload(m Model, n, windows int) Scenario {
	return Scenario{
		Seed: 1, Model: m, Holders: n, Windows: windows, Warm: 2,
		Params:  limiter.Params{Generation: 1, Rates: []limiter.Rate{{Limit: 1000, Window: 100 * limiter.Millisecond}}},
		Load:    Load{Rate: 30_000},
		Network: Network{RTT: 5 * time.Millisecond, Jitter: 3 * time.Millisecond, Timeout: 100 * time.Millisecond},
	}
}

func TestLargeFleetsUseTheWholeLimit(t *testing.T) {
	for _, n := range []int{1, 2, 8, 32, 50, 64, 128, 256, 512} {
		t.Run(fmt.Sprintf("%d holders", n), func(t *testing.T) {
			r := Run(overload(Weir("weir", weir), n, 12))
			most := 2.5 * max(float64(n), 1000.0/20)
			if r.Overshoot > 0 || r.Utilization < 0.97 || r.RoundTrips > most {
				t.Errorf("overshoot %d, utilization %.3f, %.0f round trips; want 0, at least 0.97, at most %.0f",
					r.Overshoot, r.Utilization, r.RoundTrips, most)
			}
		})
	}
}

// TestScarceUnitsAreNotStranded has loads near the limit, where what one holder has
// left at the end of a window is missing elsewhere.
func TestScarceUnitsAreNotStranded(t *testing.T) {
	for _, load := range []float64{900, 1100} {
		for _, n := range []int{8, 64, 512} {
			t.Run(fmt.Sprintf("%.0f a second on %d holders", load, n), func(t *testing.T) {
				s := overload(Weir("weir", weir), n, 25)
				s.Params.Rates, s.Load.Rate, s.Warm = []limiter.Rate{{Limit: 1000, Window: limiter.Second}}, load, 10
				if r := Run(s); r.Overshoot > 0 || r.Utilization < 0.97 {
					t.Errorf("overshoot %d, utilization %.3f; want 0 and at least 0.97", r.Overshoot, r.Utilization)
				}
			})
		}
	}
}

// TestABucketIsNotAskedForEachUnit has a bucket that is empty most of the time.
func TestABucketIsNotAskedForEachUnit(t *testing.T) {
	for _, n := range []int{2, 32, 512} {
		t.Run(fmt.Sprintf("%d holders", n), func(t *testing.T) {
			s := overload(Weir("weir", weir), n, 30)
			s.Params = limiter.Params{
				Generation: 1, Algorithm: limiter.TokenBucket, Lifetime: 500 * limiter.Millisecond,
				Rates: []limiter.Rate{{Limit: 1000, Window: limiter.Second}},
			}
			s.Load.Rate, s.Warm = 3000, 15
			r := Run(s)
			if most := 2.5 * max(float64(n), 50); r.Overshoot > 0 || r.Utilization < 0.97 || r.RoundTrips > most {
				t.Errorf("overshoot %d, utilization %.3f, %.0f round trips; want 0, at least 0.97, at most %.0f",
					r.Overshoot, r.Utilization, r.RoundTrips, most)
			}
		})
	}
}

// TestPublishedFigures holds the model that Weir is compared with to what was
// published of it.
func TestPublishedFigures(t *testing.T) {
	for n, want := range map[int]struct{ utilization, trips float64 }{
		2: {0.808, 41}, 8: {1, 127}, 32: {1, 338}, 512: {0.387, 1908},
	} {
		t.Run(fmt.Sprintf("%d holders", n), func(t *testing.T) {
			r := Run(overload(AllOrNothing("published", 20, false), n, 20))
			if r.Overshoot > 0 || r.Utilization < want.utilization-0.06 || r.Utilization > want.utilization+0.06 ||
				r.RoundTrips < 0.75*want.trips || r.RoundTrips > 1.25*want.trips {
				t.Errorf("overshoot %d, utilization %.3f, %.0f round trips; published 0, %.3f, %.0f",
					r.Overshoot, r.Utilization, r.RoundTrips, want.utilization, want.trips)
			}
		})
	}
}
