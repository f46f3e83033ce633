package federation_test

import (
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weir-dev/weir/internal/testing/federationtest"
	"github.com/weir-dev/weir/pkg/federation"
	"github.com/weir-dev/weir/pkg/limiter"
)

// TestTenantsShareByWeightOverRegions has two tenants in one region and one in the other.
// All want everything. The first weighs as much as the others together.
func TestTenantsShareByWeightOverRegions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := federationtest.NewHub(0)
		p := budget(400, limiter.Second, 2)
		params := limitOf(p)
		params.Fairness = limiter.Fairness{Weights: []limiter.Weight{{Tenant: "a", Weight: 2}}, Default: 1}
		n := newCount(h, p)
		rng := rand.New(rand.NewPCG(1, 1))
		var mu sync.Mutex
		got := map[string]int64{}
		var work sync.WaitGroup
		nextWindow(h, p)
		until := time.Now().Add(20 * time.Second)
		for i, tenants := range [][]string{{"a", "b"}, {"c"}} {
			r := open(t, config(p, i), federationtest.NewLine(h, time.Millisecond), nil)
			for _, tenant := range tenants {
				pause := time.Duration(1+rng.IntN(3)) * time.Millisecond
				work.Go(func() {
					for time.Now().Before(until) {
						res, err := r.Apply(t.Context(), key, params, limiter.Command{Op: limiter.Take, Min: 1, Want: 2, Tenant: tenant})
						if err != nil {
							t.Error(err)
						}
						n.add(res.Granted)
						if time.Until(until) < 10*time.Second {
							mu.Lock()
							got[tenant] += res.Granted
							mu.Unlock()
						}
						time.Sleep(pause)
					}
				})
			}
		}
		work.Wait()
		n.check(t, p.Limit)
		t.Logf("in 10 windows of 400: %v", got)
		for tenant, want := range map[string]int64{"a": 2000, "b": 1000, "c": 1000} {
			if g := got[tenant]; g < want*93/100 || g > want*107/100 {
				t.Errorf("%s got %d, want about %d", tenant, g, want)
			}
		}
	})
}

// TestAFloodOfOneTenantLeavesTheOthersTheirs has the first tenant ask for all before the
// second asks for anything.
func TestAFloodOfOneTenantLeavesTheOthersTheirs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := federationtest.NewHub(0)
		p := budget(100, 10*limiter.Second, 1)
		params := limitOf(p)
		params.Fairness = limiter.Fairness{Weights: []limiter.Weight{{Tenant: "a", Weight: 1}, {Tenant: "b", Weight: 1}}, Default: 1}
		r := open(t, config(p, 0), federationtest.NewLine(h, time.Millisecond), nil)
		nextWindow(h, p)
		ask := func(tenant string) int64 {
			res, err := r.Apply(t.Context(), key, params, limiter.Command{Op: limiter.Take, Min: 1, Want: 1, Tenant: tenant})
			if err != nil {
				t.Fatal(err)
			}
			return res.Granted
		}
		ask("b")
		nextWindow(h, p)
		got := map[string]int64{}
		for _, tenant := range []string{"a", "b"} {
			for range 200 {
				got[tenant] += ask(tenant)
			}
		}
		if got["a"] > 51 || got["b"] < 49 {
			t.Errorf("got %v", got)
		}
	})
}

// TestUnitsThatOneTenantDoesNotWantGoToAllRegions has a tenant that wants little beside one that wants
// everything, and another of those in the other region.
func TestUnitsThatOneTenantDoesNotWantGoToAllRegions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := federationtest.NewHub(0)
		p := budget(400, limiter.Second, 2)
		params := limitOf(p)
		params.Fairness = limiter.Fairness{Default: 1}
		n := newCount(h, p)
		var mu sync.Mutex
		got := map[string]int64{}
		var work sync.WaitGroup
		nextWindow(h, p)
		until := time.Now().Add(20 * time.Second)
		run := func(r *federation.Region, tenant string, pause time.Duration) {
			work.Go(func() {
				for time.Now().Before(until) {
					res, err := r.Apply(t.Context(), key, params, limiter.Command{Op: limiter.Take, Min: 1, Want: 2, Tenant: tenant})
					if err != nil {
						t.Error(err)
					}
					n.add(res.Granted)
					if time.Until(until) < 10*time.Second {
						mu.Lock()
						got[tenant] += res.Granted
						mu.Unlock()
					}
					time.Sleep(pause)
				}
			})
		}
		a, b := open(t, config(p, 0), federationtest.NewLine(h, time.Millisecond), nil), open(t, config(p, 1), federationtest.NewLine(h, time.Millisecond), nil)
		run(a, "small", 50*time.Millisecond)
		run(a, "left", 3*time.Millisecond)
		run(b, "right", 2*time.Millisecond)
		work.Wait()
		n.check(t, p.Limit)
		t.Logf("in 10 windows of 400: %v", got)
		for tenant, want := range map[string]int64{"small": 400, "left": 1800, "right": 1800} {
			if g := got[tenant]; g < want*93/100 || g > want*107/100 {
				t.Errorf("%s got %d, want about %d", tenant, g, want)
			}
		}
	})
}

// TestADeclaredTenantFindsItsPartInItsRegion has one that asked for a unit in the window before ask
// for everything after tenants of the other region did.
func TestADeclaredTenantFindsItsPartInItsRegion(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := federationtest.NewHub(0)
		p := budget(100, 10*limiter.Second, 2)
		params := limitOf(p)
		params.Fairness = limiter.Fairness{Weights: []limiter.Weight{{Tenant: "gold", Weight: 1}}, Default: 1}
		l := federationtest.NewLine(h, time.Millisecond)
		a, b := open(t, config(p, 0), l, nil), open(t, config(p, 1), federationtest.NewLine(h, time.Millisecond), nil)
		ask := func(r *federation.Region, tenant string, times int) (units int64) {
			for range times {
				res, err := r.Apply(t.Context(), key, params, limiter.Command{Op: limiter.Take, Min: 1, Want: 1, Tenant: tenant})
				if err != nil {
					t.Fatal(err)
				}
				units += res.Granted
			}
			return units
		}
		nextWindow(h, p)
		ask(a, "gold", 1)
		nextWindow(h, p)
		loud := ask(b, "loud", 200)
		pass(4 * time.Second)
		gold := ask(a, "gold", 100)
		if loud > 50 || gold < 50 {
			t.Errorf("loud got %d and gold %d of 100", loud, gold)
		}
		nextWindow(h, p)
		before := len(l.Commands)
		ask(a, "gold", 1)
		nextWindow(h, p)
		l.Set(func() {
			if sent := len(l.Commands) - before; sent > 4 {
				t.Errorf("%d commands in a window of one request, although there was nothing to give up: %+v", sent, l.Commands[before:])
			}
		})
		pass(10 * time.Second)
		nextWindow(h, p)
		if loud := ask(b, "loud", 200); loud < 95 {
			t.Errorf("loud got %d of 100 while gold was idle", loud)
		}
	})
}
