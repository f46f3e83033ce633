package twotier

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weir-dev/weir/internal/testing/seeds"
	"github.com/weir-dev/weir/pkg/limiter"
)

func carryOver(limit, batch, low int64) Config {
	cfg := perSecond(limit, batch)
	cfg.Expiry, cfg.LowWater = CarryOver, low
	return cfg
}

func TestCreditsCarryOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newFakeStore()
		l := open(t, carryOver(10, 6, 0), s)
		acquire(t, l, "", 1)
		nextWindow()
		d := acquire(t, l, "", 5)
		if !d.Allowed || s.count(limiter.Take) != 1 || d.Windows.Open[0].Index != window(s) {
			t.Errorf("got %+v after %d calls, want an admission of the 5 in hand, in window %d", d, s.count(limiter.Take), window(s))
		}
		if got := 5 + admitted(t, l, 50); got != 15 {
			t.Errorf("admitted %d, want the limit and the 5 carried over", got)
		}
	})
}

func TestCarriedCreditsNeverExceedALeaseButOne(t *testing.T) {
	for name, tc := range map[string]struct{ batch, low, cost, want int64 }{
		"a batch":                       {batch: 6, cost: 1, want: 5},
		"a batch of 1":                  {batch: 1, cost: 1, want: 0},
		"what was left when it came":    {batch: 6, low: 3, cost: 1, want: 8},
		"not what many requests leased": {batch: 6, cost: 50, want: 5},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newFakeStore()
				l := open(t, carryOver(1000, tc.batch, tc.low), s)
				d := acquire(t, l, "", tc.cost)
				d.Cancel() // all of the lease is held
				for range 20 {
					acquire(t, l, "", 1)
					d.Cancel()
				}
				d = acquire(t, l, "", tc.cost)
				d.Cancel()
				synctest.Wait()
				for range 3 {
					nextWindow()
					s.set(func() { s.down = errDown })
					if got := l.carried(t); got > tc.want {
						t.Errorf("%d credits carried over, want at most %d", got, tc.want)
					}
				}
			})
		})
	}
}

// carried returns what the limiter would admit of the credits it carries over.
func (l *Limiter) carried(t *testing.T) int64 {
	t.Helper()
	k := l.single
	k.mu.Lock()
	defer k.mu.Unlock()
	k.promote(l.settings.Load(), l.clock.now(), 1)
	return k.lease.Load().held(l.clock.now())
}

// TestTheBoundOfCarryOverIsTight leaves all that may be left of a lease in every
// holder's balances, and spends it on top of a full window.
func TestTheBoundOfCarryOverIsTight(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newFakeStore()
		cfg := carryOver(80, 12, 0)
		cfg.Holders = 5
		var holders []*Limiter
		for range 5 {
			holders = append(holders, open(t, cfg, s))
		}
		for _, l := range holders {
			acquire(t, l, "", 1)
		}
		nextWindow()
		var total int64
		for _, l := range holders {
			total += admitted(t, l, 200)
		}
		if want := int64(80 + 5*11); total != want {
			t.Errorf("admitted %d, want %d", total, want)
		}
	})
}

// TestFleetCarriesOverNoMoreThanItSays counts by the store's clock.
func TestFleetCarriesOverNoMoreThanItSays(t *testing.T) {
	for _, low := range []int64{0, 4} {
		for seed := range seeds.Of(uint64(5)) {
			t.Run(fmt.Sprintf("lowWater=%d, seed=%d", low, seed), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					cfg := carryOver(80, 12, low)
					cfg.Holders, cfg.Timeout = 5, 500*time.Millisecond
					f := newFleet(t, seed, cfg)
					f.pulse = true
					f.run(16*time.Second, func(time.Duration) {})
					most, worst := 80+5*(11+low), int64(0)
					for at, w := range f.charges {
						worst = max(worst, w.leased)
						if w.leased > most {
							t.Errorf("admitted %d in window %v, want at most %d", w.leased, at, most)
						}
					}
					if worst <= 80 {
						t.Errorf("admitted at most %d in a window of 80: nothing was carried over", worst)
					}
				})
			})
		}
	}
}

func TestLeavingCarryOverDropsCredits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newFakeStore()
		l := open(t, carryOver(10, 6, 0), s)
		acquire(t, l, "", 1)
		nextWindow()
		acquire(t, l, "", 1) // 4 held
		cfg := perSecond(10, 6)
		cfg.Params.Generation = 2
		l.Reconfigure(cfg)
		if got := admitted(t, l, 50); got != 10 {
			t.Errorf("admitted %d, want the limit", got)
		}
	})
}

func TestCarriedCreditsAreNotGivenBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newFakeStore()
		l := mustNew(carryOver(10, 6, 0), newBreaker(s, newClock()))
		acquire(t, l, "", 1)
		nextWindow()
		acquire(t, l, "", 1) // 4 held, all charged to the last window
		acquire(t, l, "", 5) // takes them over, and 6 of this one
		l.Close(t.Context())
		if got := granted(s); got < 1 {
			t.Errorf("the store counts %d granted, want no less than was spent of its own", got)
		}
		if got := returned(s); got > 1 {
			t.Errorf("%d given back, want no more than this window was charged and did not spend", got)
		}
	})
}

func TestCarriedCreditsBringNoOldRefusalAlong(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newFakeStore()
		cfg := carryOver(10, 6, 0)
		cfg.Params.Rates = append(cfg.Params.Rates, limiter.Rate{Limit: 12, Window: 10 * limiter.Second})
		l := open(t, cfg, s)
		acquire(t, l, "", 1)
		nextWindow()
		acquire(t, l, "", 10) // took the rest of ten seconds, 1 held
		cfg.Params = limiter.Params{Generation: 2, Rates: []limiter.Rate{cfg.Params.Rates[0], {Limit: 100, Window: 10 * limiter.Second}}}
		l.Reconfigure(cfg)
		nextWindow()
		if got := admitted(t, l, 2); got != 2 {
			t.Errorf("admitted %d of 2, want both: the limit was raised", got)
		}
	})
}
