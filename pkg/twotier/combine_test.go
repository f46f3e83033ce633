package twotier

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-dev/weir/internal/testing/seeds"
	"github.com/weir-dev/weir/pkg/limiter"
)

// shareable are parameters of every kind whose requests share calls.
func shareable() map[string]limiter.Params {
	short, long := limiter.Rate{Limit: 20, Window: limiter.Second}, limiter.Rate{Limit: 50, Window: 5 * limiter.Second}
	fair := limiter.Fairness{Weights: []limiter.Weight{{Tenant: "a", Weight: 3}}, Default: 1}
	kinds := map[string]limiter.Params{"tenants": {Rates: []limiter.Rate{short}, Fairness: fair}}
	for a := range limiter.LeakyBucket { // it has no shared calls
		for name, p := range map[string]limiter.Params{
			"one rate":  {Rates: []limiter.Rate{short}},
			"all of":    {Rates: []limiter.Rate{short, long}},
			"any of":    {Rates: []limiter.Rate{short, long}, Any: true},
			"long logs": {Rates: []limiter.Rate{{Limit: limiter.MaxLog + 100, Window: limiter.Second}}},
		} {
			p.Algorithm = a
			if a == limiter.SlidingWindow {
				p.Buckets = 7
			}
			kinds[fmt.Sprintf("%v, %s", a, name)] = p
		}
	}
	for name, p := range kinds {
		p.Generation = 1
		kinds[name] = p
		if !p.Algorithm.WindowCoupled() {
			p.Lifetime = 30 * limiter.Millisecond
			kinds[name+", with a lifetime"] = p
		}
	}
	return kinds
}

// oneByOne takes one unit n times.
func oneByOne(p limiter.Params, s limiter.State, now limiter.Instant, c limiter.Command, n int64) (limiter.State, []limiter.Result) {
	var all []limiter.Result
	c.Min, c.Want = 1, 1
	for range n {
		var r limiter.Result
		s, r = p.Step(s, now, c)
		all = append(all, r)
	}
	return s, all
}

// inOne takes the units as groups do, and returns the answer to each request: those
// that are left over go again.
func inOne(p limiter.Params, s limiter.State, now limiter.Instant, c limiter.Command, n int64) (limiter.State, []limiter.Result) {
	var all []limiter.Result
	for n > 0 {
		c.Min, c.Want = 1, n
		var r limiter.Result
		s, r = p.Step(s, now, c)
		last, admitted := r, r.Granted
		if admitted == 0 {
			admitted = n
		}
		for i := range admitted {
			r := last
			r.Granted = min(last.Granted, 1)
			r.Remaining += last.Granted - min(last.Granted, i+1)
			all = append(all, r)
		}
		n -= admitted
	}
	return s, all
}

// common returns the result without what differs between the requests of a group and
// what only the last of them learns exactly: what was granted meanwhile.
func common(r limiter.Result) limiter.Result {
	if r.Granted > 0 {
		r.ResetAfter, r.Limit = 0, 0
		for i := range r.Windows.Slice() {
			r.Windows.Open[i].Granted = 0
		}
	}
	return r
}

func TestSharedTakeIsAsManyTakesOfOne(t *testing.T) {
	for name, p := range shareable() {
		t.Run(name, func(t *testing.T) {
			if err := p.Validate(); err != nil {
				t.Fatal(err)
			}
			for seed := range seeds.Of(uint64(10)) {
				compareTakes(t, p, rand.New(rand.NewPCG(seed, 0)), seed)
			}
		})
	}
}

// compareTakes lets time pass, takes and edits at random.
func compareTakes(t *testing.T, p limiter.Params, rng *rand.Rand, seed uint64) {
	var s limiter.State
	now := limiter.Instant(1_800_000_000_000_000)
	memory := limiter.Memory{Since: now.Add(-limiter.Micros(rng.Int64N(int64(3 * limiter.Second))))}
	for step := range 100 {
		now = now.Add(limiter.Micros(rng.Int64N(int64(300 * limiter.Millisecond))))
		c := limiter.Command{Tenant: []string{"a", "b", "c"}[rng.IntN(3)], Memory: memory}
		if rng.IntN(3) == 0 { // others lease for the first time in a window, and guide what one is granted
			lease := c
			lease.First, lease.Min, lease.Want = true, 1, 1+rng.Int64N(10)
			s, _ = p.Step(s, now, lease)
		}
		if rng.IntN(20) == 0 {
			p.Generation++
			p.Rates = append([]limiter.Rate(nil), p.Rates...)
			p.Rates[0].Limit += rng.Int64N(3)
		}
		n := 1 + rng.Int64N(30)
		each, want := oneByOne(p, s, now, c, n)
		all, got := inOne(p, s, now, c, n)
		if !each.Equal(all) {
			t.Fatalf("seed %d, step %d: %d units in one leave\n%+v, one by one\n%+v", seed, step, n, all, each)
		}
		for i := range want {
			if common(want[i]) != common(got[i]) || i == len(want)-1 && want[i] != got[i] {
				t.Fatalf("seed %d, step %d: request %d of %d (-one by one +in one):\n%s", seed, step, i, n, cmp.Diff(want[i], got[i]))
			}
		}
		s = all
	}
}

// slowStrict is a limiter whose store takes a while.
func slowStrict(t *testing.T, mode Mode, limit int64) (*Limiter, *fakeStore) {
	t.Helper()
	s := newFakeStore()
	s.there, s.back = constant(5*time.Millisecond), constant(5*time.Millisecond)
	cfg := perSecond(limit, 1)
	cfg.Mode = mode
	return open(t, cfg, s), s
}

// crowd asks n times at once for one unit each, and returns when all wait.
func crowd(t *testing.T, l *Limiter, n int, requests *sync.WaitGroup) []Decision {
	t.Helper()
	all := make([]Decision, n)
	for i := range n {
		requests.Go(func() { all[i] = acquire(t, l, "", 1) })
	}
	synctest.Wait()
	return all
}

// applied returns the commands that the store applied.
func applied(s *fakeStore) (commands []limiter.Command) {
	s.set(func() { commands = slices.Clone(s.commands) })
	return commands
}

func TestRequestsThatWaitShareACall(t *testing.T) {
	for name, mode := range map[string]Mode{"strict": Strict, "cached deny": CachedDeny} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l, s := slowStrict(t, mode, 10)
				var requests sync.WaitGroup
				all := crowd(t, l, 16, &requests)
				requests.Wait()
				allowed, left := 0, map[int64]bool{}
				for _, d := range all {
					switch {
					case d.Allowed:
						allowed++
						left[d.Remaining] = true
					case d.Reason != limiter.Exhausted || d.RetryAfter <= 0 || d.RetryAfter > time.Second || d.Remaining != 0:
						t.Errorf("refused with %+v", d)
					}
				}
				if allowed != 10 || len(left) != 10 || !left[0] || !left[9] {
					t.Errorf("admitted %d whose answers said that %v remain, want 10 with 0 to 9", allowed, left)
				}
				var wants, again int64
				commands := applied(s)
				for i, c := range commands {
					wants += c.Want
					if i >= 2 {
						again += c.Want
					}
				}
				leftOver := int64(6) // of the 15 that waited; the grant said nothing of the refusal
				if mode == CachedDeny {
					leftOver = 0 // the grant said that the window is used up
				}
				if wants != 16+leftOver || again != leftOver || len(commands) > 4 {
					t.Errorf("asked for %+v, want 1 unit, then 15, then %d together", commands, leftOver)
				}
				if got, want := l.Stats().RoundTrips, int64(len(commands)); got != want {
					t.Errorf("%d round trips counted, the store was called %d times", got, want)
				}
			})
		})
	}
}

func TestARequestThatCannotShareACallAsksForItself(t *testing.T) {
	leaky := limiter.Params{Algorithm: limiter.LeakyBucket, Generation: 1, MaxDelay: limiter.Second, Rates: []limiter.Rate{{Limit: 100, Window: limiter.Second}}}
	bucket := limiter.Params{Algorithm: limiter.TokenBucket, Generation: 1, Rates: []limiter.Rate{{Limit: 100, Window: limiter.Second}}}
	for name, c := range map[string]struct {
		params limiter.Params
		cost   int64
	}{
		"units that may come late": {bucket, 1},
		"a cost of 2":              {perSecond(100, 1).Params, 2},
		"a leaky bucket":           {leaky, 1},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newFakeStore()
				s.back = constant(time.Millisecond)
				cfg := perSecond(100, 1)
				cfg.Mode, cfg.Params = Strict, c.params
				l := open(t, cfg, s)
				var requests sync.WaitGroup
				for range 5 {
					requests.Go(func() { acquire(t, l, "", c.cost) })
				}
				requests.Wait()
				if got := s.count(limiter.Take); got != 5 {
					t.Errorf("%d calls for 5 requests", got)
				}
			})
		})
	}
}

// A request that gives up leaves nothing behind: before its call is made it is not
// asked for, and while it is in progress its unit goes back.
func TestRequestThatGivesUpIsChargedNothing(t *testing.T) {
	for name, c := range map[string]struct {
		after time.Duration
		want  int64 // that the group asks for
	}{
		"before the call":       {5 * time.Millisecond, 3},
		"while it is under way": {15 * time.Millisecond, 4},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l, s := slowStrict(t, Strict, 10)
				var requests sync.WaitGroup
				crowd(t, l, 4, &requests)
				ctx, cancel := context.WithTimeout(t.Context(), c.after)
				defer cancel()
				if _, err := l.Acquire(ctx, Request{Cost: 1}); !errors.Is(err, context.DeadlineExceeded) {
					t.Errorf("error is %v", err)
				}
				requests.Wait()
				time.Sleep(20 * time.Millisecond) // for the unit to go back
				if got := applied(s)[1].Want; got != c.want {
					t.Errorf("the group asked for %d, want %d", got, c.want)
				}
				if got := granted(s); got != 4 {
					t.Errorf("the store counts %d granted, want 4", got)
				}
			})
		})
	}
}

func TestRequestsThatShareACallCancelAndSettleAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, s := slowStrict(t, Strict, 10)
		var requests sync.WaitGroup
		all := crowd(t, l, 5, &requests)
		requests.Wait()
		all[3].Cancel()
		all[3].Cancel()
		if got := all[4].Settle(0); got != -1 {
			t.Errorf("settling 1 as 0 charged %d", got)
		}
		time.Sleep(20 * time.Millisecond)
		if got := granted(s); got != 3 {
			t.Errorf("the store counts %d granted, want 3", got)
		}
		all[2].Settle(3) // a debt, which the next request pays
		if d := acquire(t, l, "", 1); d.Paid != 2 || granted(s) != 6 {
			t.Errorf("paid %d, %d granted; want 2 and 6", d.Paid, granted(s))
		}
	})
}

func TestAnOutageOfASharedCallIsEverybodys(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, s := slowStrict(t, Strict, 10)
		var requests sync.WaitGroup
		all := crowd(t, l, 5, &requests)
		s.set(func() { s.down = errDown })
		requests.Wait()
		for i, d := range all {
			if d.Allowed || d.Source != FromFailureAction {
				t.Errorf("request %d: %v from %v", i, d.Allowed, d.Source)
			}
		}
	})
}

func TestAGroupMovesToTheNextStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, old := slowStrict(t, Strict, 10)
		var requests sync.WaitGroup
		crowd(t, l, 5, &requests)
		next := newFakeStore()
		l.Swap(l.settings.Load().Config, next)
		requests.Wait()
		if got := old.count(limiter.Take); got != 1 {
			t.Errorf("the old store was asked %d times, want once, before the other served", got)
		}
		if got := granted(next); got != 5 {
			t.Errorf("the next store counts %d granted, want 5", got)
		}
	})
}

func TestClosingRefusesAGroupThatWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newFakeStore()
		s.back = constant(10 * time.Millisecond)
		cfg := perSecond(10, 1)
		cfg.Mode = Strict
		l := mustNew(cfg, newBreaker(s, newClock()))
		var requests sync.WaitGroup
		all := crowd(t, l, 5, &requests)
		l.Close(t.Context())
		requests.Wait()
		allowed := 0
		for _, d := range all {
			if d.Allowed {
				allowed++
			}
		}
		if allowed != 1 || s.count(limiter.Take) != 1 {
			t.Errorf("%d admitted by %d calls after closing during the first", allowed, s.count(limiter.Take))
		}
	})
}

func TestNothingIsAdmittedByAGroupAfterItsWindow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, _ := slowStrict(t, Strict, 10)
		now := l.clock.now()
		g := &group{ok: true, decision: replyDecision{admits: 1, cost: 1}, deadline: now + 1}
		if d, ok := l.single.claim(g); !ok || !d.Allowed {
			t.Errorf("in time: decided %v, admitted %v", ok, d.Allowed)
		}
		g.decision.admits, g.deadline = 1, now
		if _, ok := l.single.claim(g); ok {
			t.Error("a request was admitted by a grant whose window may be over")
		}
	})
}
