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

// tenanted is a limit of 100 a second that its tenants share, for one holder, which has
// the whole of it as its local share.
func tenanted(maxKeys int) Config {
	cfg := perSecond(100, 10)
	cfg.OnUnavailable, cfg.Holders, cfg.MaxKeys = LocalShare, 1, maxKeys
	cfg.Params.Fairness = limiter.Fairness{Default: 1}
	return cfg
}

// ask has n requests of a value's tenant decided and returns how many were admitted.
func ask(t *testing.T, l *Limiter, value, tenant string, n int) (admitted int) {
	t.Helper()
	for range n {
		d, err := l.Acquire(t.Context(), Request{Value: value, Tenant: store.HashValue(tenant), Cost: 1})
		if err != nil {
			t.Fatal(err)
		}
		if d.Allowed {
			admitted++
		}
	}
	return admitted
}

// The store goes away before a window begins and comes back within it. However little
// room there is, the window ends on the local share that it began on.
func TestTenantsAreChargedAtTheirShareOrAtTheStore(t *testing.T) {
	for _, value := range []string{"", "v"} {
		for _, room := range []int{1, 2, 100} {
			t.Run(fmt.Sprintf("%q, room for %d", value, room), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					s := newFakeStore()
					l := open(t, tenanted(room), s)
					ask(t, l, value, "gold", 30)
					s.set(func() { s.down = errDown })
					nextWindow()
					time.Sleep(50 * time.Millisecond)
					if got := ask(t, l, value, "gold", 300); got != 100 {
						t.Errorf("admitted %d on the local share, want 100", got)
					}
					s.set(func() { s.down = nil })
					time.Sleep(400 * time.Millisecond)
					if got := ask(t, l, value, "gold", 300); got != 0 {
						t.Errorf("admitted %d more in the window that began on the local share", got)
					}
					nextWindow()
					if got := ask(t, l, value, "gold", 300); got != 100 {
						t.Errorf("admitted %d in the next window, want 100", got)
					}
				})
			})
		}
	}
}

// A flood of made-up values while the store is away gets no more counters than there is
// room for pairs, and one for each of their values.
func TestAFloodOfTenantsAloneKeepsToTheRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newFakeStore()
		s.down = errDown
		const room = 10
		l := open(t, tenanted(room), s)
		for i := range 1000 {
			ask(t, l, fmt.Sprint(i), "gold", 1)
		}
		if got := l.Stats().ActiveKeys; got > 2*room {
			t.Errorf("%d counters, with room for %d pairs", got, room)
		}
	})
}

// Pairs that come and go while the store does, too, are admitted no more of their value
// than the limit in any window, and no more counters are kept than there is room for,
// one for each value beside.
func TestTenantsKeepToTheLimitInEveryWindow(t *testing.T) {
	const room = 2
	for seed := range uint64(20) {
		t.Run(fmt.Sprint("seed=", seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s, rng := newFakeStore(), rand.New(rand.NewPCG(seed, 0))
				l := open(t, tenanted(room), s)
				sum, local := map[string]int{}, 0
				window := limiter.Instant(0)
				for range 4000 {
					if rng.IntN(50) == 0 {
						s.set(func() { s.down = []error{nil, errDown}[rng.IntN(2)] })
					}
					time.Sleep(time.Duration(rng.Int64N(int64(4 * time.Millisecond))))
					if now := s.now() / limiter.Instant(limiter.Second); now != window {
						window, sum = now, map[string]int{}
					}
					value, tenant := fmt.Sprint(rng.IntN(3)), fmt.Sprint(rng.IntN(3))
					r := Request{Value: value, Tenant: store.HashValue(tenant), Cost: 1 + rng.Int64N(3)}
					pair := !l.Key(value, r.Tenant).isShared()
					d, err := l.Acquire(t.Context(), r)
					if err != nil {
						t.Fatal(err)
					}
					if d.Allowed && pair {
						if sum[value] += int(r.Cost); sum[value] > 100 {
							t.Fatalf("admitted %d of 100 to value %s in one window", sum[value], value)
						}
					}
					if d.Allowed && d.Source == FromLocalShare {
						local++
					}
					if got := l.Stats().ActiveKeys; got > 2*room {
						t.Fatalf("%d counters, with room for %d and as many values", got, room)
					}
				}
				if local == 0 {
					t.Error("nothing was admitted alone: the test tests little")
				}
			})
		})
	}
}
