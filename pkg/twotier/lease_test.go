package twotier

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
	"unsafe"

	"github.com/weir-dev/weir/pkg/limiter"
	"github.com/weir-dev/weir/pkg/twotier/account"
)

func TestLeaseCostsOneRoundTripABatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newFakeStore()
		l := open(t, perSecond(1000, 10), s)
		if got := admitted(t, l, 100); got != 100 {
			t.Errorf("admitted %d of 100 within the limit", got)
		}
		if got := s.count(limiter.Take); got != 10 {
			t.Errorf("%d store calls for 100 requests in batches of 10, want 10", got)
		}
	})
}

// TestHeldRequestsAskNobody: they are decided by what the process holds, or not at all.
func TestHeldRequestsAskNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newFakeStore()
		l := open(t, perSecond(20, 10), s)
		for _, value := range []string{"", "ann"} {
			if _, err := l.Acquire(t.Context(), Request{Value: value, Cost: 1, Held: true}); !errors.Is(err, ErrNotHeld) {
				t.Errorf("%q: %v, want ErrNotHeld", value, err)
			}
			if n := l.keys.size(); n != 0 {
				t.Errorf("%q: %d keys are made", value, n)
			}
		}
		if n := s.count(limiter.Take); n != 0 {
			t.Errorf("%d store calls", n)
		}
		acquire(t, l, "ann", 1)
		for range 9 {
			if d, err := l.Acquire(t.Context(), Request{Value: "ann", Cost: 1, Held: true}); err != nil || !d.Allowed {
				t.Errorf("of 10 that are held: %+v, %v", d, err)
			}
		}
		if _, err := l.Acquire(t.Context(), Request{Value: "ann", Cost: 1, Held: true}); !errors.Is(err, ErrNotHeld) {
			t.Errorf("of nothing: %v, want ErrNotHeld", err)
		}
	})
}

func TestLeaseTakesNoMoreThanAFairPartOfTheLimit(t *testing.T) {
	tests := map[string]struct {
		limit, batch, holders int64
		cost                  int64
		want                  int64
	}{
		"a batch below the fair part":    {limit: 500, batch: 100, holders: 4, cost: 1, want: 100},
		"a batch above it":               {limit: 10, batch: 100, holders: 4, cost: 1, want: 3},
		"more holders than units":        {limit: 10, batch: 100, holders: 64, cost: 1, want: 1},
		"a cost above it":                {limit: 10, batch: 100, holders: 5, cost: 7, want: 7},
		"holders that are not known yet": {limit: 500, batch: 100, holders: 0, cost: 1, want: 50},
		"a batch below a tenth":          {limit: 5000, batch: 100, holders: 0, cost: 1, want: 100},
		"less than ten":                  {limit: 9, batch: 100, holders: 0, cost: 1, want: 1},
		"a batch above the limit":        {limit: 10, batch: 100, holders: 1, cost: 1, want: 10},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newFakeStore()
				cfg := perSecond(tc.limit, tc.batch)
				cfg.Holders = tc.holders
				acquire(t, open(t, cfg, s), "", tc.cost)
				if got := s.commands[0].Want; got != tc.want {
					t.Errorf("asked for %d units, want %d", got, tc.want)
				}
			})
		})
	}
}

// TestAFleetWithoutANumberRefusesLittle: processes that do not know how many they are serve
// keys that are each asked for a few times in a window, by any of them.
func TestAFleetWithoutANumberRefusesLittle(t *testing.T) {
	tests := map[string]struct {
		algorithm limiter.Algorithm
		limit     int64
		asked     int // of each key in its window
		most      int // refused of 1000 keys
	}{
		"a tenth of the limit": {limit: 100, asked: 10},
		"nearly half of it":    {limit: 100, asked: 45},
		"a small limit":        {limit: 10, asked: 3},
		"half of a small one":  {limit: 10, asked: 5, most: 50},
		"a bucket":             {algorithm: limiter.TokenBucket, limit: 100, asked: 45},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				rng := rand.New(rand.NewPCG(1, 2))
				s, cfg := newFakeStore(), adaptive(tc.limit, Size{Type: Adaptive, Batch: 100, Min: 1, Max: 10_000})
				cfg.Holders, cfg.MaxKeys = 0, 1000
				if cfg.Params.Algorithm = tc.algorithm; !tc.algorithm.WindowCoupled() {
					cfg.Params.Lifetime = 10 * limiter.Millisecond
				}
				var fleet [4]*Limiter
				for i := range fleet {
					fleet[i] = open(t, cfg, s)
				}
				nextWindow()
				refused := 0
				for key := range 1000 {
					for range tc.asked {
						if !acquire(t, fleet[rng.IntN(len(fleet))], fmt.Sprint(key), 1).Allowed {
							refused++
						}
					}
				}
				if refused > tc.most {
					t.Errorf("refused %d of %d requests of keys that are asked for %d of %d units, want at most %d", refused, 1000*tc.asked, tc.asked, tc.limit, tc.most)
				}
			})
		})
	}
}

func TestExhaustionIsRememberedToTheWindowsEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newFakeStore()
		l := open(t, perSecond(25, 10), s)
		if got := admitted(t, l, 100); got != 25 {
			t.Errorf("admitted %d, want the limit 25", got)
		}
		if got := s.count(limiter.Take); got != 3 {
			t.Errorf("%d store calls, want 3: the third took the rest and so foretells the refusal", got)
		}
		d := acquire(t, l, "", 1)
		if d.RetryAfter <= 0 || d.RetryAfter > time.Second || d.Reason != limiter.Exhausted {
			t.Errorf("refused with %v after %v, want Exhausted within the window", d.Reason, d.RetryAfter)
		}
		time.Sleep(d.RetryAfter)
		if got := admitted(t, l, 100); got != 25 {
			t.Errorf("admitted %d in the window after RetryAfter, want 25", got)
		}
	})
}

func TestRefusalLeavesSmallerCostsAChance(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newFakeStore()
		l := open(t, perSecond(10, 1), s)
		for range 2 {
			acquire(t, l, "", 4)
		}
		calls := s.count(limiter.Take)
		for range 3 {
			if d := acquire(t, l, "", 4); d.Allowed {
				t.Error("cost 4 admitted with 2 left")
			}
		}
		if got := s.count(limiter.Take) - calls; got != 1 {
			t.Errorf("%d store calls for three equal refusals, want 1", got)
		}
		if d := acquire(t, l, "", 2); !d.Allowed {
			t.Error("cost 2 refused with 2 left")
		}
	})
}

func TestCreditsInHandCountTowardsALargerCost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newFakeStore()
		l := open(t, perSecond(10, 8), s)
		acquire(t, l, "", 1) // 7 held, 2 at the store
		if d := acquire(t, l, "", 9); !d.Allowed {
			t.Error("cost 9 refused with 7 in hand and 2 at the store")
		}
		if d := acquire(t, l, "", 1); d.Allowed {
			t.Error("admitted 11 of 10")
		}
	})
}

func TestCostBeyondTheLimitAsksNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newFakeStore()
		l := open(t, perSecond(10, 5), s)
		d := acquire(t, l, "", 11)
		if d.Allowed || d.Reason != limiter.TooLarge || d.RetryAfter != 0 {
			t.Errorf("got %+v, want TooLarge for ever", d)
		}
		if n := s.count(limiter.Take); n != 0 {
			t.Errorf("%d store calls, want none", n)
		}
	})
}

func TestCostBelowOneIsAnError(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := open(t, perSecond(10, 5), newFakeStore())
		acquire(t, l, "", 1)
		for _, cost := range []int64{0, -3} {
			if d, err := l.Acquire(t.Context(), Request{Value: "", Cost: cost}); err == nil || d.Allowed {
				t.Errorf("cost %d: got %+v without an error", cost, d)
			}
		}
		if got := admitted(t, l, 20); got != 9 {
			t.Errorf("admitted %d after one, want 9: an invalid cost must not mint credits", got)
		}
	})
}

// window returns the number of the full second that s counts now.
func window(s *fakeStore) int64 { return int64(s.now()) / int64(limiter.Second) }

func TestDeadlineCountsFromBeforeTheRequestWasSent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newFakeStore()
		cfg := perSecond(1000, 100)
		cfg.Timeout = time.Second
		l := open(t, cfg, s)
		time.Sleep(500 * time.Millisecond)
		s.set(func() { s.back = constant(300 * time.Millisecond) })
		acquire(t, l, "", 1) // granted at 0.5 with 0.5 to live, received at 0.8
		s.set(func() { s.back = constant(0) })
		time.Sleep(250 * time.Millisecond) // 1.05
		if d := acquire(t, l, "", 1); d.Windows.Open[0].Index != window(s) {
			t.Errorf("charged to window %d in window %d", d.Windows.Open[0].Index, window(s))
		}
	})
}

func TestDeadlineAllowsForAFasterStoreClock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newFakeStore()
		s.rate = 1 + 150e-6
		cfg := perSecond(1000, 100)
		cfg.Params.Rates[0].Window = 3600 * limiter.Second
		l := open(t, cfg, s)
		acquire(t, l, "", 1)
		time.Sleep(3600*time.Second - 500*time.Millisecond) // the store is 0.04 s into the next hour
		d := acquire(t, l, "", 1)
		if got, want := d.Windows.Open[0].Index, int64(s.now())/int64(3600*limiter.Second); got != want {
			t.Errorf("charged to window %d in window %d", got, want)
		}
	})
}

func TestDeadlineLeavesAMillisecondForTheStoresResolution(t *testing.T) {
	life := 100 * limiter.Millisecond
	if got, most := account.DeadlineOf(0, life), account.Nanos(life)-int64(time.Millisecond); got > most {
		t.Errorf("a grant of %d ns lives %d ns, want at most %d", account.Nanos(life), got, most)
	}
}

func TestLateReplyIsDropped(t *testing.T) {
	for name, mode := range map[string]Mode{"leased": Leased, "strict": Strict} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newFakeStore()
				cfg := perSecond(1000, 100)
				cfg.Mode, cfg.Timeout = mode, 2*time.Second
				l := open(t, cfg, s)
				time.Sleep(500 * time.Millisecond)
				late := true
				s.set(func() {
					s.back = func() time.Duration {
						defer func() { late = false }()
						if late {
							return 700 * time.Millisecond
						}
						return 0
					}
				})
				d := acquire(t, l, "", 1)
				if !d.Allowed || d.Windows.Open[0].Index != window(s) {
					t.Errorf("allowed %v in window %d, charged to %d", d.Allowed, window(s), d.Windows.Open[0].Index)
				}
				if got := s.count(limiter.Take); got != 2 {
					t.Errorf("%d store calls, want 2: the first came back too late", got)
				}
			})
		})
	}
}

func TestStoreSlowerThanWindowsIsNotAskedForEver(t *testing.T) {
	for name, mode := range map[string]Mode{"leased": Leased, "strict": Strict} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newFakeStore()
				s.back = constant(1500 * time.Millisecond)
				cfg := perSecond(1000, 100)
				cfg.Mode, cfg.Timeout = mode, 2*time.Second
				l := open(t, cfg, s)
				if d := acquire(t, l, "", 1); d.Allowed || d.RetryAfter <= 0 {
					t.Errorf("got %+v, want a refusal with a time to retry", d)
				}
				if got := s.count(limiter.Take); got != maxAsks {
					t.Errorf("%d store calls, want %d", got, maxAsks)
				}
				if d := acquire(t, l, "", 1); d.Allowed || d.Source != FromFailureAction {
					t.Errorf("got %+v, want a refusal that does not say that the limit is reached", d)
				}
				if got := s.count(limiter.Take); mode == Leased && got != maxAsks {
					t.Errorf("%d store calls, want %d within a second", got, maxAsks)
				}
			})
		})
	}
}

func TestCreditsDieWithTheirWindow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newFakeStore()
		l := open(t, perSecond(100, 60), s)
		acquire(t, l, "", 1) // 59 held
		nextWindow()
		if got := admitted(t, l, 200); got != 100 {
			t.Errorf("admitted %d in a fresh window of 100", got)
		}
	})
}

func TestSpendChecksTheDeadlineAfterItTookTheCredit(t *testing.T) {
	l := &Limiter{clock: newClock()}
	e := &lease{info: &leaseInfo{limiter: l, lowWater: neverLow}}
	e.deadline = l.clock.now() + int64(time.Hour)
	e.credits.Store(2)
	var d Decision
	if !e.spend(l, 1, &d) || !d.Allowed {
		t.Fatal("a live lease does not spend")
	}
	l.clock.Skip(time.Hour)
	d = Decision{}
	if e.spend(l, 1, &d) || d != (Decision{}) || e.credits.Load() != 1 {
		t.Errorf("a dead lease left the decision %+v and %d credits, want none and 1", d, e.credits.Load())
	}
}

func TestDrainedLeaseHasNothingLeft(t *testing.T) {
	e := &lease{}
	e.credits.Store(5)
	if got := e.drain(); got != 5 {
		t.Errorf("drained %d of 5", got)
	}
	if _, ok := e.take(1); ok {
		t.Error("a thread that still holds a drained lease spends a credit that moved on")
	}
}

func TestConcurrentMissesShareOneCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newFakeStore()
		s.there = constant(10 * time.Millisecond)
		l := open(t, perSecond(10_000, 1000), s)
		var wait sync.WaitGroup
		var allowed atomic.Int64
		for range 1000 {
			wait.Go(func() {
				if d, err := l.Acquire(t.Context(), Request{Value: "", Cost: 1}); err == nil && d.Allowed {
					allowed.Add(1)
				}
			})
		}
		wait.Wait()
		if allowed.Load() != 1000 || s.count(limiter.Take) != 1 {
			t.Errorf("%d admitted by %d store calls, want 1000 by 1", allowed.Load(), s.count(limiter.Take))
		}
	})
}

func TestCallAsksForAllThatWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newFakeStore()
		s.there = constant(10 * time.Millisecond)
		l := open(t, perSecond(10_000, 1), s)
		var wait sync.WaitGroup
		var allowed atomic.Int64
		for range 1000 {
			wait.Go(func() {
				if d, err := l.Acquire(t.Context(), Request{Value: "", Cost: 1}); err == nil && d.Allowed {
					allowed.Add(1)
				}
			})
		}
		wait.Wait()
		if allowed.Load() != 1000 || s.count(limiter.Take) > 3 {
			t.Errorf("%d admitted by %d store calls, want 1000 by at most 3", allowed.Load(), s.count(limiter.Take))
		}
	})
}

func TestOneCallersCancellationDoesNotFailOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newFakeStore()
		s.there = constant(50 * time.Millisecond)
		l := open(t, perSecond(100, 10), s)
		ctx, cancel := context.WithCancel(t.Context())
		var wait sync.WaitGroup
		wait.Go(func() {
			if _, err := l.Acquire(ctx, Request{Value: "", Cost: 1}); !errors.Is(err, context.Canceled) {
				t.Errorf("the cancelled caller got %v", err)
			}
		})
		synctest.Wait() // the call of the one that will be cancelled is in progress
		wait.Go(func() {
			if d, err := l.Acquire(t.Context(), Request{Value: "", Cost: 1}); err != nil || !d.Allowed {
				t.Errorf("the other caller got %v, %v", d.Allowed, err)
			}
		})
		synctest.Wait()
		cancel()
		wait.Wait()
		if got := s.count(limiter.Take); got != 1 {
			t.Errorf("%d store calls, want 1", got)
		}
		if since, _ := l.settings.Load().breaker.state(l.settings.Load().Scope); !since.IsZero() {
			t.Error("the breaker took a caller that gave up for an outage")
		}
	})
}

func TestReplyThatRefusesIsRemembered(t *testing.T) {
	const wait = 700 * limiter.Millisecond
	for name, tc := range map[string]struct {
		reply     limiter.Result
		wantWait  time.Duration
		wantRetry time.Duration
	}{
		"amnesia, until the store says":             {limiter.Result{Reason: limiter.Amnesia, RetryAfter: wait}, 700 * time.Millisecond, 700 * time.Millisecond},
		"a clock set back far, for a second":        {limiter.Result{Reason: limiter.ClockBehind, RetryAfter: 3600 * limiter.Second}, time.Second, time.Second},
		"a stale generation, for a second":          {limiter.Result{Reason: limiter.StaleGeneration}, time.Second, time.Second},
		"a cost that is too large at the store too": {limiter.Result{Reason: limiter.TooLarge}, time.Second, 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newFakeStore()
				s.hook = func(limiter.Command, limiter.Result) limiter.Result { return tc.reply }
				l := open(t, perSecond(100, 10), s)
				d := acquire(t, l, "", 1)
				if d.Allowed || d.Reason != tc.reply.Reason || d.RetryAfter != tc.wantRetry {
					t.Errorf("got %v %v retry after %v, want %v", d.Allowed, d.Reason, d.RetryAfter, tc.wantRetry)
				}
				time.Sleep(tc.wantWait - time.Millisecond)
				acquire(t, l, "", 1)
				if got := s.count(limiter.Take); got != 1 {
					t.Errorf("%d store calls while the refusal holds, want 1", got)
				}
				time.Sleep(2 * time.Millisecond)
				acquire(t, l, "", 1)
				if got := s.count(limiter.Take); got != 2 {
					t.Errorf("%d store calls after the refusal ended, want 2", got)
				}
			})
		})
	}
}

func TestHotPathsDoNotAllocate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := open(t, perSecond(100_000, 50_000), newFakeStore())
		for name, cost := range map[string]int64{"admitted": 1, "refused": 99_999} {
			acquire(t, l, name, 2)
			k, want := l.Key(name, ""), cost == 1
			decide := func(d Decision, err error) {
				if err != nil || d.Allowed != want {
					t.Errorf("%s: got %+v, %v", name, d, err)
				}
			}
			acquire(t, l, name, cost)
			if n := testing.AllocsPerRun(1000, func() { decide(k.Acquire(t.Context(), cost)) }); n != 0 {
				t.Errorf("%s: %v allocations, want 0", name, n)
			}
			if n := testing.AllocsPerRun(1000, func() { decide(l.Acquire(t.Context(), Request{Value: name, Cost: cost})) }); n != 0 {
				t.Errorf("%s, looked up: %v allocations, want 0", name, n)
			}
		}
	})
}

func TestLeaseFillsOneCacheLine(t *testing.T) {
	if size := unsafe.Sizeof(lease{}); size > 64 {
		t.Errorf("a lease takes %d bytes, want at most 64", size)
	}
}
