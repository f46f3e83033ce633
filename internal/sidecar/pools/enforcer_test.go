package pools_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
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

func TestAPoolThatGoesIsLeftWhenNothingIsInFlight(t *testing.T) {
	inBubble(t, enforce.Enforce, func(t *testing.T, s *sidecar) {
		s.apply(newPool(2))
		slot := s.hold()
		s.apply(nil)
		if s.State() != nil {
			t.Error("a pool is in force")
		}
		if free, refusal := s.enter("/"); free.Held() || refusal != nil {
			t.Errorf("a request without a pool has a slot: %v, %v", free.Held(), refusal)
		}
		before := s.world.said(pool.Beat)
		time.Sleep(10 * leaseTTL)
		if s.world.said(pool.Leave) > 0 || s.world.said(pool.Beat) < before+10 {
			t.Errorf("with a request in flight there were %d leaves and %d beats", s.world.said(pool.Leave), s.world.said(pool.Beat)-before)
		}
		slot.Release(concurrency.Served)
		synctest.Wait()
		if n := s.world.said(pool.Leave); n != 1 {
			t.Errorf("left %d times, want once", n)
		}
		before = s.world.said(pool.Beat)
		time.Sleep(leaseTTL)
		if n := s.world.said(pool.Beat) - before; n > 0 {
			t.Errorf("%d beats after it left", n)
		}
	})
}

func TestAPoolThatReturnsFindsWhatIsInFlight(t *testing.T) {
	for name, back := range map[string]*policy.Pool{
		"the same":             newPool(1, inRedis("1")),
		"in a new generation":  newPool(1, inRedis("1"), func(p *policy.Pool) { p.Generation = 2 }),
		"with new credentials": newPool(1, inRedis("2")),
		"over TLS":             newPool(1, inRedis("1"), func(p *policy.Pool) { p.Coordinator.TLS = true }),
		"with another secret":  newPool(1, inRedis("1"), func(p *policy.Pool) { p.Coordinator.Secret = "shop/other" }),
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, enforce.Enforce, func(t *testing.T, s *sidecar) {
				s.apply(newPool(1, inRedis("1")))
				slot := s.hold()
				s.apply(nil, back)
				if n := s.inFlight(); n != 1 {
					t.Errorf("%d are in flight, want 1", n)
				}
				if _, refusal := s.enter("/"); refusal == nil {
					t.Error("a second request has a slot, of one")
				}
				slot.Release(concurrency.Served)
				synctest.Wait()
				if n := s.world.said(pool.Leave); n != 0 {
					t.Error("a pool in force was left")
				}
				again := s.hold()
				again.Release(concurrency.Served)
			})
		})
	}
}

// TestAPoolThatReturnsAfterItWasLeft has the coordinator miss that it was left: the
// commands of the new guard must not look like old ones.
func TestAPoolThatReturnsAfterItWasLeft(t *testing.T) {
	for name, mute := range map[string]bool{"and the coordinator knows": false, "and the coordinator does not know": true} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, enforce.Enforce, func(t *testing.T, s *sidecar) {
				s.apply(newPool(1))
				time.Sleep(3 * interval)
				s.world.set(func(w *world) { w.mute = mute })
				s.apply(nil)
				if n := s.world.said(pool.Leave); n != 1 {
					t.Fatalf("left %d times", n)
				}
				s.apply(newPool(1))
				slot := s.hold()
				slot.Release(concurrency.Served)
			})
		})
	}
}

func TestANewVersionKeepsTheGuard(t *testing.T) {
	inBubble(t, enforce.Enforce, func(t *testing.T, s *sidecar) {
		s.apply(newPool(2, func(p *policy.Pool) {
			p.Partitions = []policy.Partition{{Name: "gold", GuaranteedPercent: 50, Match: path("/gold")}}
		}))
		gold, _ := s.enter("/gold")
		s.apply(newPool(3, func(p *policy.Pool) {
			p.Generation = 2
			p.Partitions = []policy.Partition{{Name: "silver"}, {Name: "gold", Match: path("/gold")}}
			p.Partitions[0].Match = path("/silver")
		}))
		time.Sleep(2 * interval)
		st := s.State()
		if st.Stats.InFlight != 1 || st.Stats.Share != 3 || s.world.params.Generation != 2 {
			t.Errorf("%d are in flight, the share is %d of generation %d", st.Stats.InFlight, st.Stats.Share, s.world.params.Generation)
		}
		if n := st.Tallies[1].Answered(concurrency.Admitted); n != 1 || st.Tallies[1].Partition != "gold" {
			t.Errorf("partition gold has %d requests, want 1", n)
		}
		gold.Release(concurrency.Served)
		if n := s.inFlight(); n != 0 {
			t.Errorf("%d are in flight", n)
		}
	})
}

func path(exact string) []policy.Match {
	return []policy.Match{{Paths: []policy.PathMatch{{Type: policy.Exact, Value: exact}}}}
}

// TestAPoolThatGoesIsLeftWhenNothingWaits has a request wait for a slot of a pool that has
// no share when the pool goes.
func TestAPoolThatGoesIsLeftWhenNothingWaits(t *testing.T) {
	inBubble(t, enforce.Enforce, func(t *testing.T, s *sidecar) {
		s.world.set(func(w *world) { w.away = true })
		s.apply(newPool(1, func(p *policy.Pool) { p.Queue = &policy.Queue{MaxLength: 1, MaxWait: limiter.Second} }))
		go s.enter("/")
		synctest.Wait()
		s.apply(nil)
		if n := s.world.said(pool.Leave); n > 0 {
			t.Fatal("left while a request waits")
		}
		time.Sleep(2 * interval)
		synctest.Wait()
		if n := s.world.said(pool.Leave); n != 1 {
			t.Errorf("left %d times after it gave up, want once", n)
		}
	})
}

func TestAnotherPoolTakesOver(t *testing.T) {
	inBubble(t, enforce.Enforce, func(t *testing.T, s *sidecar) {
		s.apply(newPool(1))
		slot := s.hold()
		s.apply(newPool(1, func(p *policy.Pool) { p.Name = "another" }))
		other := s.hold()
		slot.Release(concurrency.Served)
		synctest.Wait()
		if n := s.world.said(pool.Leave); n != 1 {
			t.Errorf("left %d pools, want the one before", n)
		}
		other.Release(concurrency.Served)
	})
}

// TestARetiredPoolEndsNoRequests has the share of a pool that went expire.
func TestARetiredPoolEndsNoRequests(t *testing.T) {
	abort := func(p *policy.Pool) { p.SelfFence.OnFenced = policy.Abort }
	for name, goes := range map[string]bool{"it is in force": false, "it went": true} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, enforce.Enforce, func(t *testing.T, s *sidecar) {
				s.apply(newPool(1, abort))
				slot := s.hold()
				if goes {
					s.apply(nil)
				}
				s.world.set(func(w *world) { w.away = true })
				time.Sleep(2 * leaseTTL)
				select {
				case <-slot.Fenced():
					if goes {
						t.Error("a request was ended on account of a pool that does not apply")
					}
				default:
					if !goes {
						t.Error("the request goes on without a share")
					}
				}
				slot.Release(concurrency.Ignored)
			})
		})
	}
}

func TestModes(t *testing.T) {
	abort := func(p *policy.Pool) {
		p.SelfFence.OnFenced, p.Queue = policy.Abort, &policy.Queue{MaxLength: 1, MaxWait: limiter.Second}
	}
	shadow := func(p *policy.Pool) { p.Mode = policy.Shadow }
	for name, tc := range map[string]struct {
		mode            enforce.Mode
		pool            *policy.Pool
		refuses, shadow bool
	}{
		"a pod and a pool that enforce": {enforce.Enforce, newPool(1, abort), true, false},
		"a pool in shadow":              {enforce.Enforce, newPool(1, abort, shadow), false, true},
		"a pod in shadow":               {enforce.Shadow, newPool(1, abort), false, true},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, tc.mode, func(t *testing.T, s *sidecar) {
				s.apply(tc.pool)
				slot := s.hold()
				began := time.Now()
				if _, refusal := s.enter("/"); (refusal != nil) != tc.refuses || s.State().Shadow != tc.shadow {
					t.Errorf("refused: %v, in shadow: %v", refusal, s.State().Shadow)
				}
				if waited := time.Since(began) > 0; waited != tc.refuses {
					t.Errorf("a request waited: %v", waited)
				}
				if aborts := slot.Fenced() != nil; aborts != tc.refuses {
					t.Errorf("requests are ended: %v", aborts)
				}
				if n := s.State().Tallies[0].Spared(concurrency.Full); (n == 1) != tc.shadow {
					t.Errorf("%d are counted as spared", n)
				}
				slot.Release(concurrency.Served)
			})
		})
	}
	t.Run("a pod that is bypassed", func(t *testing.T) {
		inBubble(t, enforce.Bypass, func(t *testing.T, s *sidecar) {
			s.apply(newPool(1))
			if slot, refusal := s.enter("/"); slot.Held() || refusal != nil || s.State() != nil || s.world.said(pool.Beat) > 0 {
				t.Error("a pool is in force")
			}
		})
	})
}

func TestAPoolThatCannotBeDividedChangesNothing(t *testing.T) {
	inBubble(t, enforce.Enforce, func(t *testing.T, s *sidecar) {
		s.apply(newPool(1))
		elsewhere := newPool(1, func(p *policy.Pool) {
			p.Coordinator = policy.Store{Type: policy.PostgresStore, Address: "db:5432", Database: "app", Secret: "shop/db", SecretVersion: "1"}
		})
		set, err := policy.Compile(policy.Snapshot{Cluster: "test", Pool: elsewhere})
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Apply(set); err == nil || !strings.Contains(err.Error(), "shop/checkout: not here") {
			t.Errorf("got error %v", err)
		}
		if got := s.State().Pool.Coordinator.Type; got != policy.ControllerStore {
			t.Errorf("the pool is divided by %s", got)
		}
	})
}

// TestAPoolThatIsReadyChangesNothing: until it is put in force, the one before is kept, and
// nobody closes what the next one needs.
func TestAPoolThatIsReadyChangesNothing(t *testing.T) {
	inBubble(t, enforce.Enforce, func(t *testing.T, s *sidecar) {
		other, next := newPool(1, func(p *policy.Pool) { p.Name = "other" }), newPool(5, inRedis(""))
		set, err := policy.Compile(policy.Snapshot{Cluster: "test", Pool: next})
		if err != nil {
			t.Fatal(err)
		}
		s.apply(newPool(1))
		held := s.hold()
		s.apply(other)
		c, err := s.Prepare(set)
		if err != nil {
			t.Fatal(err)
		}
		held.Release(concurrency.Served) // the last of the first pool
		synctest.Wait()
		if got := s.State().Pool.Name; got != "other" {
			t.Errorf("pool %s is in force", got)
		}
		if !s.world.used()[next.Coordinator] {
			t.Error("the coordinator of the next pool was closed")
		}
		c.Abandon()
		if s.world.used()[next.Coordinator] {
			t.Error("a coordinator that nobody needs stays open")
		}
		if c, err = s.Prepare(set); err != nil {
			t.Fatal(err)
		}
		c.Commit()
		if got := s.State().Pool.Coordinator.Type; got != policy.RedisStore {
			t.Errorf("the pool is divided by %s", got)
		}
	})
}

// TestACoordinatorStaysOpenUntilItsPoolsAreLeft also sees that it is closed then.
func TestACoordinatorStaysOpenUntilItsPoolsAreLeft(t *testing.T) {
	inBubble(t, enforce.Enforce, func(t *testing.T, s *sidecar) {
		s.apply(newPool(1, inRedis("1"), func(p *policy.Pool) { p.Name = "slow" }))
		slot := s.hold()
		kept := func(when string) {
			t.Helper()
			s.apply(newPool(1), nil) // which leaves at once
			if used := s.world.used(); !used[newPool(1, inRedis("")).Coordinator] {
				t.Errorf("%s, %v are kept", when, used)
			}
		}
		kept("while a request is in flight")
		slot.Release(concurrency.Served)
		synctest.Wait()
		kept("while the pool is left")
		time.Sleep(interval)
		if used := s.world.used(); len(used) > 0 {
			t.Errorf("at last %v are kept, want none", used)
		}
	})
}

// TestAGuardGoesOnOverOtherConnections moves a pool in force to TLS: what is in flight is
// counted on, and the coordinator hears of it over the new connections.
func TestAGuardGoesOnOverOtherConnections(t *testing.T) {
	inBubble(t, enforce.Enforce, func(t *testing.T, s *sidecar) {
		s.apply(newPool(1, inRedis("1")))
		slot := s.hold()
		encrypted := newPool(1, inRedis("1"), func(p *policy.Pool) { p.Coordinator.TLS, p.Coordinator.Secret = true, "shop/other" })
		s.apply(encrypted)
		if _, refusal := s.enter("/"); refusal == nil {
			t.Error("a second request has a slot, of one")
		}
		time.Sleep(2 * interval)
		want := encrypted.Coordinator
		want.SecretVersion = ""
		if used := s.world.used(); !used[want] || len(used) != 1 {
			t.Errorf("%v are kept, want %v", used, want)
		}
		if over := s.world.last(); over != encrypted.Coordinator {
			t.Errorf("the last beat went over %v", over)
		}
		slot.Release(concurrency.Served)
	})
}

func TestClosing(t *testing.T) {
	for name, tc := range map[string]struct {
		takes  time.Duration // the request in flight
		leaves int
	}{
		"waits for what is in flight":      {time.Second, 1},
		"leaves no share that is in use":   {time.Hour, 0},
		"leaves at once without a request": {0, 1},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, enforce.Enforce, func(t *testing.T, s *sidecar) {
				s.apply(newPool(1))
				if tc.takes > 0 {
					slot := s.hold()
					time.AfterFunc(tc.takes, func() { slot.Release(concurrency.Served) })
				}
				ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
				defer cancel()
				s.Close(ctx)
				if n := s.world.said(pool.Leave); n != tc.leaves {
					t.Errorf("left %d times, want %d", n, tc.leaves)
				}
				if _, refusal := s.enter("/"); refusal == nil || refusal.Verdict != concurrency.Closed {
					t.Errorf("a request got %v", refusal)
				}
				if len(s.Report(1)) != 1 {
					t.Error("the pool is not reported at the end")
				}
			})
		})
	}
}

// TestNoRequestSeesAChangeOfPool changes the pool all the time: a request gets a slot or
// needs none.
func TestNoRequestSeesAChangeOfPool(t *testing.T) {
	inBubble(t, enforce.Enforce, func(t *testing.T, s *sidecar) {
		s.apply(newPool(100))
		stop := make(chan struct{})
		var requests sync.WaitGroup
		for range 8 {
			requests.Go(func() {
				r := httptest.NewRequest(http.MethodGet, "/", http.NoBody)
				for {
					select {
					case <-stop:
						return
					default:
					}
					slot, refusal := s.Acquire(r)
					if refusal != nil && refusal.Verdict != concurrency.Unassigned {
						t.Errorf("refused: %s", refusal.Verdict)
						return
					}
					slot.Release(concurrency.Served)
				}
			})
		}
		for i := range 300 {
			p := newPool(100, func(p *policy.Pool) { p.Name = fmt.Sprint("pool-", i%2) })
			if i%3 == 0 {
				p = nil
			}
			set, err := policy.Compile(policy.Snapshot{Cluster: "test", Pool: p})
			if err != nil {
				t.Error(err)
				break
			}
			if err := s.Apply(set); err != nil {
				t.Error(err)
				break
			}
		}
		close(stop)
		requests.Wait()
		var none pools.Slot
		none.Release(concurrency.Served) // does nothing
	})
}
