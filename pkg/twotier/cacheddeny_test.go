package twotier

import (
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weir-dev/weir/pkg/limiter"
)

func cachedDeny(limit int64) Config {
	cfg := perSecond(limit, 1)
	cfg.Mode = CachedDeny
	return cfg
}

func TestCachedDenyAsksOnceForEachThatIsAdmitted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newFakeStore()
		l := open(t, cachedDeny(10), s)
		for window := range 3 {
			calls := s.count(limiter.Take)
			if got := admitted(t, l, 100); got != 10 {
				t.Errorf("window %d: admitted %d, want 10", window, got)
			}
			if got := s.count(limiter.Take) - calls; got != 10 {
				t.Errorf("window %d: %d calls, want 10: the last one foretells the refusals", window, got)
			}
			nextWindow()
		}
	})
}

func TestCachedDenyRemembersForHowMuchAndHowLong(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newFakeStore()
		cfg := cachedDeny(10)
		cfg.Params.Rates = append(cfg.Params.Rates, limiter.Rate{Limit: 25, Window: 10 * limiter.Second})
		l := open(t, cfg, s)
		asks := func(cost int64, want, asked bool) {
			t.Helper()
			calls := s.count(limiter.Take)
			if d := acquire(t, l, "", cost); d.Allowed != want || d.Allowed == (d.RetryAfter > 0) {
				t.Errorf("cost %d: got %+v, want allowed %v", cost, d, want)
			}
			if got := s.count(limiter.Take) > calls; got != asked {
				t.Errorf("cost %d: asked %v, want %v", cost, got, asked)
			}
		}
		asks(8, true, true)
		asks(9, false, true)  // 2 left in this second
		asks(5, false, false) // refused for the same reason
		asks(2, true, true)   // but this fits
		asks(1, false, false) // and took the rest
		time.Sleep(1100 * time.Millisecond)
		asks(8, true, true) // 7 left in 10 s
		time.Sleep(time.Second)
		asks(10, false, true) // for the longer window
		time.Sleep(time.Second)
		asks(10, false, false)
		asks(7, true, true)
		asks(1, false, false)
		time.Sleep(5 * time.Second)
		asks(1, false, false)
		time.Sleep(2 * time.Second)
		asks(10, true, true)
	})
}

// TestReturnedUnitsAreNotRefused, whichever request learns first that the store has it back.
func TestReturnedUnitsAreNotRefused(t *testing.T) {
	for name, takeBack := range map[string]func(*Decision){
		"cancelled": func(d *Decision) { d.Cancel() },
		"settled":   func(d *Decision) { d.Settle(0) },
	} {
		for when, beside := range map[string]bool{"a moment later": false, "beside a call": true} {
			t.Run(name+", "+when, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					s := newFakeStore()
					cfg := hourly(10, 1)
					cfg.Mode = CachedDeny
					l := open(t, cfg, s)
					first := acquire(t, l, "", 9)
					if !beside {
						acquire(t, l, "", 1)
					}
					s.set(func() { s.back = constant(20 * time.Millisecond) })
					var refused sync.WaitGroup
					refused.Go(func() { acquire(t, l, "", 2) }) // decided before the store has the others back
					synctest.Wait()
					s.set(func() { s.back = constant(0) })
					takeBack(&first)
					refused.Wait()
					synctest.Wait()
					if d := acquire(t, l, "", 9); !d.Allowed {
						t.Errorf("refused what was taken back: %+v", d)
					}
				})
			})
		}
	}
}

// TestALargeCostDoesNotShutSmallOnesOut where small ones may be admitted sooner.
func TestALargeCostDoesNotShutSmallOnesOut(t *testing.T) {
	for name, change := range map[string]func(*limiter.Params){
		"a bucket, which fills bit by bit": func(p *limiter.Params) { p.Algorithm = limiter.TokenBucket },
		"a window that ends before the other": func(p *limiter.Params) {
			p.Rates = append(p.Rates, limiter.Rate{Limit: 45, Window: 60 * limiter.Second})
		},
		"another rate, where one is enough": func(p *limiter.Params) {
			p.Any = true
			p.Rates = append(p.Rates, limiter.Rate{Limit: 35, Window: 60 * limiter.Second})
		},
	} {
		for mode, m := range map[string]Mode{"leased": Leased, "cached deny": CachedDeny} {
			t.Run(name+", "+mode, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					s := newFakeStore()
					cfg := perSecond(30, 1)
					cfg.Mode = m
					change(&cfg.Params)
					l := open(t, cfg, s)
					acquire(t, l, "", 28)
					if d := acquire(t, l, "", 30); d.Allowed {
						t.Fatal("admitted 58 of 30")
					}
					time.Sleep(1100 * time.Millisecond)
					acquire(t, l, "", 14)
					acquire(t, l, "", 30)
					time.Sleep(300 * time.Millisecond)
					if d := acquire(t, l, "", 3); !d.Allowed {
						t.Errorf("cost 3 refused: %+v", d)
					}
				})
			})
		}
	}
}
