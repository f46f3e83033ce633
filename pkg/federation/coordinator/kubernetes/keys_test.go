package kubernetes_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-dev/weir/internal/testing/suite"
	"github.com/weir-dev/weir/pkg/federation/coordinator/kubernetes"
	"github.com/weir-dev/weir/pkg/federation/keys"
	"github.com/weir-dev/weir/pkg/federation/ledger"
	"github.com/weir-dev/weir/pkg/limiter"
	"github.com/weir-dev/weir/pkg/store"
)

// asksFor returns a request for units of keys, given by number.
func asksFor(units int64, all ...int) keys.Request {
	r := keys.Request{Member: "a"}
	for _, k := range all {
		r.Asks = append(r.Asks, keys.KeyAsk{Hash: hashOf(k), Ask: keys.Ask{Min: 1, Want: units}})
	}
	return r
}

func hashOf(key int) string { return fmt.Sprint("k", key) }

func upTo(n int) (all []int) {
	for k := range n {
		all = append(all, k)
	}
	return all
}

// units returns what a reply granted.
func units(r keys.Reply) (sum int64) {
	for _, g := range r.Grants {
		sum += g.Units
	}
	return sum
}

// TestEveryKeyHasTheLimit asks for more than the limit of several keys.
func TestEveryKeyHasTheLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := params(10, 3)
		p.Keys = 3
		_, _, c := open(t, p)
		got := map[int]int64{}
		for range 12 {
			r, err := c.ApplyKeys(t.Context(), id, p, asksFor(4, 1, 2, 3))
			if err != nil || r.Reason != ledger.Granted || r.Limit != 10 || r.ExpiresIn <= 0 {
				t.Fatalf("%+v, %v", r, err)
			}
			if want := (keys.Room{Counters: 3}); r.Room != want {
				t.Fatalf("room %+v, want %+v", r.Room, want)
			}
			for i, g := range r.Grants {
				got[i+1] += g.Units
			}
		}
		if r, err := c.ApplyKeys(t.Context(), id, p, asksFor(1, 4)); err != nil || units(r) != 1 || r.Room != (keys.Room{Counters: 4, Full: true}) {
			t.Errorf("one key more than there is room for: %+v, %v", r, err)
		}
		if diff := cmp.Diff(map[int]int64{1: 10, 2: 10, 3: 10}, got); diff != "" {
			t.Error(diff)
		}
	})
}

// TestColdKeysCostOneWrite uses many keys once in a window.
func TestColdKeysCostOneWrite(t *testing.T) {
	for _, n := range []int{100, 10_000} {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				kept, now, c := open(t, params(100, 10))
				for range 3 { // windows
					before := kept.writes
					var got int64
					for from := 0; from < n; from += 100 {
						var some []int
						for k := range 100 {
							some = append(some, from+k)
						}
						r, err := c.ApplyKeys(t.Context(), id, params(100, 10), asksFor(1, some...))
						if err != nil {
							t.Fatal(err)
						}
						got += units(r)
					}
					c.Settle()
					if got != int64(n) {
						t.Fatalf("%d units of %d keys", got, n)
					}
					if writes := kept.writes - before; writes > 2 { // one takes the budget over
						t.Errorf("%d writes for %d keys", writes, n)
					}
					now.Advance(limiter.Second)
				}
			})
		})
	}
}

// TestWritesForKeysAreFew uses up the limit of many keys in one window, as fast as it can.
func TestWritesForKeysAreFew(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		kept, _, c := open(t, params(100, 10))
		began := time.Now()
		var got int64
		for got < 100*200 && time.Since(began) < time.Minute {
			r, err := c.ApplyKeys(t.Context(), id, params(100, 10), asksFor(20, upTo(200)...))
			if err != nil {
				t.Fatal(err)
			}
			got += units(r)
		}
		passed := time.Since(began)
		if got != 100*200 {
			t.Fatalf("%d units, want the limit of 200 keys", got)
		}
		if most := 3 + int(passed/(20*time.Millisecond)); kept.writes > most {
			t.Errorf("%d writes in %v, want at most %d", kept.writes, passed, most)
		}
		if passed > 250*time.Millisecond {
			t.Errorf("it took %v", passed)
		}
	})
}

// TestWritesASecond uses up keys in three windows of a second, with writes that take 5 ms.
func TestWritesASecond(t *testing.T) {
	for _, n := range []int{100, 10_000, 100_000} {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := params(10, 1)
				kept := newJournal()
				kept.trouble(func(ctx context.Context, op string) error {
					if op == "save" {
						time.Sleep(5 * time.Millisecond)
					}
					return nil
				})
				c := kubernetes.New(kubernetes.Options{Journal: kept, Births: kept, Clock: func() limiter.Instant { return limiter.Instant(time.Now().UnixMicro()) }})
				var all sync.WaitGroup
				ends := time.Now().Add(3 * time.Second)
				var mu sync.Mutex
				var got int64
				for from := range 8 {
					all.Go(func() {
						for at := from; time.Now().Before(ends); at += 8 {
							var some []int
							for k := range 500 {
								some = append(some, (at*500+k)%n)
							}
							r, err := c.ApplyKeys(t.Context(), id, p, asksFor(3, some...))
							if err != nil {
								t.Error(err)
								return
							}
							mu.Lock()
							got += units(r)
							mu.Unlock()
							time.Sleep(2 * time.Millisecond)
						}
					})
				}
				all.Wait()
				c.Settle()
				t.Logf("%d keys: %d units, %.1f writes a second", n, got, float64(kept.writes)/3)
				if kept.writes > 150 {
					t.Errorf("%d writes in 3 s, want at most 50 a second", kept.writes)
				}
			})
		})
	}
}

// TestTheNextLeaderTakesWhatWasSetAsideForGranted crashes, and hands over in order.
func TestTheNextLeaderTakesWhatWasSetAsideForGranted(t *testing.T) {
	for name, c := range map[string]struct {
		seals     bool
		cold, hot int64 // that the next leader grants
	}{
		"a crash costs a block": {false, 90, 70},
		"a hand-over nothing":   {true, 99, 75},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := params(100, 10)
				kept, now, first := open(t, p)
				take := func(c *kubernetes.Coordinator, key int, want int64) (got int64) {
					for range 30 {
						r, err := c.ApplyKeys(t.Context(), id, p, keys.Request{Member: "a", Asks: []keys.KeyAsk{
							{Hash: hashOf(key), Ask: keys.Ask{Min: 1, Want: min(want-got, 5)}},
						}})
						if err != nil {
							t.Fatal(err)
						}
						if got += units(r); got == want {
							break
						}
					}
					return got
				}
				take(first, 1, 1)
				take(first, 2, 25) // sets 30 aside
				first.Settle()
				if c.seals {
					first.Seal(t.Context())
				}
				next := kubernetes.New(kubernetes.Options{Journal: kept, Births: kept, Clock: now.Now})
				if cold, hot := take(next, 1, 1000), take(next, 2, 1000); cold != c.cold || hot != c.hot {
					t.Errorf("%d and %d units, want %d and %d", cold, hot, c.cold, c.hot)
				}
				next.Settle()
			})
		})
	}
}

// TestNoKeyIsGrantedAnything asks in the name of one that is not a member, and of a window that
// began before the memory did.
func TestNoKeyIsGrantedAnything(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		kept, now, c := open(t, params(10, 3))
		r, err := c.ApplyKeys(t.Context(), id, params(10, 3), keys.Request{Member: "x", Asks: asksFor(1, 1).Asks})
		if err != nil || r.Reason != ledger.Unknown || r.Grants != nil {
			t.Errorf("one that is not a member: %+v, %v", r, err)
		}
		c.Settle()
		kept.wipe() // of the window that is open nobody knows what was granted
		next := kubernetes.New(kubernetes.Options{Journal: kept, Births: kept, Clock: now.Now})
		if r, err = next.ApplyKeys(t.Context(), id, params(10, 3), asksFor(1, 1)); err != nil || r.Reason != ledger.Amnesia || r.RetryAfter != r.ExpiresIn || r.Grants != nil {
			t.Errorf("a window that is older than the memory: %+v, %v", r, err)
		}
		now.Advance(limiter.Second)
		if r, err = next.ApplyKeys(t.Context(), id, params(10, 3), asksFor(1, 1)); err != nil || units(r) != 1 {
			t.Errorf("the next window: %+v, %v", r, err)
		}
		now.Set(suite.Start)
		if r, err = next.ApplyKeys(t.Context(), id, params(10, 3), asksFor(1, 1)); err != nil || r.Reason != ledger.Behind || r.Grants != nil {
			t.Errorf("a clock that was set back: %+v, %v", r, err)
		}
		next.Settle()
	})
}

// TestSlicesAndUnitsWithoutAKeyCount has members keep slices, and then the key be taken away
// and given again within a window.
func TestSlicesAndUnitsWithoutAKeyCount(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := params(10, 10)
		p.Slices = true
		p.Members[0].Nominal, p.Members[0].Kept = 4, 4
		_, now, c := open(t, p)
		if r, err := c.ApplyKeys(t.Context(), id, p, asksFor(20, 1)); err != nil || units(r) != 6 {
			t.Errorf("%+v, %v, want 6 units beside a slice of 4", r, err)
		}
		h := newHolder(0)
		if _, err := h.lease(t.Context(), c, p, 1, 1); err == nil {
			t.Error("a unit without a key is granted in a window whose others are granted by key")
		}
		now.Advance(limiter.Second)
		if g, err := h.lease(t.Context(), c, p, 2, 2); err != nil || g.Granted != 2 {
			t.Fatalf("%+v, %v", g, err)
		}
		if r, err := c.ApplyKeys(t.Context(), id, p, asksFor(20, 1)); err != nil || units(r) != 4 {
			t.Errorf("%+v, %v, want 4 units beside a slice of 4 and 2 without a key", r, err)
		}
		c.Settle()
	})
}

// TestAWindowThatEndsWhileUnitsAreSetAside grants nothing of the next one in its name.
func TestAWindowThatEndsWhileUnitsAreSetAside(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := params(100, 10)
		kept, now, c := open(t, p)
		kept.trouble(func(_ context.Context, op string) error {
			if op == "save" {
				now.Advance(limiter.Second)
				kept.trouble(nil)
			}
			return nil
		})
		time.Sleep(time.Second) // no write has to wait for the one before
		before := int64(now.Now()) / int64(p.Window)
		r, err := c.ApplyKeys(t.Context(), id, p, asksFor(1, 1))
		if err != nil || r.Epoch.Index != before || units(r) != 0 || !r.Grants[0].Lacks {
			t.Errorf("%+v, %v, want nothing of window %d", r, err, before)
		}
		c.Settle()
	})
}

// TestAJournalThatIsAway is an error where nothing was granted, and no key waits for it that
// needs nothing of it.
func TestAJournalThatIsAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := params(100, 10)
		kept, _, c := open(t, p)
		if r, err := c.ApplyKeys(t.Context(), id, p, asksFor(10, 1)); err != nil || units(r) != 10 {
			t.Fatalf("%+v, %v", r, err)
		}
		c.Settle()
		kept.trouble(func(context.Context, string) error { return errors.New("away") })
		if r, err := c.ApplyKeys(t.Context(), id, p, asksFor(100, 1)); err != nil || units(r) != 10 {
			t.Fatalf("%+v, %v, want the 10 units that were set aside ahead of need", r, err)
		}
		_, err := c.ApplyKeys(t.Context(), id, p, asksFor(1, 1))
		if unavailable := (*store.UnavailableError)(nil); !errors.As(err, &unavailable) {
			t.Errorf("%v, want that the coordinator is not available", err)
		}
		r, err := c.ApplyKeys(t.Context(), id, p, asksFor(1, 1, 2))
		if err != nil || !r.Grants[0].Lacks || r.Grants[1].Units != 1 {
			t.Errorf("%+v, %v, want a unit of the key that has one set aside", r, err)
		}
		c.Settle()
	})
}

// TestCrashesWithKeys lets processes come and go that all believe to lead, with clocks that
// differ, crashes at any call of the journal, and answers of writes that are lost.
func TestCrashesWithKeys(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const limit, block, names = 60, 8, 12
		dice := seeded(t)
		p := params(limit, block)
		kept := newJournal()
		now, clocks, runs := suite.Start, make([]*suite.Clock, 3), make([]*process, 3)
		for i := range runs {
			clocks[i] = suite.NewClock(now)
			runs[i] = start(kept, clocks[i], 1<<30, false)
		}
		type place struct {
			key   string
			index int64
		}
		var mu sync.Mutex
		got := map[place]int64{}
		total := int64(0)
		for range 150 {
			kept.lose(dice.IntN(4) == 0)
			var all sync.WaitGroup
			for range 4 {
				own := rand.New(rand.NewPCG(dice.Uint64(), 0))
				all.Go(func() {
					for range 8 {
						run := runs[own.IntN(len(runs))]
						r := asksFor(1+own.Int64N(2*block), own.IntN(names), own.IntN(names), own.IntN(names))
						reply, err := run.ApplyKeys(t.Context(), id, p, r)
						if err != nil {
							continue
						}
						mu.Lock()
						for i, g := range reply.Grants {
							got[place{r.Asks[i].Hash, reply.Epoch.Index}] += g.Units
							total += g.Units
						}
						mu.Unlock()
					}
				})
			}
			all.Wait()
			now = now.Add(limiter.Micros(dice.Int64N(int64(limiter.Second / 2))))
			for i := range clocks {
				clocks[i].Set(now.Add(limiter.Micros(dice.Int64N(int64(200 * limiter.Millisecond)))))
				runs[i].Resume()
			}
			if gone := dice.IntN(len(runs)); dice.IntN(4) == 0 {
				runs[gone] = start(kept, clocks[gone], 1+dice.IntN(30), dice.IntN(2) == 0)
			}
		}
		for at, n := range got {
			if n > limit {
				t.Errorf("%d units of key %s in window %d", n, at.key, at.index)
			}
		}
		if total < 100*limit {
			t.Errorf("%d units were granted in all: the test tests little", total)
		}
		for _, run := range runs {
			run.Settle()
		}
	})
}
