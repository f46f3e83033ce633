package twotier

import (
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weir-dev/weir/pkg/store"
)

func TestEachValueHasItsOwnCounter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newFakeStore()
		l := open(t, perSecond(10, 5), s)
		for _, value := range []string{"", "a", "b"} {
			var sum int
			for range 20 {
				if acquire(t, l, value, 1).Allowed {
					sum++
				}
			}
			if sum != 10 {
				t.Errorf("%q: admitted %d, want 10", value, sum)
			}
		}
		want := []string{"", store.HashValue("a"), store.HashValue("b")}
		for _, hash := range want {
			key := store.Key{Scope: l.settings.Load().Scope, Hash: hash}
			if _, ok := s.keys[key]; !ok {
				t.Errorf("no counter %q at the store", key)
			}
		}
		if got := l.Stats().ActiveKeys; got != 2 {
			t.Errorf("%d active keys, want 2", got)
		}
	})
}

func TestValuesBeyondMaxKeysShareOneCounter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newFakeStore()
		cfg := perSecond(10, 5)
		cfg.MaxKeys = 3
		l := open(t, cfg, s)
		var sum int
		for i := range 1000 {
			if acquire(t, l, fmt.Sprint(i), 1).Allowed {
				sum++
			}
		}
		if want := 3 + 10; sum != want {
			t.Errorf("1000 made-up values were admitted %d times, want %d", sum, want)
		}
		if got := len(s.keys); got != 4 {
			t.Errorf("%d counters at the store, want 4", got)
		}
	})
}

// TestInventedValuesDoNotShutOutOthers: a client fills the table and goes on. Others that
// come then lose what it drains of the counters that they share with it, and no more.
func TestInventedValuesDoNotShutOutOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const limit, invented, honest = 100, 100_000, 50
		cfg := hourly(limit, 5)
		cfg.MaxKeys, cfg.SharedKeys = 16_000, 2000
		fleet, s := []*Limiter{}, newFakeStore()
		for range 3 {
			fleet = append(fleet, open(t, cfg, s))
		}
		var taken int64
		for i := range invented {
			if acquire(t, fleet[i%len(fleet)], fmt.Sprint("invented ", i), 1).Allowed {
				taken++
			}
		}
		if taken != invented {
			t.Fatalf("%d invented values are admitted, want %d: the test assumes that the shared counters are not drained", taken, invented)
		}
		for _, l := range fleet {
			if got := l.Stats().ActiveKeys; got < cfg.MaxKeys {
				t.Fatalf("%d keys are in the table, which has room for %d", got, cfg.MaxKeys)
			}
		}
		for i := range honest {
			var got int64
			for n := range 2 * limit {
				if acquire(t, fleet[n%len(fleet)], fmt.Sprint("honest ", i), 1).Allowed {
					got++
				}
			}
			// Of 2000 counters the client drains by 26 each what it invented beyond the
			// three tables, and leaves up to 12 more in the balances of sidecars.
			if got > limit || got < limit/4 {
				t.Errorf("client %d: %d of %d requests are admitted, want %d to %d", i, got, 2*limit, limit/4, limit)
			}
		}
	})
}

// TestAFullTableIsShown while values share counters, and for a minute more.
func TestAFullTableIsShown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cfg := hourly(10, 5)
		cfg.MaxKeys, cfg.SharedKeys = 3, 2
		l := open(t, cfg, newFakeStore())
		shows := func(want KeysBound) {
			t.Helper()
			if got := l.Stats(); got.Full != want || got.SharedKeys != 2 {
				t.Errorf("%d keys, bound %d, %d shared; want bound %d and 2", got.ActiveKeys, got.Full, got.SharedKeys, want)
			}
		}
		for _, value := range []string{"", "a", "b", "c"} {
			acquire(t, l, value, 1)
		}
		shows(NoBound)
		acquire(t, l, "d", 1)
		shows(MaxKeysBound)
		time.Sleep(time.Minute - 1)
		acquire(t, l, "a", 1)
		shows(MaxKeysBound)
		time.Sleep(time.Nanosecond)
		shows(NoBound)
		for _, value := range []string{"e", "f", "g", "h"} { // idle keys made room
			acquire(t, l, value, 1)
		}
		shows(MaxKeysBound)
	})
}

// TestAValueSharesTheSameCounterEverywhere, so that all processes together admit it the
// limit.
func TestAValueSharesTheSameCounterEverywhere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, cfg := newFakeStore(), hourly(10, 3)
		cfg.MaxKeys, cfg.SharedKeys = 2, 7
		admitted := map[string]int{}
		for process := range 4 {
			l := open(t, cfg, s)
			for place := range cfg.MaxKeys {
				acquire(t, l, fmt.Sprint("takes place ", place, " of ", process), 1)
			}
			for i := range 1000 {
				value := fmt.Sprint(i % 50)
				if k := l.Key(value, ""); k.value() != store.Shared(store.Share(value, 7)) {
					t.Fatalf("value %s is counted on %q", value, k.value())
				}
				if acquire(t, l, value, 1).Allowed {
					admitted[store.Shared(store.Share(value, 7))]++
				}
			}
		}
		if len(admitted) != 7 {
			t.Errorf("%d counters are shared, want 7", len(admitted))
		}
		for counter, n := range admitted {
			if n > 10 {
				t.Errorf("the values of counter %q are admitted %d times, more than the limit", counter, n)
			}
		}
	})
}

// TestSharedKeysSurviveAnEdit of their number, with what they hold.
func TestSharedKeysSurviveAnEdit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, cfg := newFakeStore(), hourly(100, 5)
		cfg.MaxKeys = 1
		l := open(t, cfg, s)
		for _, ways := range []int{1, 30, 2, 5} {
			cfg.SharedKeys = ways
			l.Reconfigure(cfg)
			for i := range 100 {
				acquire(t, l, fmt.Sprint(i), 1)
			}
		}
		held := l.Credits()
		l.Close(t.Context())
		if back := returned(s); held == 0 || back != held {
			t.Errorf("of %d credits %d are given back", held, back)
		}
	})
}

// isShared reports whether values without room share the key.
func (k *Key) isShared() bool { return store.IsShared(k.value()) }

func TestIdleKeysMakeRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newFakeStore()
		cfg := perSecond(10, 5)
		cfg.MaxKeys = 100
		l := open(t, cfg, s)
		for round := range 3 {
			for i := range 100 {
				value := fmt.Sprint(round, "/", i)
				acquire(t, l, value, 1)
				if i >= 50 && l.Key(value, "").isShared() {
					t.Fatalf("round %d: value %d has no counter of its own though idle keys could go", round, i)
				}
			}
			if got := l.Stats().ActiveKeys; got > 100 {
				t.Errorf("%d active keys, want at most 100", got)
			}
			nextWindow()
		}
	})
}

func TestLocalShareIsNotForgottenByEviction(t *testing.T) {
	for name, seen := range map[string]bool{"store never seen": false, "store seen": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newFakeStore()
				cfg := perSecond(10, 1)
				cfg.MaxKeys, cfg.OnUnavailable = 1, LocalShare
				l := open(t, cfg, s)
				if seen {
					acquire(t, l, "a", 1)
				}
				s.set(func() { s.down = errDown })
				nextWindow()
				var sum int
				for range 30 {
					if acquire(t, l, "a", 1).Allowed {
						sum++
					}
					acquire(t, l, "b", 1)
				}
				if sum > 10 {
					t.Errorf("admitted %d on a share of 10", sum)
				}
			})
		})
	}
}

func TestHandleOfAnEvictedKeyStaysGood(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newFakeStore()
		cfg := perSecond(10, 5)
		cfg.MaxKeys = 1
		l := open(t, cfg, s)
		k := l.Key("a", "")
		acquire(t, l, "a", 1)
		nextWindow()
		acquire(t, l, "b", 1) // takes the place of a
		if l.Key("a", "") == k {
			t.Fatal("the key was not evicted")
		}
		if d, err := k.Acquire(t.Context(), 1); err != nil || !d.Allowed {
			t.Errorf("got %v, %v", d.Allowed, err)
		}
		if k.lease.Load().held(l.clock.now()) > 0 {
			t.Error("the evicted key holds credits that Close cannot find")
		}
	})
}

// TestAnEvictedKeyDoesNotTakeItsValueBack: its credits may be taken away when its
// value has another key already.
func TestAnEvictedKeyDoesNotTakeItsValueBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newFakeStore()
		cfg := perSecond(10, 5)
		cfg.MaxKeys = 1
		l := open(t, cfg, s)
		old := l.Key("a", "")
		acquire(t, l, "a", 1)
		nextWindow()
		acquire(t, l, "b", 1) // takes the place of a
		nextWindow()
		acquire(t, l, "a", 1) // takes the place of b
		old.clear(l.clock.now())
		if k := l.Key("a", ""); k == old || k.isShared() {
			t.Fatal("the value is found at a key that is no longer in the table")
		}
	})
}

func TestTableUnderConcurrentUse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newFakeStore()
		cfg := perSecond(5, 2)
		cfg.MaxKeys = 8
		l := open(t, cfg, s)
		var wait sync.WaitGroup
		for g := range 8 {
			wait.Go(func() {
				for i := range 300 {
					if _, err := l.Acquire(t.Context(), Request{Value: fmt.Sprint((i*7 + g) % 20), Cost: 1}); err != nil {
						t.Error(err)
					}
					time.Sleep(5 * time.Millisecond)
				}
			})
		}
		wait.Wait()
		if l.keys.size() > 8 {
			t.Errorf("a table of %d, want at most 8", l.keys.size())
		}
	})
}
