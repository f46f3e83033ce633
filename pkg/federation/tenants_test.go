package federation

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/weir-dev/weir/pkg/limiter"
)

// TestTenantsOfAllRegionsShareAsOne holds what regions say of their tenants, how the ledger divides by
// that, and how regions split their parts, to one split over all tenants: weighted
// max-min fairness. Tenants of one region want anything; those that are declared want more than they get.
func TestTenantsOfAllRegionsShareAsOne(t *testing.T) {
	const limit, longest = 10_000, 4
	took := map[int]int{}
	for seed := range uint64(60) {
		rng := rand.New(rand.NewPCG(seed, 5))
		w := newTown(t, rng, limit, 2+rng.IntN(4))
		for change := range 3 {
			for _, r := range w.places {
				r.fairness, r.wants = limiter.Fairness{Default: 1 + rng.Int64N(4)}, map[string]int64{}
				for j := range 1 + rng.IntN(5) {
					r.wants[fmt.Sprint("t", j)] = 1 + rng.Int64N(2*limit/int64(len(w.places)))
				}
				if rng.IntN(3) == 0 {
					r.wants["gold"] = limit
					r.fairness.Weights = []limiter.Weight{{Tenant: "gold", Weight: 1 + rng.Int64N(8)}}
				}
			}
			window := 1
			for w.serve(w.begin()); w.off() > 0.01 && window < longest; window++ {
				w.serve(w.begin())
			}
			took[window]++
			if off := w.off(); off > 0.01 {
				t.Errorf("seed %d: %d windows after change %d a tenant is %.3f of the limit from what it is due", seed, window, change, off)
			}
		}
	}
	t.Log("worlds by windows until all tenants have what they are due:", took)
}

// TestADeclaredTenantThatCameLateGetsItsPart has declared tenants ask for a unit in one window,
// and in the next for everything after all others have taken what they can get.
func TestADeclaredTenantThatCameLateGetsItsPart(t *testing.T) {
	const limit = 10_000
	for seed := range uint64(60) {
		rng := rand.New(rand.NewPCG(seed, 6))
		w := newTown(t, rng, limit, 2+rng.IntN(4))
		var gold []asker
		var weights int64
		for i, r := range w.places {
			r.fairness = limiter.Fairness{Default: 1 + rng.Int64N(4)}
			for j := range rng.IntN(4) {
				r.wants[fmt.Sprint("t", j)] = limit
				weights += r.fairness.Default
			}
			if i == 0 || rng.IntN(2) == 0 {
				r.wants["gold"] = 1
				r.fairness.Weights = []limiter.Weight{{Tenant: "gold", Weight: 1 + rng.Int64N(8)}}
				weights += r.fairness.Weights[0].Weight
				gold = append(gold, asker{i, "gold"})
			}
		}
		w.serve(w.begin())
		w.serve(w.begin())
		isGold := func(a asker) bool { return a.name == "gold" }
		w.serve(slices.DeleteFunc(w.begin(), isGold))
		for _, a := range gold {
			w.places[a.region].wants[a.name] = limit
		}
		w.serve(gold)
		for _, a := range gold {
			r := w.places[a.region]
			if due := r.fairness.Weights[0].Weight * limit / weights; r.got[a.name] < due*98/100 {
				t.Errorf("seed %d: gold of region %d got %d, its part is %d: %v", seed, a.region, r.got[a.name], due, r.fairness)
			}
		}
	}
}

// TestAnIdleTenantOfARegionLendsItsPart has declared tenants that are idle for a whole window.
func TestAnIdleTenantOfARegionLendsItsPart(t *testing.T) {
	const limit = 10_000
	for seed := range uint64(20) {
		rng := rand.New(rand.NewPCG(seed, 7))
		w := newTown(t, rng, limit, 3)
		for i, r := range w.places {
			r.fairness.Weights = []limiter.Weight{{Tenant: "gold", Weight: 8}}
			r.wants["gold"] = limit
			if i > 0 {
				r.wants["t"] = limit
			}
		}
		w.serve(w.begin())
		for _, r := range w.places {
			r.wants["gold"] = 0
		}
		w.serve(w.begin())
		if used := w.used(); used > limit/2 {
			t.Errorf("seed %d: others got %d in the window after gold asked", seed, used)
		}
		w.serve(w.begin())
		if used := w.used(); used < limit*99/100 {
			t.Errorf("seed %d: others got %d of %d while gold was idle", seed, used, int64(limit))
		}
	}
}

// TestTenantsThatComeAndGoUseTheLimit has other tenants in each window, which together want
// almost the limit.
func TestTenantsThatComeAndGoUseTheLimit(t *testing.T) {
	const limit = 1000
	w := newTown(t, rand.New(rand.NewPCG(1, 8)), limit, 2)
	for window := range 5 {
		for _, r := range w.places {
			r.wants = map[string]int64{}
			for i := range limit * 45 / 100 {
				r.wants[fmt.Sprint(window, "/", i)] = 1
			}
		}
		w.serve(w.begin())
		if used := w.used(); used < limit*90/100 {
			t.Errorf("window %d: %d of %d", window, used, limit*90/100)
		}
	}
}
