package pools_test

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weir-dev/weir/internal/sidecar/enforce"
	"github.com/weir-dev/weir/internal/sidecar/pools"
	"github.com/weir-dev/weir/pkg/concurrency"
	"github.com/weir-dev/weir/pkg/limiter"
	"github.com/weir-dev/weir/pkg/policy"
)

// byTenant gives each tenant of a pool n slots.
func byTenant(n int64, changes ...func(*policy.PoolKey)) func(*policy.Pool) {
	return func(p *policy.Pool) {
		p.Key = &policy.PoolKey{
			Parts: []policy.KeyPart{{Type: policy.HeaderKey, Header: "x-tenant"}}, OnMissing: policy.Shared, Limit: n,
		}
		for _, change := range changes {
			change(p.Key)
		}
	}
}

// of returns what a request of a tenant gets; one of nobody has none.
func (s *sidecar) of(tenant string) (pools.Slot, *pools.Refusal) {
	r := httptest.NewRequest(http.MethodGet, "/", http.NoBody)
	if tenant != "" {
		r.Header.Set("X-Tenant", tenant)
	}
	return s.Acquire(r)
}

func TestEveryTenantHasSlotsOfItsOwn(t *testing.T) {
	inBubble(t, enforce.Enforce, func(t *testing.T, s *sidecar) {
		s.apply(newPool(4, byTenant(2)))
		var held []pools.Slot
		admitted := func(tenant string) {
			t.Helper()
			slot, refusal := s.of(tenant)
			if refusal != nil {
				t.Fatalf("%q is refused by %s: %v", tenant, refusal.Pool.Name, refusal.Verdict)
			}
			held = append(held, slot)
		}
		refused := func(tenant, by string) {
			t.Helper()
			_, refusal := s.of(tenant)
			if refusal == nil || refusal.Pool.Name != by || refusal.Verdict != concurrency.Full {
				t.Fatalf("%q has %+v, want it refused by %s", tenant, refusal, by)
			}
		}
		admitted("gold")
		admitted("gold")
		refused("gold", "checkout/key")
		admitted("free")
		admitted("")
		refused("other", "checkout") // and gives its slot of the key back
		if got := s.held(); got != "checkout/key 2;checkout 4;" {
			t.Errorf("held are %s", got)
		}
		if keys := s.States()[0].Stats.Keys; keys != 3 {
			t.Errorf("%d keys are in use, want 3", keys)
		}
		for i := range held {
			held[i].Release(concurrency.Served)
			held[i].Release(concurrency.Served)
		}
		if got := s.held(); got != "checkout/key 0;checkout 0;" {
			t.Errorf("in the end held are %s", got)
		}
	})
}

func TestRequestsWithoutTheKey(t *testing.T) {
	inBubble(t, enforce.Enforce, func(t *testing.T, s *sidecar) {
		s.apply(newPool(4, byTenant(1, func(k *policy.PoolKey) { k.OnMissing = policy.Skip })))
		for range 2 {
			if _, refusal := s.of(""); refusal != nil {
				t.Errorf("one that needs no slot of a key is refused: %+v", refusal)
			}
		}
		s.apply(newPool(4, byTenant(1, func(k *policy.PoolKey) { k.OnMissing = policy.Reject })))
		if _, refusal := s.of(""); refusal == nil || refusal.Missing == nil || refusal.Missing.Header != "X-Tenant" {
			t.Errorf("one without the key has %+v, want it to miss the header", refusal)
		}
		missing := func(refused, spared int64) {
			t.Helper()
			tally, report := s.States()[0].Tallies[0], s.Report(1)
			if tally.KeyMissing() != refused || tally.KeyMissingSpared() != spared {
				t.Errorf("%d are counted as refused and %d as spared, want %d and %d", tally.KeyMissing(), tally.KeyMissingSpared(), refused, spared)
			}
			if n := report[0].GetKeyMissingTotal(); n != refused+spared || report[0].GetRefusedTotal() != 0 || report[1].GetKeyMissingTotal() != 0 {
				t.Errorf("reports %v, want %d without the key, and none refused a slot", report, refused+spared)
			}
		}
		missing(1, 0)
		s.apply(newPool(4, byTenant(1, func(k *policy.PoolKey) { k.OnMissing = policy.Reject }), func(p *policy.Pool) { p.Mode = policy.Shadow }))
		if _, refusal := s.of(""); refusal != nil {
			t.Errorf("in mode Shadow it is refused: %+v", refusal)
		}
		missing(1, 1)
	})
}

// A key comes and goes by an edit. Requests in flight keep their slots meanwhile.
func TestAKeyThatComesAndGoes(t *testing.T) {
	inBubble(t, enforce.Enforce, func(t *testing.T, s *sidecar) {
		s.apply(newPool(4))
		before, _ := s.of("gold")
		s.apply(newPool(4, byTenant(1), func(p *policy.Pool) { p.Generation = 2 }))
		during, refusal := s.of("gold")
		if refusal != nil || s.held() != "checkout/key 1;checkout 2;" {
			t.Errorf("with a key it is %+v, and held are %s", refusal, s.held())
		}
		s.apply(newPool(4, func(p *policy.Pool) { p.Generation = 3 }))
		if got := s.held(); got != "checkout 2;" {
			t.Errorf("without one held are %s", got)
		}
		s.apply(newPool(4, byTenant(1), func(p *policy.Pool) { p.Generation = 4 }))
		if _, refusal := s.of("gold"); refusal == nil || refusal.Pool.Name != "checkout/key" {
			t.Errorf("with the key again it has %+v, want the one before to hold its slot", refusal)
		}
		during.Release(concurrency.Served)
		before.Release(concurrency.Served)
		if slot, refusal := s.of("gold"); refusal != nil {
			t.Errorf("when that is done it has %+v", refusal)
		} else {
			slot.Release(concurrency.Served)
		}
	})
}

// While the coordinator is away no value is admitted beyond what the pod has for it.
func TestKeysAreFencedWithTheirCoordinator(t *testing.T) {
	inBubble(t, enforce.Enforce, func(t *testing.T, s *sidecar) {
		s.apply(newPool(4, byTenant(2)))
		s.world.set(func(w *world) { w.away = true })
		time.Sleep(leaseTTL)
		synctest.Wait()
		if _, refusal := s.of("gold"); refusal == nil || refusal.Pool.Name != "checkout/key" || refusal.Verdict != concurrency.Fenced {
			t.Errorf("it has %+v, want it fenced", refusal)
		}
		s.world.set(func(w *world) { w.away = false })
		time.Sleep(interval)
		synctest.Wait()
		if slot, refusal := s.of("gold"); refusal != nil {
			t.Errorf("when it is back: %+v", refusal)
		} else {
			slot.Release(concurrency.Served)
		}
	})
}

// A pod reports the value of a key that has the most in flight; requests that passed in mode
// Shadow are not known by value.
func TestReportOfAKey(t *testing.T) {
	inBubble(t, enforce.Enforce, func(t *testing.T, s *sidecar) {
		s.apply(newPool(4, byTenant(2)))
		for _, tenant := range []string{"gold", "gold", "gold", "free"} {
			_, _ = s.of(tenant)
		}
		r := s.Report(1)
		if len(r) != 2 || r[0].GetPool() != "checkout/key" || r[0].GetInFlight() != 2 || r[0].GetPeak() != 2 || r[0].GetLimit() != 2 || r[0].GetRefusedTotal() != 1 {
			t.Errorf("reports %v, want 2 in flight of a value, and one refused", r)
		}
		if r[1].GetPool() != "checkout" || r[1].GetInFlight() != 3 || r[1].GetRefusedTotal() != 0 {
			t.Errorf("of the pool it is %v, want 3 in flight", r[1])
		}
		s.apply(newPool(4, byTenant(2), func(p *policy.Pool) { p.Mode, p.Generation = policy.Shadow, 2 }))
		_, _ = s.of("gold")
		if r := s.Report(1); r[0].GetInFlight() != 2 || r[0].GetPeak() != 2 || r[0].GetSpared() != 1 {
			t.Errorf("in mode Shadow it is %v, want 2 in flight of a value and one that was spared", r[0])
		}
	})
}

// A request that waits for a slot of the pool has its slot of the key by a share that may run
// out meanwhile: then others have been given it.
func TestASlotOfAKeyLapsesInTheQueueOfThePool(t *testing.T) {
	for name, tc := range map[string]struct {
		away   time.Duration
		lapses bool
	}{
		"a short outage": {interval, false},
		"a long one":     {2 * leaseTTL, true},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, enforce.Enforce, func(t *testing.T, s *sidecar) {
				s.apply(newPool(1, byTenant(1), func(p *policy.Pool) {
					p.Queue = &policy.Queue{MaxLength: 1, MaxWait: 60 * limiter.Second}
				}))
				first, _ := s.of("free")
				decided := make(chan *pools.Refusal, 1)
				go func() {
					slot, refusal := s.of("gold")
					slot.Release(concurrency.Served)
					decided <- refusal
				}()
				synctest.Wait()
				s.world.set(func(w *world) { w.away = true })
				time.Sleep(tc.away / 2)
				s.world.set(func(w *world) { w.away = tc.lapses })
				time.Sleep(tc.away / 2)
				s.world.set(func(w *world) { w.away = false })
				time.Sleep(2 * interval)
				first.Release(concurrency.Served)
				refusal := <-decided
				lapsed := refusal != nil && refusal.Pool.Name == "checkout/key" && refusal.Verdict == concurrency.Fenced
				if lapsed != tc.lapses || !lapsed && refusal != nil {
					t.Errorf("it has %+v, want it refused: %t", refusal, tc.lapses)
				}
				if got := s.held(); got != "checkout/key 0;checkout 0;" {
					t.Errorf("in the end held are %s", got)
				}
				if got := s.States()[0].Tallies[0].Answered(concurrency.Fenced); (got == 1) != tc.lapses {
					t.Errorf("%d are counted as fenced", got)
				}
			})
		})
	}
}
