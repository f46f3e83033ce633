package twotier

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weir-dev/weir/pkg/limiter"
)

// atOnce calls f for each of n callers at once and returns the longest that one took.
func atOnce(n int, f func(i int)) time.Duration {
	var wait sync.WaitGroup
	var mu sync.Mutex
	var longest time.Duration
	for i := range n {
		wait.Go(func() {
			before := time.Now()
			f(i)
			mu.Lock()
			defer mu.Unlock()
			longest = max(longest, time.Since(before))
		})
	}
	wait.Wait()
	return longest
}

// TestALostReplyIsNotAnOutage: the request is answered all the same, and nobody else notices.
// A lease that is lost costs the request that asked for it, whose patience ends with its
// time-out, and the next one: a request comes each millisecond.
func TestALostReplyIsNotAnOutage(t *testing.T) {
	for name, tc := range map[string]struct {
		mode Mode
		most int64 // requests that the store does not decide
	}{"strict": {Strict, 0}, "cached deny": {CachedDeny, 0}, "leased": {Leased, 2}} {
		for _, lost := range []int{2, 50} {
			t.Run(fmt.Sprintf("%s, reply %d", name, lost), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					s := newFakeStore()
					s.there = constant(500 * time.Microsecond)
					cfg := perSecond(100_000, 5)
					cfg.Mode, cfg.OnUnavailable, cfg.Holders = tc.mode, LocalShare, 10
					l := open(t, cfg, s)
					n := 0
					s.lost = func() bool { n++; return n == lost }
					var others atomic.Int64
					atOnce(600, func(i int) {
						time.Sleep(time.Duration(i) * time.Millisecond)
						before := time.Now()
						if d := acquire(t, l, "", 1); !d.Allowed || d.Source == FromLocalShare {
							others.Add(1)
						}
						if took := time.Since(before); took > DefaultTimeout {
							t.Errorf("request %d took %v", i, took)
						}
					})
					if got := others.Load(); got > tc.most {
						t.Errorf("%d requests were not decided by the store, want at most %d", got, tc.most)
					}
					if st := l.Stats(); st.Errors != 1 || st.CutOff != nil {
						t.Errorf("%d errors, cut off by %v, want the one lost reply", st.Errors, st.CutOff)
					}
				})
			})
		}
	}
}

// TestAHiccupOfTheStoreIsOneFailure: the replies of many calls get lost together.
func TestAHiccupOfTheStoreIsOneFailure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newFakeStore()
		s.there = constant(time.Millisecond)
		cfg := perSecond(1000, 10)
		cfg.Mode = Strict
		l := open(t, cfg, s)
		acquire(t, l, "", 1)
		hiccup := time.Now().Add(20 * time.Millisecond)
		s.set(func() { s.lost = func() bool { return time.Now().Before(hiccup) } })
		atOnce(100, func(i int) {
			time.Sleep(time.Duration(i) * 100 * time.Microsecond)
			if d := acquire(t, l, fmt.Sprint(i), 1); !d.Allowed {
				t.Errorf("request %d refused: %+v", i, d)
			}
		})
		if st := l.Stats(); st.CutOff != nil || st.Errors != 100 {
			t.Errorf("%d errors, cut off by %v, want 100 lost replies and no outage", st.Errors, st.CutOff)
		}
	})
}

// TestADeadStoreIsWaitedForOnce states how long a store that dies keeps requests waiting,
// in all and each.
func TestADeadStoreIsWaitedForOnce(t *testing.T) {
	for name, tc := range map[string]struct {
		takes time.Duration // to reply while it lives
		most  time.Duration // until nothing waits any more
		calls int64         // for one key, until the breaker is open
	}{
		"never answered":        {0, DefaultTimeout, 1},
		"answered fast":         {2 * time.Millisecond, DefaultTimeout, 2},
		"answered just so fast": {DefaultTimeout / 4, DefaultTimeout, 2},
		"answered slowly":       {DefaultTimeout/4 + time.Millisecond, 2 * DefaultTimeout, 2},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newFakeStore()
				s.there = constant(tc.takes)
				cfg := perSecond(1000, 10)
				cfg.Mode = Strict
				l := open(t, cfg, s)
				if tc.takes > 0 {
					acquire(t, l, "", 1)
				}
				s.set(func() { s.lost = func() bool { return true } })
				before, calls := time.Now(), l.Stats().RoundTrips
				for range 1000 {
					acquire(t, l, "", 1)
				}
				if took := time.Since(before); took > tc.most {
					t.Errorf("1000 requests took %v in all, want at most %v", took, tc.most)
				}
				if got := l.Stats().RoundTrips - calls; got != tc.calls {
					t.Errorf("%d calls, want %d", got, tc.calls)
				}
			})
		})
	}
}

func TestADeadStoreKeepsNobodyOfACrowdLonger(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newFakeStore()
		s.there = constant(time.Millisecond)
		cfg := perSecond(1000, 10)
		cfg.Mode, cfg.MaxKeys = Strict, 1000
		l := open(t, cfg, s)
		acquire(t, l, "", 1)
		s.set(func() { s.lost = func() bool { return true } })
		calls := l.Stats().RoundTrips
		longest := atOnce(500, func(i int) { acquire(t, l, fmt.Sprint(i), 1) })
		if longest > DefaultTimeout {
			t.Errorf("a request took %v, want at most one time-out of %v", longest, DefaultTimeout)
		}
		if got := l.Stats().RoundTrips - calls; got > 2*500 {
			t.Errorf("%d calls for 500 keys, want at most two each", got)
		}
		before := time.Now()
		if acquire(t, l, "late", 1); time.Since(before) > 0 || l.Stats().CutOff == nil {
			t.Errorf("the next request waited %v, want the breaker to be open", time.Since(before))
		}
	})
}

// TestASlowStoreIsNotAskedTwice: half of the time-out would not be enough for it.
func TestASlowStoreIsNotAskedTwice(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newFakeStore()
		s.back = constant(70 * time.Millisecond)
		cfg := perSecond(1000, 1)
		cfg.Mode = Strict
		l := open(t, cfg, s)
		if got := admitted(t, l, 10); got != 10 {
			t.Errorf("admitted %d of 10", got)
		}
		if got := granted(s); got > 10 {
			t.Errorf("the store counts %d granted, want no more than were admitted", got)
		}
	})
}

// TestACommandThatWouldCountTwiceIsSentOnce: a return that was applied although its answer got lost
// would be credited again.
func TestACommandThatWouldCountTwiceIsSentOnce(t *testing.T) {
	twice := map[limiter.Op]int64{limiter.Take: 2, limiter.Peek: 2, limiter.Return: 1, limiter.Reset: 1}
	once := map[limiter.Op]int64{limiter.Take: 1, limiter.Peek: 1, limiter.Return: 1, limiter.Reset: 1}
	for name, tc := range map[string]struct {
		fail  func(*fakeStore)
		spare bool
		want  map[limiter.Op]int64
	}{
		"no reply":            {func(s *fakeStore) { s.lost = func() bool { return true } }, true, twice},
		"no reply to a lease": {func(s *fakeStore) { s.lost = func() bool { return true } }, false, once},
		"at once":             {func(s *fakeStore) { s.down = errDown }, false, twice},
		"a defect":            {func(s *fakeStore) { s.down = errors.New("wrong type of reply") }, true, once},
		"an answer":           {func(*fakeStore) {}, true, once},
	} {
		for op, want := range tc.want {
			t.Run(fmt.Sprintf("op %d, %s", op, name), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					s := newFakeStore()
					b := newBreaker(s, newClock())
					ask := func(op limiter.Op) callResult {
						r, _ := b.ask(t.Context(), storeKey, perSecond(10, 1).Params, limiter.Command{Op: op, Min: 1, Want: 1}, time.Second, tc.spare)
						return r
					}
					ask(limiter.Take)
					s.set(func() { tc.fail(s) })
					if r := ask(op); r.calls != want {
						t.Errorf("sent %d times, want %d", r.calls, want)
					}
				})
			})
		}
	}
}
