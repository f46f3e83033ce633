package joint_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weir-dev/weir/internal/testing/federationtest"
	"github.com/weir-dev/weir/internal/testing/seeds"
	"github.com/weir-dev/weir/pkg/federation"
	"github.com/weir-dev/weir/pkg/federation/joint"
	"github.com/weir-dev/weir/pkg/federation/keyed"
	"github.com/weir-dev/weir/pkg/federation/ledger"
	"github.com/weir-dev/weir/pkg/limiter"
	"github.com/weir-dev/weir/pkg/monotonic"
	"github.com/weir-dev/weir/pkg/store"
)

// A fleet is members that draw from the budgets of several rates.
type fleet struct {
	t      *testing.T
	hub    *federationtest.Hub
	lines  []*federationtest.Line
	draws  []joint.Draw
	params limiter.Params
	closes []func()

	mu       sync.Mutex
	admitted map[limiter.OpenWindow]map[string]int64 // by window, of the hub's clock, and value
	units    int64
	refused  int64
}

// newFleet returns one whose lines lose up to that part of messages, in percent.
func newFleet(t *testing.T, rng *rand.Rand, members, loss int, isKeyed bool, rates ...limiter.Rate) *fleet {
	f := &fleet{t: t, hub: federationtest.NewHub(time.Duration(rng.Int64N(int64(time.Hour))) - 30*time.Minute), admitted: map[limiter.OpenWindow]map[string]int64{}}
	f.params.Rates = rates
	var all []ledger.Member
	for i := range members {
		all = append(all, ledger.Member{Name: fmt.Sprint("m", i), Weight: 1, Borrowing: -1})
	}
	for _, m := range all {
		l := f.lossy(rand.New(rand.NewPCG(rng.Uint64(), 3)), rng.IntN(loss+1))
		draw := joint.Draw{Patience: 50 * time.Millisecond}
		clock := new(monotonic.Clock)
		for _, r := range rates {
			p := ledger.Params{Limit: r.Limit, Window: r.Window, Members: all}
			id := fmt.Sprint("budget", r.Window)
			if isKeyed {
				p.Strategy, p.Keys = ledger.FirstCome, 100
				k := keyed.New(keyed.Config{ID: id, Member: m.Name, Params: p, Patience: draw.Patience, Clock: clock}, l, nil)
				draw.Budgets, f.closes = append(draw.Budgets, k), append(f.closes, k.Close)
				continue
			}
			k := federation.New(federation.Config{ID: id, Member: m.Name, Params: p, Patience: draw.Patience, Clock: clock}, l, nil)
			draw.Budgets = append(draw.Budgets, k)
			f.closes = append(f.closes, func() {
				ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), time.Second)
				defer cancel()
				k.Close(ctx)
			})
		}
		f.lines, f.draws = append(f.lines, l), append(f.draws, draw)
	}
	return f
}

// lossy returns a line that delays messages and answers by up to 20 ms and loses some, in percent.
func (f *fleet) lossy(rng *rand.Rand, loss int) *federationtest.Line {
	l := federationtest.NewLine(f.hub, 0)
	l.There = func() time.Duration { return time.Duration(rng.Int64N(int64(20 * time.Millisecond))) }
	l.Back = l.There
	l.Lose = func() bool { return rng.IntN(100) < loss }
	return l
}

// pod leases up to most units from one member and admits what it was granted while it holds, a part of it at a time, or gives
// the rest back, until the end.
func (f *fleet) pod(member int, rng *rand.Rand, values int, most int64, until time.Time) {
	for time.Now().Before(until) {
		time.Sleep(time.Duration(rng.Int64N(int64(40 * time.Millisecond))))
		of := key
		of.Hash = ""
		if values > 0 {
			of.Hash = store.HashValue(fmt.Sprint("v", rng.IntN(values)))
		}
		want := 1 + rng.Int64N(most)
		sent := time.Now()
		res, err := f.draws[member].Apply(f.t.Context(), of, f.params, limiter.Command{Op: limiter.Take, Min: 1, Want: want})
		if err != nil || res.Granted == 0 {
			f.mu.Lock()
			f.refused++
			f.mu.Unlock()
			if err == nil && rng.IntN(2) == 0 {
				time.Sleep(min(time.Duration(res.RetryAfter)*time.Microsecond, 300*time.Millisecond))
			}
			continue
		}
		deadline := sent.Add(time.Duration(res.ExpiresIn) * time.Microsecond)
		for left := res.Granted; left > 0; {
			time.Sleep(time.Duration(rng.Int64N(int64(60 * time.Millisecond))))
			if !time.Now().Before(deadline) {
				break
			}
			if rng.IntN(6) == 0 {
				_, _ = f.draws[member].Apply(f.t.Context(), of, f.params, limiter.Command{Op: limiter.Return, Want: left, Windows: res.Windows, At: res.Now})
				break
			}
			n := 1 + rng.Int64N(left)
			left -= n
			f.admit(of.Hash, n)
		}
	}
}

// admit counts units in the windows that are open on the hub's clock.
func (f *fleet) admit(hash string, n int64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.units += n
	for _, r := range f.params.Rates {
		w := r.WindowAt(f.hub.Now())
		if f.admitted[w] == nil {
			f.admitted[w] = map[string]int64{}
		}
		if f.admitted[w][hash] += n; f.admitted[w][hash] > r.Limit {
			f.t.Errorf("%d units of %q are admitted in window %d of %+v", f.admitted[w][hash], hash, w.Index, r)
		}
	}
}

// TestNoRateIsExceededWhateverFails has members draw from two or three rates over lines that lose messages, cut
// members off, and let the hub die and come back with no memory. Δ is 0 of every rate and value.
func TestNoRateIsExceededWhateverFails(t *testing.T) {
	for seed := range seeds.Of(uint64(40)) {
		synctest.Test(t, func(t *testing.T) {
			rng := rand.New(rand.NewPCG(seed, 2))
			rates := []limiter.Rate{{Limit: 20 + rng.Int64N(40), Window: limiter.Second}, {Limit: 100 + rng.Int64N(100), Window: 10 * limiter.Second}, {Limit: 60 + rng.Int64N(40), Window: 3 * limiter.Second}}
			rates = rates[:2+rng.IntN(2)]
			rng.Shuffle(len(rates), func(i, j int) { rates[i], rates[j] = rates[j], rates[i] })
			values := int(seed%2) * 3
			f := newFleet(t, rng, 3, 14, values > 0, rates...)
			until := time.Now().Add(25 * time.Second)
			var pods sync.WaitGroup
			for m := range f.draws {
				for range 2 {
					own := rand.New(rand.NewPCG(rng.Uint64(), 4))
					pods.Go(func() { f.pod(m, own, values, 12, until) })
				}
			}
			pods.Go(func() {
				for time.Now().Before(until) {
					time.Sleep(time.Duration(rng.Int64N(int64(4 * time.Second))))
					switch rng.IntN(4) {
					case 0:
						f.hub.Stop()
						time.Sleep(time.Duration(rng.Int64N(int64(2 * time.Second))))
						f.hub.Restart(false)
					case 1:
						f.hub.Restart(false)
					default:
						l := f.lines[rng.IntN(len(f.lines))]
						l.SetCut(true)
						time.Sleep(time.Duration(rng.Int64N(int64(2 * time.Second))))
						l.SetCut(false)
					}
				}
			})
			pods.Wait()
			for _, end := range f.closes {
				end()
			}
			if f.units == 0 || f.refused == 0 {
				t.Errorf("seed %d: %d units were admitted and %d commands refused: this tests nothing", seed, f.units, f.refused)
			}
		})
	}
}

// TestRatesAreUsedUp when nothing fails: of the one that binds at least nine tenths.
func TestRatesAreUsedUp(t *testing.T) {
	for name, values := range map[string]int{"without a key": 0, "of a value": 1} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				rng := rand.New(rand.NewPCG(1, 5))
				second, long := limiter.Rate{Limit: 40, Window: limiter.Second}, limiter.Rate{Limit: 300, Window: 10 * limiter.Second}
				f := newFleet(t, rng, 3, 0, values > 0, long, second)
				const windows = 5
				until := time.Now().Add(windows * 10 * time.Second)
				var pods sync.WaitGroup
				for m := range f.draws {
					for range 4 {
						own := rand.New(rand.NewPCG(rng.Uint64(), 6))
						pods.Go(func() { f.pod(m, own, values, 1, until) })
					}
				}
				pods.Wait()
				for _, end := range f.closes {
					end()
				}
				if got, could := f.units, (windows-1)*long.Limit; float64(got) < 0.9*float64(could) {
					t.Errorf("%d units were admitted, want nine tenths of %d at least", got, could)
				}
			})
		})
	}
}
