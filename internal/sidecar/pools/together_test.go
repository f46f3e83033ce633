package pools_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weir-dev/weir/internal/sidecar/enforce"
	"github.com/weir-dev/weir/internal/sidecar/pools"
	"github.com/weir-dev/weir/pkg/concurrency"
	"github.com/weir-dev/weir/pkg/concurrency/pool"
	"github.com/weir-dev/weir/pkg/limiter"
	"github.com/weir-dev/weir/pkg/policy"
)

// below is a pool of n slots for requests below a path.
func below(path, name string, n int64, changes ...func(*policy.Pool)) policy.Pool {
	p := newPool(n, changes...)
	p.Name, p.Match = name, []policy.Match{{Paths: []policy.PathMatch{{Type: policy.PathPrefix, Value: path}}}}
	return *p
}

// together puts pools in force: one of all requests, nil for none, and some of others.
func (s *sidecar) together(all *policy.Pool, ps ...policy.Pool) {
	s.t.Helper()
	set, err := policy.Compile(policy.Snapshot{Cluster: "test", Pool: all, Pools: ps})
	if err != nil {
		s.t.Fatal(err)
	}
	if err := s.Apply(set); err != nil {
		s.t.Fatal(err)
	}
	synctest.Wait()
}

// held returns what each pool says of its slots.
func (s *sidecar) held() string {
	out := ""
	for _, p := range s.States() {
		out += fmt.Sprintf("%s %d;", p.Pool.Name, p.Stats.InFlight)
	}
	return out
}

// TestARequestHoldsASlotOfEachPoolThatItBelongsTo, or none.
func TestARequestHoldsASlotOfEachPoolThatItBelongsTo(t *testing.T) {
	inBubble(t, enforce.Enforce, func(t *testing.T, s *sidecar) {
		s.together(newPool(3), below("/a", "a", 2), below("/a/z", "z", 1))
		enter := func(path, refusedBy, held string) pools.Slot {
			t.Helper()
			slot, refusal := s.enter(path)
			by := ""
			if refusal != nil {
				by = refusal.Pool.Name
			}
			if by != refusedBy || s.held() != held {
				t.Errorf("%s is refused by %q, want %q; held are %s want %s", path, by, refusedBy, s.held(), held)
			}
			return slot
		}
		first := enter("/a/z", "", "a 1;checkout 1;z 1;")
		enter("/a/z", "z", "a 1;checkout 1;z 1;") // which had slots of the first two
		second := enter("/a", "", "a 2;checkout 2;z 1;")
		enter("/a", "a", "a 2;checkout 2;z 1;")
		third := enter("/b", "", "a 2;checkout 3;z 1;")
		enter("/b", "checkout", "a 2;checkout 3;z 1;")
		twice := first
		first.Release(concurrency.Served)
		twice.Release(concurrency.Served)
		second.Release(concurrency.Served)
		third.Release(concurrency.Served)
		if got := s.held(); got != "a 0;checkout 0;z 0;" {
			t.Errorf("in the end held are %s", got)
		}
	})
}

// TestARefusedRequestSaysNothingAboutLatency has the first pool infer its limit, and the
// second refuse.
func TestARefusedRequestSaysNothingAboutLatency(t *testing.T) {
	inBubble(t, enforce.Enforce, func(t *testing.T, s *sidecar) {
		inferring := func(p *policy.Pool) {
			p.Algorithm = policy.LimitAlgorithm{
				Type: policy.AIMD, TolerancePercent: 150, BackoffPercent: 90,
				Baseline: &policy.Baseline{Type: policy.RollingBaseline, Samples: 100},
			}
		}
		s.together(nil, below("/", "a", 9, inferring), below("/", "z", 1))
		slot := s.hold()
		time.Sleep(10 * time.Millisecond)
		if _, refusal := s.enter("/"); refusal == nil || refusal.Pool.Name != "z" {
			t.Fatalf("got %+v, want a refusal by z", refusal)
		}
		if latency := s.State().Stats.Latency; latency != 0 {
			t.Errorf("a refused request has a latency of %v", latency)
		}
		slot.Release(concurrency.Served)
		if latency := s.State().Stats.Latency; latency != 10*time.Millisecond {
			t.Errorf("latency is %v, want that of the request which was served", latency)
		}
	})
}

// TestTheWaitForSeveralPoolsIsBounded has a request wait in the first queue for most of the
// time that it may, and in the second for the rest.
func TestTheWaitForSeveralPoolsIsBounded(t *testing.T) {
	inBubble(t, enforce.Enforce, func(t *testing.T, s *sidecar) {
		queued := func(p *policy.Pool) { p.Queue = &policy.Queue{MaxLength: 9, MaxWait: limiter.Second} }
		z := below("/z", "z", 1, queued)
		z.Match = append(z.Match, policy.Match{Paths: []policy.PathMatch{{Type: policy.PathPrefix, Value: "/a/z"}}})
		s.together(nil, below("/a", "a", 1, queued), z)
		first, _ := s.enter("/a")
		second, _ := s.enter("/z")
		began := time.Now()
		time.AfterFunc(700*time.Millisecond, func() { first.Release(concurrency.Served) })
		_, refusal := s.enter("/a/z")
		if waited := time.Since(began); waited != time.Second {
			t.Errorf("it waited %v, want a second", waited)
		}
		if refusal == nil || refusal.Pool.Name != "z" || refusal.Verdict != concurrency.Expired || s.held() != "a 0;z 1;" {
			t.Errorf("got %+v, held are %s", refusal, s.held())
		}
		second.Release(concurrency.Served)
	})
}

// TestAClientThatLeavesHoldsNothing leaves while it waits for the second pool.
func TestAClientThatLeavesHoldsNothing(t *testing.T) {
	inBubble(t, enforce.Enforce, func(t *testing.T, s *sidecar) {
		queued := func(p *policy.Pool) { p.Queue = &policy.Queue{MaxLength: 9, MaxWait: limiter.Second} }
		s.together(nil, below("/a", "a", 1), below("/", "z", 1, queued))
		slot := s.hold()
		ctx, leave := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer leave()
		_, refusal := s.Acquire(httptest.NewRequest(http.MethodGet, "/a", http.NoBody).WithContext(ctx))
		if refusal == nil || refusal.Verdict != concurrency.Canceled || s.held() != "a 0;z 1;" {
			t.Errorf("got %+v, held are %s", refusal, s.held())
		}
		slot.Release(concurrency.Served)
	})
}

// TestOnePoolOfSeveralGoes while a request is in flight.
func TestOnePoolOfSeveralGoes(t *testing.T) {
	inBubble(t, enforce.Enforce, func(t *testing.T, s *sidecar) {
		a, z := below("/", "a", 2), below("/", "z", 2)
		s.together(nil, a, z)
		slot := s.hold()
		s.together(nil, a)
		if got := s.held(); got != "a 1;" {
			t.Errorf("held are %s", got)
		}
		s.together(nil, a, z)
		if got := s.held(); got != "a 1;z 1;" {
			t.Errorf("when it is back held are %s", got)
		}
		s.together(nil, z)
		slot.Release(concurrency.Served)
		synctest.Wait()
		if n := s.world.said(pool.Leave); n != 1 || s.held() != "z 0;" {
			t.Errorf("%d pools were left, held are %s", n, s.held())
		}
	})
}

// TestEachPoolFences a request that holds slots of two.
func TestEachPoolFences(t *testing.T) {
	for name, aborts := range map[string]int{"the first": 0, "the second": 1} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, enforce.Enforce, func(t *testing.T, s *sidecar) {
				ps := []policy.Pool{below("/", "a", 1), below("/", "z", 1)}
				ps[aborts].SelfFence.OnFenced = policy.Abort
				s.together(nil, ps...)
				slot := s.hold()
				s.world.set(func(w *world) { w.away = true })
				time.Sleep(2 * leaseTTL)
				ended := 0
				for held := &slot; held != nil; held = held.Next() {
					if fenced := held.Fenced(); fenced != nil {
						<-fenced
						ended++
					}
				}
				if got := slot.Refusal(); ended != 1 || got.Pool.Name != ps[aborts].Name || got.Verdict != concurrency.Fenced {
					t.Errorf("%d pools end the request, and the refusal is %+v", ended, got)
				}
				slot.Release(concurrency.Ignored)
			})
		})
	}
}

// TestEachPoolIsReported reports two.
func TestEachPoolIsReported(t *testing.T) {
	inBubble(t, enforce.Enforce, func(t *testing.T, s *sidecar) {
		s.together(newPool(3), below("/a", "a", 2))
		slot := s.hold()
		reports := s.Report(1)
		if len(reports) != 2 || reports[0].GetPool() != "a" || reports[0].GetInFlight() != 0 || reports[1].GetPool() != "checkout" || reports[1].GetInFlight() != 1 || reports[1].GetPeak() != 1 {
			t.Errorf("reported are %v", reports)
		}
		slot.Release(concurrency.Served)
		again := s.Report(2) // another session, which hears of the worst again
		if again[0].GetPeak() != 0 || again[1].GetPeak() != 1 {
			t.Errorf("reported again are %v", again)
		}
	})
}
