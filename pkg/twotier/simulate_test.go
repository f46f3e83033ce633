package twotier

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weir-dev/weir/internal/testing/seeds"
	"github.com/weir-dev/weir/pkg/limiter"
)

// A fleet is several holders of one limit, each with a clock of its own that
// runs fast or slow, in front of one store behind a bad network.
type fleet struct {
	t      *testing.T
	rng    *rand.Rand
	store  *fakeStore
	cfg    Config
	limits []*Limiter
	pulse  bool // requests come in the first part of every second window, and few between

	mu      sync.Mutex
	charges map[charge]*tally // by the store's clock at the moment of admission
	spent   []spending        // in the order of that clock
}

// A spending is what was admitted at an instant of the store's clock.
type spending struct {
	at   limiter.Instant
	cost int64
}

type charge struct {
	length limiter.Micros
	index  int64
}

// A tally is what was admitted in one window.
type tally struct {
	leased  int64
	local   []int64 // by holder
	byStore []bool  // by holder
	both    bool    // some holder admitted from the store and alone
}

func newFleet(t *testing.T, seed uint64, cfg Config) *fleet {
	f := &fleet{
		t: t, rng: rand.New(rand.NewPCG(seed, 0)), store: newFakeStore(), cfg: cfg,
		charges: make(map[charge]*tally),
	}
	f.store.ahead = time.Duration(f.rng.Int64N(int64(time.Hour)))
	f.store.rate = 1 + f.ppm()
	delay := func() time.Duration {
		if f.rng.IntN(20) == 0 {
			return time.Duration(f.rng.Int64N(int64(400 * time.Millisecond)))
		}
		return time.Duration(f.rng.Int64N(int64(20 * time.Millisecond)))
	}
	f.store.there, f.store.back = delay, delay
	f.store.lost = func() bool { return f.rng.IntN(20) == 0 }
	return f
}

// ppm returns half the rate error that the design allows between two clocks.
func (f *fleet) ppm() float64 { return float64(f.rng.IntN(201)-100) / 1e6 }

// run lets the holders spend all they get for a time of length d, then closes
// them, and calls fault every 100 ms meanwhile.
func (f *fleet) run(d time.Duration, fault func(elapsed time.Duration)) {
	ctx, cancel := context.WithTimeout(f.t.Context(), d)
	defer cancel()
	const tick = 5 * time.Millisecond
	var clients, clocks sync.WaitGroup
	seed, skews := f.rng.Uint64(), make([]float64, f.cfg.Holders)
	for i := range skews {
		skews[i] = f.ppm()
	}
	for holder := range int(f.cfg.Holders) {
		c := newClock() // no watchdog, which would undo the skew
		skew := skews[holder]
		clocks.Go(func() {
			for every(ctx, tick) {
				c.Skip(time.Duration(skew * float64(tick)))
			}
		})
		l := mustNew(f.cfg, newBreaker(f.store, c))
		f.limits = append(f.limits, l)
		for client := range 4 {
			rng := rand.New(rand.NewPCG(seed, uint64(4*holder+client)))
			clients.Go(func() { f.spend(ctx, holder, l, rng) })
		}
	}
	begin := time.Now()
	for every(ctx, 100*time.Millisecond) {
		fault(time.Since(begin))
	}
	clients.Wait()
	for _, l := range f.limits {
		l.Close(context.WithoutCancel(ctx))
	}
	clocks.Wait()
}

func (f *fleet) spend(ctx context.Context, holder int, l *Limiter, rng *rand.Rand) {
	for every(ctx, time.Duration(rng.Int64N(int64(4*time.Millisecond)))) {
		if f.pulse && f.store.now()%limiter.Instant(2*limiter.Second) > limiter.Instant(400*limiter.Millisecond) && rng.IntN(200) > 0 {
			continue
		}
		cost := 1 + rng.Int64N(3)
		d, err := l.Acquire(ctx, Request{Value: "", Cost: cost})
		switch {
		case ctx.Err() != nil:
		case err != nil:
			f.t.Errorf("Acquire: %v", err)
		case d.Allowed && rng.IntN(10) == 0:
			d.Cancel()
		case d.Allowed:
			f.count(holder, d, cost)
		}
	}
}

func (f *fleet) count(holder int, d Decision, cost int64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	now := f.store.now()
	f.spent = append(f.spent, spending{now, cost})
	for _, r := range f.cfg.Params.Rates {
		at := charge{r.Window, r.WindowAt(now).Index}
		if f.charges[at] == nil {
			n := f.cfg.Holders
			f.charges[at] = &tally{local: make([]int64, n), byStore: make([]bool, n)}
		}
		w := f.charges[at]
		if d.Source == FromLocalShare {
			w.local[holder] += cost
		} else {
			w.leased += cost
			w.byStore[holder] = true
		}
		w.both = w.both || w.byStore[holder] && w.local[holder] > 0
	}
	if d.Source == FromLocalShare || f.cfg.Expiry == CarryOver || !f.cfg.Params.Algorithm.WindowCoupled() {
		return // the windows are estimates, or those of the grant
	}
	for _, w := range d.Windows.Slice() {
		if got := w.WindowAt(now).Index; got != w.Index {
			f.t.Errorf("charged to window %d of %dms in window %d", w.Index, w.Window/limiter.Millisecond, got)
		}
	}
}

func every(ctx context.Context, d time.Duration) bool {
	select {
	case <-time.After(d):
		return ctx.Err() == nil
	case <-ctx.Done():
		return false
	}
}

func fleetConfig(mode Mode) Config {
	cfg := perSecond(301, 17)
	cfg.Params.Rates = []limiter.Rate{
		{Limit: 97, Window: 200 * limiter.Millisecond},
		{Limit: 301, Window: limiter.Second},
	}
	cfg.Mode, cfg.Holders, cfg.Timeout = mode, 5, 500*time.Millisecond
	return cfg
}

// TestFleetAdmitsAtMostTheLimit counts by the store's clock, at the moment each
// request is let through, whatever windows it was charged to.
func TestFleetAdmitsAtMostTheLimit(t *testing.T) {
	for name, mode := range map[string]Mode{"leased": Leased, "strict": Strict} {
		for seed := range seeds.Of(uint64(5)) {
			t.Run(fmt.Sprintf("%s, seed=%d", name, seed), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					f := newFleet(t, seed, fleetConfig(mode))
					f.run(6*time.Second, func(time.Duration) {})
					var total int64
					for at, w := range f.charges {
						if limit := f.limit(at); w.leased > limit {
							t.Errorf("admitted %d of %d in window %v", w.leased, limit, at)
						}
						if at.length == limiter.Second {
							total += w.leased
						}
					}
					if total < 6*301/3 {
						t.Errorf("admitted %d in 6 s of 301 a second: the test tests little", total)
					}
				})
			})
		}
	}
}

// TestFleetOnLocalShares takes the store away and brings it back.
func TestFleetOnLocalShares(t *testing.T) {
	for name, mode := range map[string]Mode{"leased": Leased, "strict": Strict} {
		for seed := range seeds.Of(uint64(5)) {
			t.Run(fmt.Sprintf("%s, seed=%d", name, seed), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					cfg := fleetConfig(mode)
					cfg.OnUnavailable = LocalShare
					f := newFleet(t, seed, cfg)
					f.store.down = errDown // at first, so that shares begin blind
					f.run(14*time.Second, func(elapsed time.Duration) {
						f.store.set(func() {
							f.store.down = nil
							if elapsed%(7*time.Second) < 3*time.Second {
								f.store.down = errDown
							}
						})
					})
					f.checkShares()
				})
			})
		}
	}
}

func (f *fleet) checkShares() {
	f.t.Helper()
	var leased, local int64
	for at, w := range f.charges {
		limit := f.limit(at)
		leased += w.leased
		if w.leased > limit {
			f.t.Errorf("admitted %d of %d from the store in window %v", w.leased, limit, at)
		}
		if w.both {
			f.t.Errorf("a holder admitted from the store and alone in window %v", at)
		}
		for holder, n := range w.local {
			local += n
			if share := limit / f.cfg.Holders; n > share {
				f.t.Errorf("holder %d admitted %d on a share of %d in window %v", holder, n, share, at)
			}
		}
	}
	if leased < 1000 || local < 300 {
		f.t.Errorf("admitted %d from the store and %d alone: the test tests little", leased, local)
	}
}

func (f *fleet) limit(at charge) int64 {
	for _, r := range f.cfg.Params.Rates {
		if r.Window == at.length {
			return r.Limit
		}
	}
	return 0
}
