package counters_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weir-dev/weir/pkg/federation/coordinator/counters"
	"github.com/weir-dev/weir/pkg/federation/keys"
	"github.com/weir-dev/weir/pkg/federation/ledger"
	"github.com/weir-dev/weir/pkg/limiter"
	"github.com/weir-dev/weir/pkg/store"
	"github.com/weir-dev/weir/pkg/store/memory"
)

const id = "shop/users"

func params(limit int64) ledger.Params {
	return ledger.Params{Limit: limit, Window: limiter.Second, Members: []ledger.Member{{Name: "a", Weight: 1, Borrowing: -1}}}
}

func asksFor(want int64, hashes ...string) keys.Request {
	r := keys.Request{Member: "a"}
	for _, h := range hashes {
		r.Asks = append(r.Asks, keys.KeyAsk{Hash: h, Ask: keys.Ask{Min: 1, Want: want}})
	}
	return r
}

// A lame store fails for some keys.
type lame struct {
	counters.Store
	mu     sync.Mutex
	broken map[string]bool
	before func()
}

func (l *lame) Apply(ctx context.Context, key store.Key, p limiter.Params, c limiter.Command) (limiter.Result, error) {
	l.mu.Lock()
	broken, before := l.broken[key.Hash], l.before
	l.before = nil
	l.mu.Unlock()
	if before != nil {
		before()
	}
	if broken {
		return limiter.Result{}, &store.UnavailableError{Store: "test", Cause: errors.New("away")}
	}
	return l.Store.Apply(ctx, key, p, c)
}

// now is the store's clock.
func now() limiter.Instant { return limiter.Instant(time.Now().UnixMicro()) }

func open(first bool) (*lame, *counters.Coordinator) {
	l := &lame{Store: memory.New(memory.Options{Clock: now, First: first}), broken: map[string]bool{}}
	return l, counters.New(l)
}

// next waits for the next window.
func next() { time.Sleep(time.Until(time.Now().Truncate(time.Second).Add(time.Second))) }

func TestEachValueHasTheLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, c := open(true)
		got := map[string]int64{}
		for range 5 {
			r, err := c.ApplyKeys(t.Context(), id, params(10), asksFor(4, "x", "y"))
			if err != nil || r.Reason != ledger.Granted || r.ExpiresIn <= 0 || r.Limit != 10 || r.Now != now() {
				t.Fatalf("%+v, %v", r, err)
			}
			got["x"] += r.Grants[0].Units
			got["y"] += r.Grants[1].Units
		}
		if got["x"] != 10 || got["y"] != 10 {
			t.Errorf("%v, want 10 of each", got)
		}
		if r, err := c.ApplyKeys(t.Context(), "shop/other", params(10), asksFor(4, "x")); err != nil || r.Grants[0] != (keys.Grant{Units: 4, Remaining: 6}) {
			t.Errorf("another budget: %+v, %v", r, err)
		}
	})
}

// TestAValueHasTheLimitOfItsOverride, and one that is edited counts what the window had before.
func TestAValueHasTheLimitOfItsOverride(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, c := open(true)
		p := params(10)
		p.Keys, p.Overrides = 10, []ledger.Override{{Hash: "x", Limit: 50}, {Hash: "y", Limit: 3}}
		r, err := c.ApplyKeys(t.Context(), id, p, asksFor(100, "x", "y", "z"))
		if err != nil || r.Grants[0].Units != 50 || r.Grants[1].Units != 3 || r.Grants[2].Units != 10 {
			t.Errorf("%+v, %v, want 50, 3 and 10 units", r, err)
		}
		p.Overrides = []ledger.Override{{Hash: "x", Limit: 60}, {Hash: "y", Limit: 1}}
		if r, err = c.ApplyKeys(t.Context(), id, p, asksFor(100, "x", "y")); err != nil || r.Grants[0].Units > 10 || r.Grants[1].Units != 0 {
			t.Errorf("after an edit: %+v, %v, want no more than 60 and 3 in all", r, err)
		}
	})
}

func TestAWindowThatIsOlderThanTheStoresMemory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, c := open(false)
		r, err := c.ApplyKeys(t.Context(), id, params(10), asksFor(4, "x"))
		if err != nil || r.Reason != ledger.Amnesia || r.RetryAfter <= 0 || r.Grants != nil {
			t.Errorf("%+v, %v", r, err)
		}
		next()
		if r, err = c.ApplyKeys(t.Context(), id, params(10), asksFor(4, "x")); err != nil || r.Grants[0].Units != 4 {
			t.Errorf("the next window: %+v, %v", r, err)
		}
	})
}

func TestWhatTheStoreDidNotDecide(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, c := open(true)
		l.broken["x"] = true
		if r, err := c.ApplyKeys(t.Context(), id, params(10), asksFor(4, "x", "y")); err != nil || !r.Grants[0].Lacks || r.Grants[1].Units != 4 {
			t.Errorf("%+v, %v, want units of the other key", r, err)
		}
		_, err := c.ApplyKeys(t.Context(), id, params(10), asksFor(4, "x"))
		if unavailable := (*store.UnavailableError)(nil); !errors.As(err, &unavailable) {
			t.Errorf("%v, want that the store is not available", err)
		}
		next()
		time.Sleep(time.Second - time.Millisecond)
		l.before = func() { time.Sleep(2 * time.Millisecond) } // the window ends before the first
		if r, err := c.ApplyKeys(t.Context(), id, params(10), asksFor(4, "y", "z", "w")); err != nil || r.Epoch.Index != int64(now())/int64(limiter.Second) {
			t.Errorf("%+v, %v, want the window that began", r, err)
		}
		l.Store = memory.New(memory.Options{Clock: func() limiter.Instant { return now().Add(-limiter.Second) }, First: true})
		if r, err := c.ApplyKeys(t.Context(), id, params(10), asksFor(4, "y")); err != nil || r.Reason != ledger.Behind || r.RetryAfter <= 0 {
			t.Errorf("a clock that was set back: %+v, %v", r, err)
		}
		if _, err := c.ApplyKeys(t.Context(), id, params(10), keys.Request{Member: "a"}); err == nil {
			t.Error("a request for no key is answered")
		}
		sliced := params(10)
		sliced.Slices = true
		if _, err := c.ApplyKeys(t.Context(), id, sliced, asksFor(1, "y")); err == nil {
			t.Error("a budget with slices is granted beside them")
		}
	})
}

// TestRegionsShareTheStore has several coordinators ask at once.
func TestRegionsShareTheStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, _ := open(true)
		requireShared(t, l)
	})
}

// requireShared has four coordinators of the store ask for keys for some seconds: no key is
// granted more than the limit in a window, and some are granted all of it.
func requireShared(t *testing.T, s counters.Store) {
	t.Helper()
	type place struct {
		hash  string
		index int64
	}
	var mu sync.Mutex
	got := map[place]int64{}
	var all sync.WaitGroup
	ends := time.Now().Add(3 * time.Second)
	for range 4 {
		c := counters.New(s)
		all.Go(func() {
			for i := 0; time.Now().Before(ends); i++ {
				ask := asksFor(3, fmt.Sprint("h", i%7), "hot")
				r, err := c.ApplyKeys(t.Context(), id, params(50), ask)
				if err != nil {
					t.Error(err)
					return
				}
				mu.Lock()
				for k, g := range r.Grants {
					got[place{ask.Asks[k].Hash, r.Epoch.Index}] += g.Units
				}
				mu.Unlock()
				<-time.After(3 * time.Millisecond)
			}
		})
	}
	all.Wait()
	full := 0
	for at, n := range got {
		if n > 50 {
			t.Errorf("%d units of %s in window %d, want at most 50", n, at.hash, at.index)
		} else if n == 50 {
			full++
		}
	}
	if full < 8 {
		t.Errorf("the limit of 50 is reached %d times of %d: the test tests little", full, len(got))
	}
}
