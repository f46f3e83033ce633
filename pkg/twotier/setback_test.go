package twotier

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weir-dev/weir/internal/testing/seeds"
	"github.com/weir-dev/weir/pkg/limiter"
	"github.com/weir-dev/weir/pkg/store"
)

// A counted is what was admitted of one counter in one window of the store's.
type counted struct{ local, store int64 }

// A windowOf names one window of one counter.
type windowOf struct {
	counter string
	window  limiter.Micros
	index   int64
}

// Charges count what a limiter admits by the windows that it says.
type charges map[windowOf]counted

// admit has a request decided and counts it.
func (c charges) admit(t *testing.T, l *Limiter, value, tenant string) Decision {
	t.Helper()
	r := Request{Value: value, Cost: 1}
	if tenant != "" {
		r.Tenant = store.HashValue(tenant)
	}
	counter := value
	if k := l.Key(value, r.Tenant); k.isShared() {
		counter = k.value()
	}
	d, err := l.Acquire(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	if !d.Allowed || d.Windows == nil { // nil when the store's clock was never known
		return d
	}
	for _, w := range d.Windows.Slice() {
		at := windowOf{counter, w.Window, w.Index}
		n := c[at]
		if d.Source == FromLocalShare {
			n.local++
		} else {
			n.store++
		}
		c[at] = n
	}
	return d
}

// check fails when a window was charged at the store and locally, or locally twice.
func (c charges) check(t *testing.T, cfg Config) {
	t.Helper()
	for at, n := range c {
		for _, r := range cfg.Params.Rates {
			if share := r.Limit / cfg.Holders; r.Window == at.window && (n.local > share || n.local > 0 && n.store > 0) {
				t.Fatalf("window %d of %dms of counter %q: %d admitted on a share of %d, and %d by the store",
					at.index, at.window/limiter.Millisecond, at.counter, n.local, share, n.store)
			}
		}
	}
}

// TestAShareIsAdmittedOnceThoughTheStoresClockIsSetBack: the store is away while a share is
// admitted, comes back with its clock set back, and is away again or serves when its clock
// shows the window for the second time.
func TestAShareIsAdmittedOnceThoughTheStoresClockIsSetBack(t *testing.T) {
	for name, of := range map[string]struct {
		value, tenant string
		keys          int
	}{
		"one counter":               {"", "", 100},
		"a value":                   {"v", "", 100},
		"the values without room":   {store.Shared(0), "", 100},
		"a tenant":                  {"", "gold", 100},
		"a tenant of a value":       {"v", "gold", 100},
		"a tenant with little room": {"v", "gold", 1},
	} {
		for again, down := range map[string]error{"away again": errDown, "serving": nil} {
			for mode, m := range map[string]Mode{"leased": Leased, "cached deny": CachedDeny, "strict": Strict} {
				t.Run(fmt.Sprintf("%s, %s, %s", name, again, mode), func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) {
						s, sum := newFakeStore(), charges{}
						cfg := tenanted(of.keys)
						cfg.Mode, cfg.Holders = m, 5
						l := open(t, cfg, s)
						spend := func() (last Decision) {
							for range 30 {
								last = sum.admit(t, l, of.value, of.tenant)
							}
							return last
						}
						spend()
						s.set(func() { s.down = errDown })
						for range 5 {
							nextWindow()
							time.Sleep(20 * time.Millisecond)
							spend()
						}
						s.set(func() { s.down, s.ahead = nil, s.ahead-4*time.Second })
						time.Sleep(2 * maxRetry)
						spend() // and the store says what its clock shows
						s.set(func() { s.down = down })
						for range 20 {
							time.Sleep(250 * time.Millisecond)
							spend()
						}
						sum.check(t, cfg)
						s.set(func() { s.down = nil })
						time.Sleep(3 * time.Second)
						if d := spend(); d.Source == FromLocalShare {
							t.Errorf("decided by %v, want the store when its clock has caught up", d.Source)
						}
						sum.check(t, cfg)
					})
				})
			}
		}
	}
}

// TestSharesAreAdmittedOnceWhateverTheStoresClockShows lets a store and parts of it come and
// go while its clock is set, with more values than there is room for.
func TestSharesAreAdmittedOnceWhateverTheStoresClockShows(t *testing.T) {
	for name, mode := range map[string]Mode{"leased": Leased, "cached deny": CachedDeny, "strict": Strict} {
		t.Run(name, func(t *testing.T) {
			var local int64
			for seed := range seeds.Of(uint64(20)) {
				t.Run(fmt.Sprintf("seed=%d", seed), func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) {
						cfg := tenanted(3)
						cfg.Params.Rates = []limiter.Rate{{Limit: 20, Window: limiter.Second}, {Limit: 40, Window: 3 * limiter.Second}}
						cfg.Mode, cfg.Holders = mode, 2
						if seed%2 == 0 {
							cfg.Params.Fairness = limiter.Fairness{}
						} else {
							cfg.Params.Rates = cfg.Params.Rates[:1] // fairness splits one window
						}
						sum := setAtRandom(t, cfg, seed)
						sum.check(t, cfg)
						for _, n := range sum {
							local += n.local
						}
					})
				})
			}
			if local == 0 {
				t.Error("nothing was admitted alone: the test tests little")
			}
		})
	}
}

// setAtRandom returns what is admitted while a store goes through faults that follow from
// the seed.
func setAtRandom(t *testing.T, cfg Config, seed uint64) charges {
	rng, network := rand.New(rand.NewPCG(seed, 0)), rand.New(rand.NewPCG(seed, 1))
	s, sum := newPartly(), charges{}
	s.ahead = time.Hour
	s.there = func() time.Duration { return time.Duration(network.Int64N(int64(4 * time.Millisecond))) }
	s.back = s.there
	s.lost = func() bool { return network.IntN(50) == 0 }
	l := open(t, cfg, s)
	parts := []store.Part{cfg.Scope, half(true), half(false)}
	for begin := time.Now(); time.Since(begin) < 20*time.Second; {
		switch rng.IntN(80) {
		case 0, 1:
			s.setAway(rng.IntN(2) == 0, parts[rng.IntN(3)])
		case 2:
			s.set(func() { s.down = []error{nil, errDown}[rng.IntN(2)] })
		case 3:
			s.set(func() { s.ahead += time.Duration(rng.Int64N(int64(6*time.Second))) - 3*time.Second })
		}
		value, tenant := fmt.Sprint(rng.IntN(6)), ""
		if cfg.Params.Fairness.Default > 0 {
			tenant = fmt.Sprint(rng.IntN(2))
		}
		for range 1 + rng.IntN(8) {
			if d := sum.admit(t, l, value, tenant); !d.Allowed {
				break
			}
		}
		time.Sleep(time.Duration(rng.Int64N(int64(20 * time.Millisecond))))
	}
	return sum
}

// TestTheClockOfAnotherStoreIsNotCompared: requests admitted without one store are forgotten
// when another one serves, and say nothing of what that one's clock has shown.
func TestTheClockOfAnotherStoreIsNotCompared(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, next, c := newFakeStore(), newFakeStore(), newClock()
		s.ahead = time.Hour
		cfg := tenanted(100)
		l := openWith(t, cfg, s, c)
		acquire(t, l, "", 1)
		s.set(func() { s.down = errDown })
		nextWindow()
		time.Sleep(20 * time.Millisecond)
		if d := acquire(t, l, "", 1); d.Source != FromLocalShare {
			t.Fatalf("decided by %v, want the local share", d.Source)
		}
		breaker := newBreaker(next, c)
		if _, err := breaker.Apply(t.Context(), storeKey, cfg.Params, limiter.Command{Op: limiter.Peek, Min: 1, Want: 1}); err != nil {
			t.Fatal(err)
		}
		l.settings.Store(newSettings(l, cfg, breaker)) // as Swap does before it comes to the keys
		acquire(t, l, "", 1)
		nextWindow()
		if d := acquire(t, l, "", 1); !d.Allowed || d.Source == FromLocalShare {
			t.Errorf("allowed %v by %v, %v; want an admission from the store", d.Allowed, d.Source, d.Reason)
		}
	})
}
