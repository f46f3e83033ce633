package twotier

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weir-dev/weir/pkg/limiter"
	"github.com/weir-dev/weir/pkg/store"
)

// granted returns what the store counts as granted in the open window.
func granted(s *fakeStore) int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	var sum int64
	for _, state := range s.keys {
		for _, w := range state.Slice() {
			if w.Index == int64(s.now())/int64(w.Window) {
				sum += w.Used
			}
		}
	}
	return sum
}

func TestCloseGivesUnspentCreditsBackOnce(t *testing.T) {
	for name, lost := range map[string]bool{"answered": false, "the answer is lost": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newFakeStore()
				l := mustNew(perSecond(100, 10), newBreaker(s, newClock()))
				for _, value := range []string{"", "a", "b"} {
					acquire(t, l, value, 3)
				}
				s.set(func() { s.lost = func() bool { return lost } })
				l.Close(t.Context())
				if got := granted(s); got != 9 {
					t.Errorf("the store counts %d granted after Close, want the 9 spent", got)
				}
				if got := s.count(limiter.Return); got != 3 {
					t.Errorf("%d returns, want one for each of 3 keys", got)
				}
				if d := acquire(t, l, "", 1); d.Allowed {
					t.Error("admitted after Close")
				}
			})
		})
	}
}

func TestCancelAfterCloseOpensNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := mustNew(perSecond(100, 10), newBreaker(newFakeStore(), newClock()))
		d := acquire(t, l, "", 3)
		l.Close(t.Context())
		d.Cancel()
		if d := acquire(t, l, "", 1); d.Allowed {
			t.Error("admitted after Close")
		}
	})
}

// defective fails every return, though it may have been applied, in a way that
// does not shut the breaker.
type defective struct {
	*fakeStore
	returns atomic.Int64
}

func (d *defective) Apply(ctx context.Context, key store.Key, p limiter.Params, c limiter.Command) (limiter.Result, error) {
	r, err := d.fakeStore.Apply(ctx, key, p, c)
	if c.Op == limiter.Return {
		d.returns.Add(1)
		return limiter.Result{}, errors.New("a defect")
	}
	return r, err
}

func TestAReturnIsNeverRetried(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &defective{fakeStore: newFakeStore()}
		l := mustNew(perSecond(100, 10), newBreaker(s, newClock()))
		acquire(t, l, "", 3)
		l.Close(t.Context())
		if got := s.returns.Load(); got != 1 {
			t.Errorf("%d returns of the same credits", got)
		}
	})
}

func TestCloseForfeitsCreditsOfWindowsThatAreOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newFakeStore()
		l := mustNew(perSecond(100, 10), newBreaker(s, newClock()))
		acquire(t, l, "", 3)
		nextWindow()
		l.Close(t.Context())
		if got := s.count(limiter.Return); got != 0 {
			t.Errorf("%d returns, want none", got)
		}
	})
}

func TestCloseEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newFakeStore()
		cfg := perSecond(100, 10)
		cfg.Timeout = time.Hour
		l := mustNew(cfg, newBreaker(s, newClock()))
		s.there = constant(30 * time.Minute)
		done := make(chan Decision)
		go func() {
			d, _ := l.Acquire(context.WithoutCancel(t.Context()), Request{Value: "", Cost: 1})
			done <- d
		}()
		synctest.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		before := time.Now()
		l.Close(ctx)
		if took := time.Since(before); took > time.Second {
			t.Errorf("Close took %v of a second", took)
		}
		if d := <-done; d.Allowed {
			t.Error("a request that waited while the limiter closed was admitted")
		}
	})
}

func TestCancelPutsTheCostBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newFakeStore()
		l := open(t, perSecond(10, 10), s)
		d := acquire(t, l, "", 4)
		d.Cancel()
		d.Cancel() // has no effect
		if got := admitted(t, l, 20); got != 10 {
			t.Errorf("admitted %d after a cancelled 4, want 10", got)
		}
	})
}

func TestCancelReachesTheLeaseThatTookOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newFakeStore()
		l := open(t, perSecond(10, 5), s)
		d := acquire(t, l, "", 4)
		acquire(t, l, "", 4) // another lease, which takes the 1 left over
		d.Cancel()
		if got := admitted(t, l, 20); got != 6 {
			t.Errorf("admitted %d, want the 6 that are left of 10", got)
		}
	})
}

func TestCancelDoesNotReachAnotherWindow(t *testing.T) {
	for name, mode := range map[string]Mode{"leased": Leased, "strict": Strict} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newFakeStore()
				cfg := perSecond(10, 10)
				cfg.Mode = mode
				l := open(t, cfg, s)
				d := acquire(t, l, "", 4)
				nextWindow()
				first := acquire(t, l, "", 1).Allowed
				d.Cancel()
				synctest.Wait()
				if got := admitted(t, l, 20); !first || got != 9 {
					t.Errorf("admitted %v and %d in the next window, want one and 9", first, got)
				}
			})
		})
	}
}

func TestStrictCancelReturnsOnce(t *testing.T) {
	for name, lost := range map[string]bool{"answered": false, "the answer is lost": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newFakeStore()
				cfg := perSecond(10, 1)
				cfg.Mode = Strict
				l := open(t, cfg, s)
				acquire(t, l, "", 3)
				d := acquire(t, l, "", 4)
				s.set(func() { s.lost = func() bool { return lost } })
				d.Cancel()
				d.Cancel()
				time.Sleep(2 * DefaultTimeout)
				if got := granted(s); got != 3 {
					t.Errorf("the store counts %d granted, want 3", got)
				}
				if got := s.count(limiter.Return); got != 1 {
					t.Errorf("%d returns, want 1", got)
				}
			})
		})
	}
}
