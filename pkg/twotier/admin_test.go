package twotier

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weir-dev/weir/pkg/limiter"
	"github.com/weir-dev/weir/pkg/store"
)

func peek(t *testing.T, l *Limiter, value string, cost int64) Forecast {
	t.Helper()
	f, err := l.Peek(t.Context(), Request{Value: value, Cost: cost})
	if err != nil {
		t.Fatalf("Peek(%q, %d): %v", value, cost, err)
	}
	return f
}

func TestPeekChangesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newFakeStore()
		l := open(t, perSecond(20, 5), s)
		acquire(t, l, "key", 1)
		for range 3 {
			f := peek(t, l, "key", 2)
			if !f.Allowed || f.Remaining != 19 || f.Credits != 4 || f.Source != FromLease || f.Unread != nil || f.Shared {
				t.Errorf("got %+v, want 19 left: 15 at the store and 4 in hand", f)
			}
		}
		if f := peek(t, l, "key", 19); !f.Allowed || f.Source != FromStore {
			t.Errorf("got %+v, want it admitted by both together", f)
		}
		if f := peek(t, l, "key", 20); f.Allowed || f.RetryAfter <= 0 || f.Reason != limiter.Exhausted {
			t.Errorf("got %+v, want a refusal until the next window", f)
		}
		if f := peek(t, l, "key", 21); f.Allowed || f.RetryAfter != 0 || f.Reason != limiter.TooLarge {
			t.Errorf("got %+v, want a refusal for good", f)
		}
		if got := s.count(limiter.Take); got != 1 {
			t.Errorf("%d leases, want the first alone", got)
		}
	})
}

// TestPeekForeseesDecisions peeks before each of many requests, in every mode, while another
// process takes units and the store comes and goes.
func TestPeekForeseesDecisions(t *testing.T) {
	all := variants()
	delete(all, "carry-over") // which of its credits outlive a window is decided when they are needed
	all["leaky bucket"] = perSecond(20, 1)
	leaky := all["leaky bucket"]
	leaky.Params.Algorithm, leaky.Params.MaxDelay = limiter.LeakyBucket, 300*limiter.Millisecond
	all["leaky bucket"] = leaky
	for name, cfg := range all {
		for modeName, mode := range modes() {
			for _, action := range []Action{Allow, Deny, LocalShare} {
				t.Run(fmt.Sprintf("%s, %s, %d", name, modeName, action), func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) {
						cfg := cfg
						cfg.Mode, cfg.OnUnavailable, cfg.Holders = mode, action, 3
						foreseeDecisions(t, cfg)
					})
				})
			}
		}
	}
}

// somethingHappens lets time pass, or changes the store, the settings or the counter.
func somethingHappens(t *testing.T, l *Limiter, s *fakeStore, cfg Config, rng *rand.Rand) Config {
	switch rng.IntN(40) {
	case 0:
		s.set(func() { s.down = errDown })
	case 1, 2:
		s.set(func() { s.down = nil })
	case 3, 4:
		take := limiter.Command{Min: 1, Want: 1 + rng.Int64N(20)}
		_, _ = s.Apply(t.Context(), store.Key{Scope: cfg.Scope}, cfg.Params, take) // of another process
	case 5:
		cfg.OnUnavailable = Action(rng.IntN(3))
		l.Reconfigure(cfg)
	case 6:
		s.set(func() { s.ahead = time.Duration(rng.Int64N(int64(3 * time.Second))) })
	default:
		time.Sleep(time.Duration(rng.Int64N(int64(20 * time.Millisecond))))
	}
	synctest.Wait() // for what goes back to the store
	return cfg
}

// foresaw reports whether the forecast is right about the decision that followed.
func foresaw(cfg Config, cost int64, f Forecast, d Decision) bool {
	large := cost == 100 && cfg.Params.Algorithm != limiter.LeakyBucket // which the store alone refuses for good
	switch never := f.Reason == limiter.TooLarge; {
	case f.Allowed != d.Allowed || f.Delay != d.Delay || never && cost != 100 || large && !never:
		return false
	case !d.Allowed: // a refusal that is remembered may not say that it is for good
		return never || (f.RetryAfter > 0) == (d.RetryAfter > 0)
	default:
		return d.Source != FromLocalShare || f.Remaining == d.Remaining+cost
	}
}

func foreseeDecisions(t *testing.T, cfg Config) {
	s, rng := newFakeStore(), rand.New(rand.NewPCG(7, uint64(cfg.Mode)))
	l := open(t, cfg, s)
	seen := map[string]int{}
	for i := range 600 {
		cfg = somethingHappens(t, l, s, cfg, rng)
		cost := 1 + rng.Int64N(4)
		if rng.IntN(50) == 0 {
			cost = 100
		}
		f := peek(t, l, "", cost)
		d := acquire(t, l, "", cost)
		if !foresaw(cfg, cost, f, d) {
			t.Fatalf("request %d of cost %d: foresaw\n%+v, and got\n%+v", i, cost, f, d)
		}
		if d.Allowed && rng.IntN(3) == 0 {
			d.Settle(rng.Int64N(6))
		}
		if f.Unread != nil {
			seen["unread"]++
		}
		seen[fmt.Sprint(f.Allowed, f.Source)]++
	}
	if seen["unread"] < 10 || len(seen) < 4 {
		t.Errorf("the requests did not reach far enough: %v", seen)
	}
}

// TestARefusalBehindTheFloorIsForeseenWithoutADelay: the units that a queue of the store would
// grant are refused, so there is nothing to wait for but the store's clock.
func TestARefusalBehindTheFloorIsForeseenWithoutADelay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, cfg := newFakeStore(), perSecond(20, 1)
		cfg.Params.Algorithm, cfg.Params.MaxDelay = limiter.LeakyBucket, 300*limiter.Millisecond
		cfg.Mode, cfg.OnUnavailable = Strict, LocalShare
		l := open(t, cfg, s)
		acquire(t, l, "", 1)
		s.set(func() { s.down = errDown })
		for range 10 {
			nextWindow()
			acquire(t, l, "", 1)
		}
		s.set(func() { s.down, s.ahead = nil, s.ahead-4*time.Second })
		time.Sleep(2 * maxRetry)
		take := limiter.Command{Min: 1, Want: 4}
		if r, err := s.Apply(t.Context(), store.Key{Scope: cfg.Scope}, cfg.Params, take); err != nil || r.Granted != 4 {
			t.Fatalf("another process got %+v, %v, want 4 units", r, err)
		}
		acquire(t, l, "", 1) // learns what the store's clock shows
		f := peek(t, l, "", 2)
		if f.Allowed || f.Reason != limiter.ClockBehind || f.Delay != 0 || f.RetryAfter <= 0 {
			t.Errorf("got %+v, want a refusal until the store's clock has caught up, and no delay", f)
		}
	})
}

// TestAForecastIsWhenTheCostIsAdmitted: not before, when nobody else takes anything.
func TestAForecastIsWhenTheCostIsAdmitted(t *testing.T) {
	for name, cfg := range variants() {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				cfg.Mode = Strict
				l := open(t, cfg, newFakeStore())
				for cost := int64(1); cost < 48; cost += 7 {
					for acquire(t, l, "", cost).Allowed {
					}
					f := peek(t, l, "", cost)
					if f.Allowed || f.RetryAfter <= 0 {
						t.Fatalf("cost %d: got %+v, want a refusal for some time", cost, f)
					}
					time.Sleep(f.RetryAfter - time.Microsecond)
					if peek(t, l, "", cost).Allowed {
						t.Errorf("cost %d: admitted before %s", cost, f.RetryAfter)
					}
					time.Sleep(time.Microsecond)
					if !acquire(t, l, "", cost).Allowed {
						t.Errorf("cost %d: refused after %s", cost, f.RetryAfter)
					}
				}
			})
		})
	}
}

// TestPeekWithoutTheStoreKnowsTheCredits: they are what is admitted in any case.
func TestPeekWithoutTheStoreKnowsTheCredits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newFakeStore()
		l := open(t, perSecond(20, 5), s)
		acquire(t, l, "key", 1)
		s.set(func() { s.down = errDown })
		if f := peek(t, l, "key", 4); !f.Allowed || f.Unread == nil || f.Credits != 4 || f.Remaining != 4 || f.Limit != 20 || f.ResetAfter <= 0 {
			t.Errorf("got %+v, want it admitted by 4 credits", f)
		}
		if f := peek(t, l, "key", 5); f.Allowed || f.Unread == nil || f.Credits != 4 || f.Source != FromFailureAction {
			t.Errorf("got %+v, want what the failure action does", f)
		}
		if f := peek(t, l, "key", 21); f.Allowed || f.Reason != limiter.TooLarge || f.RetryAfter != 0 {
			t.Errorf("got %+v, want what is never admitted", f)
		}
	})
}

// TestAForecastSaysHowOldItIs: at least since the store decided, and no longer than the call.
func TestAForecastSaysHowOldItIs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newFakeStore()
		s.there, s.back = constant(2*time.Millisecond), constant(3*time.Millisecond)
		if f := peek(t, open(t, perSecond(20, 5), s), "key", 1); f.Age != 5*time.Millisecond {
			t.Errorf("got %s, want that of the whole call", f.Age)
		}
	})
}

// TestAPeekDoesNotCountALeaseTwice: one that is granted while the store is read is either at the
// store or in hand.
func TestAPeekDoesNotCountALeaseTwice(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newFakeStore()
		l := open(t, perSecond(20, 5), s)
		s.back = constant(10 * time.Millisecond)
		go func() {
			time.Sleep(time.Millisecond)
			s.set(func() { s.back = constant(0) })
			acquire(t, l, "key", 1)
		}()
		if f := peek(t, l, "key", 1); f.Remaining != 20 || f.Credits != 4 {
			t.Errorf("got %+v, want 20 as the store said, and 4 in hand", f)
		}
	})
}

// TestPeeksMakeNoKeys floods a limiter with peeks of values and tenants that nobody asked for.
func TestPeeksMakeNoKeys(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newFakeStore()
		s.hook = func(c limiter.Command, res limiter.Result) limiter.Result {
			s.commands = nil
			return res
		}
		taken := new(meter)
		cfg := perSecond(20, 5)
		cfg.MaxKeys, cfg.SharedKeys, cfg.Memory = 2, 4, taken
		l := open(t, cfg, s)
		for i := range 10_000 {
			r := Request{Value: fmt.Sprint("invented ", i), Cost: 1}
			if i%2 == 0 {
				r.Tenant = fmt.Sprint("t", i)
			}
			if f, err := l.Peek(t.Context(), r); err != nil || !f.Allowed || f.Remaining != 20 || f.Shared {
				t.Fatalf("%v: got %+v, %v", r, f, err)
			}
		}
		if got := l.Stats(); got.ActiveKeys != 0 || got.Full != NoBound || taken.n != 0 {
			t.Errorf("%d keys, %v, %d bytes, want none", got.ActiveKeys, got.Full, taken.n)
		}
		acquire(t, l, "a", 1)
		acquire(t, l, "b", 1)
		before := taken.n
		for i := range 1000 {
			if f := peek(t, l, fmt.Sprint("invented ", i), 1); !f.Shared || f.Remaining != 20 {
				t.Fatalf("got %+v of a value that has no room", f)
			}
		}
		if taken.n != before || l.keys.shared != nil {
			t.Errorf("%d bytes and %d shared keys more", taken.n-before, len(l.keys.shared))
		}
		acquire(t, l, "c", 2)
		if f := peek(t, l, "c", 1); !f.Shared || f.Credits != 3 || f.Remaining != 18 {
			t.Errorf("got %+v of a value that shares a counter", f)
		}
	})
}

// A meter is memory that has no end.
type meter struct{ n int64 }

func (m *meter) Take(n int64, _ bool) bool { m.n += n; return true }
func (m *meter) Give(n int64)              { m.n -= n }

// TestCreditsAreThoseThatCanBeSpent: the rest of each key's lease, until its window is
// over.
func TestCreditsAreThoseThatCanBeSpent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := open(t, perSecond(1000, 10), newFakeStore())
		if got := l.Credits(); got != 0 {
			t.Errorf("%d credits before a lease", got)
		}
		acquire(t, l, "a", 1)
		acquire(t, l, "b", 3)
		acquire(t, l, "", 1)
		if got := l.Credits(); got != 9+7+9 {
			t.Errorf("%d credits, want what 10 each leave", got)
		}
		<-time.After(time.Second) // on the bubble's clock: past the window
		if got := l.Credits(); got != 0 {
			t.Errorf("%d credits of a window that is over", got)
		}
	})
}

func TestAStoreThatForgotShowsForAsLong(t *testing.T) {
	for _, reason := range []limiter.Reason{limiter.Amnesia, limiter.ClockBehind, limiter.Exhausted} {
		synctest.Test(t, func(t *testing.T) {
			s := newFakeStore()
			forgets := true
			s.hook = func(_ limiter.Command, res limiter.Result) limiter.Result {
				if forgets {
					return limiter.Result{Reason: reason, RetryAfter: 10 * limiter.Second, Now: res.Now}
				}
				return res
			}
			l := open(t, perSecond(100, 10), s)
			wants := func(lasts time.Duration) {
				t.Helper()
				want := reason
				if reason == limiter.Exhausted {
					want, lasts = limiter.Granted, 0
				}
				if lasts <= 0 {
					want = limiter.Granted
				}
				if got := l.Stats(); got.Learning != want || got.LearningFor != max(0, lasts) {
					t.Errorf("%v for %s, want %v for %s", got.Learning, got.LearningFor, want, lasts)
				}
			}
			wants(0)
			acquire(t, l, "a", 1)
			wants(10 * time.Second)
			time.Sleep(4 * time.Second)
			wants(6 * time.Second)
			forgets = false
			acquire(t, l, "b", 1) // another key of the same memory
			wants(0)
			forgets = true
			acquire(t, l, "c", 1)
			time.Sleep(10 * time.Second)
			wants(0)
		})
	}
}
