package twotier

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weir-dev/weir/pkg/limiter"
)

// TestLocalSharesKeepThePromiseOfEveryInterval cuts off a whole fleet, each holder
// with a clock of its own and some that never knew the store's, and lets a client
// that spends all it can at the worst moments find an interval with too much. What
// the store granted before counts, too.
func TestLocalSharesKeepThePromiseOfEveryInterval(t *testing.T) {
	for _, a := range []limiter.Algorithm{limiter.SlidingWindow, limiter.TokenBucket, limiter.GCRA} {
		for burst := range 2 {
			for seed := range uint64(4) {
				t.Run(fmt.Sprintf("%v, burst=%d, seed=%d", a, burst, seed), func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) {
						cfg := byTime(a, Leased)
						cfg.OnUnavailable, cfg.Holders, cfg.LowWater = LocalShare, 3, 0
						if a != limiter.SlidingWindow {
							cfg.Params.Rates[0].Burst = []int64{60, 300}[burst]
						}
						spent := cutOff(t, cfg, rand.New(rand.NewPCG(seed, 0)))
						if over := excess(cfg.Params, spent); over > 0 {
							t.Errorf("admitted %d too many in some interval", over)
						}
					})
				})
			}
		}
	}
}

// cutOff lets a fleet lease for two seconds and then spend on its local shares for
// six, and returns what was admitted.
func cutOff(t *testing.T, cfg Config, rng *rand.Rand) []spending {
	s := newFakeStore()
	s.ahead = time.Duration(rng.Int64N(int64(time.Hour)))
	var holders []*Limiter
	for range cfg.Holders {
		holders = append(holders, open(t, cfg, s))
	}
	var spent []spending
	spend := func(l *Limiter) (local int64) {
		for range 40 {
			d := acquire(t, l, "", 1)
			if !d.Allowed {
				break
			}
			spent = append(spent, spending{s.now(), 1})
			if d.Source == FromLocalShare {
				local++
			}
		}
		return local
	}
	var local int64
	for begin := time.Now(); time.Since(begin) < 8*time.Second; {
		if time.Since(begin) > 2*time.Second {
			s.set(func() { s.down = errDown })
		}
		// Bursts come at the end of a window and at the begin of the next.
		left := 500*time.Millisecond - time.Duration(int64(s.now())%500_000)*time.Microsecond
		switch rng.IntN(3) {
		case 0:
			time.Sleep(left - time.Duration(1+rng.IntN(3))*time.Millisecond)
		case 1:
			time.Sleep(left + time.Duration(rng.IntN(3))*time.Millisecond)
		default:
			time.Sleep(time.Duration(rng.Int64N(int64(100 * time.Millisecond))))
		}
		for _, l := range holders {
			local += spend(l)
		}
	}
	if local == 0 {
		t.Error("nothing was admitted alone: the test tests little")
	}
	return spent
}

func TestLocalShareWithoutWindowsWaitsForWhatTheStoreGranted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newFakeStore()
		cfg := perSecond(100, 10)
		cfg.Params.Algorithm, cfg.Params.Lifetime = limiter.TokenBucket, 100*limiter.Millisecond
		cfg.OnUnavailable, cfg.Holders = LocalShare, 5
		l := open(t, cfg, s)
		acquire(t, l, "", 10)
		s.set(func() { s.down = errDown })
		nextWindow() // 1.002
		if got := admitted(t, l, 30); got != 0 {
			t.Errorf("admitted %d one window after the store granted, want none: a window has to pass", got)
		}
		nextWindow() // 2.004
		d := acquire(t, l, "", 1)
		if !d.Allowed || d.LocalShare != 10 {
			t.Errorf("got %+v, want an admission of half a share, 10", d)
		}
		if got := admitted(t, l, 30); got != 9 {
			t.Errorf("admitted %d more, want 9", got)
		}
	})
}

// TestLocalShareKeepsToTheWindowsOfTheRate with windows that do not begin at
// multiples of their length.
func TestLocalShareKeepsToTheWindowsOfTheRate(t *testing.T) {
	at := func(s string) time.Time {
		instant, err := time.Parse(time.RFC3339, s)
		if err != nil {
			t.Fatal(err)
		}
		return instant
	}
	for name, tc := range map[string]struct {
		rate                limiter.Rate
		begin, before, next string // the store is lost at begin
	}{
		"a day that begins at six": {
			limiter.Rate{Limit: 100, Window: limiter.Day, Offset: -6 * 3600 * limiter.Second},
			"2000-01-02T20:00:00Z", "2000-01-03T05:59:50Z", "2000-01-03T06:00:10Z",
		},
		"a month": {
			limiter.Rate{Limit: 100, Window: limiter.MaxWindow, Monthly: true},
			"2000-02-29T20:00:00Z", "2000-02-29T23:59:00Z", "2000-03-01T00:01:00Z",
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				until := func(s string) { time.Sleep(time.Until(at(s))) }
				s := newFakeStore()
				cfg := perSecond(100, 10)
				cfg.Params.Rates[0] = tc.rate
				cfg.OnUnavailable, cfg.Holders = LocalShare, 5
				l := openWith(t, cfg, s, newClock())
				until(tc.begin)
				admitted(t, l, 10)
				s.set(func() { s.down = errDown })
				until(tc.before)
				if got := admitted(t, l, 30); got != 0 {
					t.Errorf("admitted %d in the window that the store had begun", got)
				}
				until(tc.next)
				d := acquire(t, l, "", 1)
				if want := tc.rate.WindowAt(s.now()); !d.Allowed || d.Windows.Open[0] != want {
					t.Errorf("got %+v, want an admission in window %+v", d, want)
				}
				if got := admitted(t, l, 30); got != 19 {
					t.Errorf("admitted %d more on a share of 20, want 19", got)
				}
				s.set(func() { s.down = nil })
				time.Sleep(time.Hour)
				if got := admitted(t, l, 30); got != 0 {
					t.Errorf("admitted %d more in a window that began on the local share", got)
				}
			})
		})
	}
}

func TestALeakyBucketIsPacedWithoutTheStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newFakeStore()
		s.down = errDown
		cfg := perSecond(100, 1)
		cfg.Params.Algorithm, cfg.Params.MaxDelay = limiter.LeakyBucket, 500*limiter.Millisecond
		cfg.OnUnavailable, cfg.Holders = LocalShare, 5
		l := open(t, cfg, s)
		for i := range 5 {
			d := acquire(t, l, "", 1)
			if want := time.Duration(i) * 100 * time.Millisecond; !d.Allowed || d.Delay != want {
				t.Errorf("request %d: allowed %v after %v, want after %v: a tenth of the rate", i, d.Allowed, d.Delay, want)
			}
		}
		if d := acquire(t, l, "", 1); d.Allowed {
			t.Error("admitted more than half of a fifth of what may wait")
		}
	})
}

func TestOneRateThatAdmitsIsEnoughWithoutTheStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newFakeStore()
		cfg := perSecond(100, 1)
		cfg.Params.Any = true
		cfg.Params.Rates = append(cfg.Params.Rates, limiter.Rate{Limit: 400, Window: 10 * limiter.Second})
		cfg.OnUnavailable, cfg.Holders = LocalShare, 5
		l := open(t, cfg, s)
		acquire(t, l, "", 1)
		s.set(func() { s.down = errDown })
		time.Sleep(10 * time.Second)
		for second, want := range []int64{80, 20, 20} {
			nextWindow()
			time.Sleep(10 * time.Millisecond) // the store's clock may be as far off by now
			if got := admitted(t, l, 100); got != want {
				t.Errorf("second %d: admitted %d, want %d: a fifth of 400 in 10 s, then of 100 in each", second, got, want)
			}
		}
	})
}
