package pools_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/weir-dev/weir/internal/sidecar/enforce"
	"github.com/weir-dev/weir/internal/sidecar/pools"
	"github.com/weir-dev/weir/pkg/concurrency"
	"github.com/weir-dev/weir/pkg/limiter"
	"github.com/weir-dev/weir/pkg/policy"
)

// queueing lets some requests wait for a slot of their value.
func queueing(length int, wait limiter.Micros) func(*policy.PoolKey) {
	return func(k *policy.PoolKey) { k.Queue = &policy.Queue{MaxLength: length, MaxWait: wait} }
}

// later asks for slots of a tenant on its own, and gives back what it gets.
func (s *sidecar) later(tenant string) <-chan *pools.Refusal {
	decided := make(chan *pools.Refusal, 1)
	go func() {
		slot, refusal := s.of(tenant)
		slot.Release(concurrency.Served)
		decided <- refusal
	}()
	synctest.Wait()
	return decided
}

// A request that waits for a slot of its value holds none, and keeps no other from its own.
func TestARequestWaitsForASlotOfItsValue(t *testing.T) {
	inBubble(t, enforce.Enforce, func(t *testing.T, s *sidecar) {
		s.apply(newPool(2, byTenant(1, queueing(3, limiter.Second))))
		gold, _ := s.of("gold")
		first, second := s.later("gold"), s.later("gold")
		if _, refusal := s.of("gold"); refusal == nil || refusal.Pool.Name != "checkout/key" || refusal.Verdict != concurrency.Overflow {
			t.Errorf("a third has %+v, want the queue to be full for the tenant", refusal)
		}
		if refusal := <-s.later("free"); refusal != nil {
			t.Errorf("another tenant has %+v", refusal)
		}
		if got, queued := s.held(), s.States()[0].Stats.Queued; got != "checkout/key 1;checkout 1;" || queued != 2 {
			t.Errorf("held are %s, and %d wait", got, queued)
		}
		time.Sleep(100 * time.Millisecond)
		gold.Release(concurrency.Served)
		if a, b := <-first, <-second; a != nil || b != nil {
			t.Errorf("those that waited have %+v and %+v", a, b)
		}
		held, _ := s.of("gold")
		began := time.Now()
		if _, refusal := s.of("gold"); refusal == nil || refusal.Verdict != concurrency.Expired || time.Since(began) != time.Second {
			t.Errorf("after %v it has %+v, want it refused after a second", time.Since(began), refusal)
		}
		held.Release(concurrency.Served)
		if got := s.held(); got != "checkout/key 0;checkout 0;" {
			t.Errorf("in the end held are %s", got)
		}
	})
}

// A request waits for a slot of its value and for one of the pool no longer than the longer queue says.
func TestTheWaitForBothSlotsIsBounded(t *testing.T) {
	inBubble(t, enforce.Enforce, func(t *testing.T, s *sidecar) {
		s.apply(newPool(1, byTenant(1, queueing(3, limiter.Second)), func(p *policy.Pool) {
			p.Queue = &policy.Queue{MaxLength: 3, MaxWait: 700 * limiter.Millisecond}
		}))
		free, _ := s.of("free")
		began := time.Now()
		first, second := s.later("gold"), s.later("gold") // the first waits for the pool, the second for it
		expired := func(decided <-chan *pools.Refusal, by string, after time.Duration) {
			t.Helper()
			if refusal := <-decided; refusal == nil || refusal.Pool.Name != by || refusal.Verdict != concurrency.Expired || time.Since(began) != after {
				t.Errorf("after %v it has %+v, want it refused by %s after %v", time.Since(began), refusal, by, after)
			}
		}
		expired(first, "checkout", 700*time.Millisecond)
		expired(second, "checkout", time.Second)
		free.Release(concurrency.Served)
	})
}

// While a request waits for a slot of its value, the share may run out by which it has one of
// another pool.
func TestASlotOfAPoolLapsesInTheQueueOfAKey(t *testing.T) {
	inBubble(t, enforce.Enforce, func(t *testing.T, s *sidecar) {
		s.together(nil, below("/", "a", 2), below("/", "z", 2, byTenant(1, queueing(3, 60*limiter.Second))))
		held, _ := s.of("gold")
		decided := s.later("gold")
		s.world.set(func(w *world) { w.away = true })
		time.Sleep(2 * leaseTTL)
		s.world.set(func(w *world) { w.away = false })
		time.Sleep(2 * interval)
		held.Release(concurrency.Served)
		if refusal := <-decided; refusal == nil || refusal.Pool.Name != "a" || refusal.Verdict != concurrency.Fenced {
			t.Errorf("it has %+v, want it refused by the pool whose slot it had before", refusal)
		}
		if got := s.held(); got != "a 0;z/key 0;z 0;" {
			t.Errorf("in the end held are %s", got)
		}
	})
}
