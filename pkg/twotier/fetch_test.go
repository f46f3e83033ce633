package twotier

import (
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weir-dev/weir/pkg/limiter"
	"github.com/weir-dev/weir/pkg/store"
)

// A request that misses fetches the lease itself when it has the time. A deadline
// that is near is kept all the same, and the lease comes for those after it.
func TestADeadlineIsKeptWhileALeaseIsFetched(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newFakeStore()
		s.back = constant(50 * time.Millisecond)
		l := open(t, perSecond(100, 10), s)
		const limit = 10 * time.Millisecond
		ctx, cancel := context.WithTimeout(t.Context(), limit)
		defer cancel()
		begin := time.Now()
		if _, err := l.Acquire(ctx, Request{Cost: 1}); !errors.Is(err, context.DeadlineExceeded) || time.Since(begin) != limit {
			t.Errorf("got %v after %v, want the deadline after %v", err, time.Since(begin), limit)
		}
		if got := admitted(t, l, 10); got != 10 || s.count(limiter.Take) != 1 {
			t.Errorf("admitted %d by %d calls, want the 10 of the first call", got, s.count(limiter.Take))
		}
	})
}

func TestACancelledRequestSpendsNothingThatItFetched(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for range 20 {
			nextWindow()
			s := newFakeStore()
			s.back = constant(50 * time.Millisecond)
			l := open(t, perSecond(100, 10), s)
			ctx, cancel := context.WithCancel(t.Context())
			time.AfterFunc(10*time.Millisecond, cancel)
			if _, err := l.Acquire(ctx, Request{Cost: 1}); !errors.Is(err, context.Canceled) {
				t.Fatalf("got %v, want the cancellation", err)
			}
			if got := admitted(t, l, 10); got != 10 || s.count(limiter.Take) != 1 {
				t.Fatalf("admitted %d by %d calls, want the 10 of the first call", got, s.count(limiter.Take))
			}
		}
	})
}

// panicking is a store with a defect that comes and goes.
type panicking struct {
	*fakeStore
	sound atomic.Bool
}

func (p *panicking) Apply(ctx context.Context, key store.Key, params limiter.Params, c limiter.Command) (limiter.Result, error) {
	if p.sound.Load() {
		return p.fakeStore.Apply(ctx, key, params, c)
	}
	_ = p.travel(ctx, p.there)
	panic("a defect")
}

// A request that waits for a call that panics gets an error, never an admission.
// Later requests ask again.
func TestAPanicOfTheStoreIsAFailedCall(t *testing.T) {
	for mode, m := range modes() {
		for who, patient := range map[string]bool{"made by a request": true, "made beside": false} {
			t.Run(mode+", "+who, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					s := &panicking{fakeStore: newFakeStore()}
					s.there = constant(10 * time.Millisecond)
					cfg := perSecond(100, 10)
					cfg.Mode, cfg.OnUnavailable = m, Allow
					l := open(t, cfg, s)
					ctx := t.Context()
					if !patient {
						var cancel context.CancelFunc
						ctx, cancel = context.WithTimeout(ctx, 50*time.Millisecond)
						defer cancel()
					}
					var requests sync.WaitGroup
					for range 5 {
						requests.Go(func() {
							d, err := l.Acquire(ctx, Request{Cost: 1})
							if d.Allowed || err == nil || !strings.Contains(err.Error(), "a defect") {
								t.Errorf("got %+v and error %v, want that of the panic", d, err)
							}
						})
					}
					requests.Wait()
					if got := l.Stats().Errors; got == 0 {
						t.Error("no call has failed by the figures")
					}
					s.sound.Store(true)
					if d := acquire(t, l, "", 1); !d.Allowed {
						t.Errorf("got %+v once the store is sound", d)
					}
					s.sound.Store(false) // for what is given back at the end
				})
			})
		}
	}
}

// A grant that is asked for by old settings comes too late, and the new ones decide.
func TestNewSettingsDecideWhichRequestsWaitForTheNextWindow(t *testing.T) {
	for name, mode := range modes() {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				nextWindow()
				s := newFakeStore()
				s.back = constant(19 * time.Millisecond)
				cfg := perSecond(100, 10)
				cfg.Mode = mode
				l := open(t, cfg, s)
				time.Sleep(time.Until(time.Now().Truncate(time.Second).Add(time.Second - 18*time.Millisecond)))
				var d Decision
				var request sync.WaitGroup
				request.Go(func() { d = acquire(t, l, "", 1) })
				time.Sleep(25 * time.Millisecond)
				l.Reconfigure(cfg)
				request.Wait()
				if !d.Allowed {
					t.Errorf("refused far from the limit: %+v", d)
				}
			})
		})
	}
}

// A command that travels faster than the one before may reach the store before the
// window ends in which that one's grant was too late.
func TestAWindowsEndIsMissedOnceHoweverLongCommandsTravel(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		nextWindow()
		s := newFakeStore()
		travel := 20 * time.Millisecond
		s.there = func() time.Duration { travel /= 2; return travel }
		l := open(t, perSecond(100, 10), s)
		time.Sleep(time.Until(time.Now().Truncate(time.Second).Add(time.Second - 18*time.Millisecond)))
		if d := acquire(t, l, "", 1); !d.Allowed || s.count(limiter.Take) != 2 {
			t.Errorf("got %+v after %d calls, want it admitted by the second", d, s.count(limiter.Take))
		}
	})
}

func lowWater(limit, batch, low int64) Config {
	cfg := perSecond(limit, batch)
	cfg.LowWater = low
	return cfg
}

func TestTheNextLeaseIsAskedForAheadOfNeed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newFakeStore()
		cfg := lowWater(1000, 10, 4)
		cfg.Timeout = time.Second
		l := open(t, cfg, s)
		acquire(t, l, "", 1)
		s.set(func() { s.back = constant(20 * time.Millisecond) })
		before := time.Now()
		for range 9 {
			acquire(t, l, "", 1)
			synctest.Wait()
		}
		if took := time.Since(before); took != 0 {
			t.Errorf("requests waited %v though credits were there", took)
		}
		if got := s.count(limiter.Take); got != 2 {
			t.Errorf("%d calls, want a second one, once", got)
		}
		time.Sleep(20 * time.Millisecond)
		synctest.Wait()
		before = time.Now()
		if d := acquire(t, l, "", 1); !d.Allowed || time.Since(before) != 0 {
			t.Errorf("allowed %v after %v, want at once: the lease was there", d.Allowed, time.Since(before))
		}
	})
}

func TestAPrefetchThatComesLateIsDropped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newFakeStore()
		cfg := lowWater(100, 10, 9)
		cfg.Timeout = time.Second
		l := open(t, cfg, s)
		time.Sleep(900 * time.Millisecond)
		acquire(t, l, "", 1)
		s.set(func() { s.back = constant(200 * time.Millisecond) })
		acquire(t, l, "", 1) // asks ahead: granted at 0.9, received at 1.1
		synctest.Wait()
		time.Sleep(150 * time.Millisecond)
		s.set(func() { s.back = constant(0) })
		time.Sleep(100 * time.Millisecond)
		if got := l.single.lease.Load().held(l.clock.now()); got != 0 {
			t.Errorf("%d credits of the window before in hand", got)
		}
		if got := s.count(limiter.Take); got != 2 {
			t.Errorf("%d calls, want 2: what nobody waits for is not asked for again", got)
		}
		if d := acquire(t, l, "", 1); !d.Allowed || d.Windows.Open[0].Index != window(s) {
			t.Errorf("got %+v, want an admission in window %d", d, window(s))
		}
	})
}

func TestNothingIsAskedForAheadOfARefusal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newFakeStore()
		l := open(t, lowWater(15, 10, 5), s)
		if got := admitted(t, l, 40); got != 15 {
			t.Errorf("admitted %d of 15", got)
		}
		synctest.Wait()
		if got := s.count(limiter.Take); got != 2 {
			t.Errorf("%d calls, want 2: the second took the rest", got)
		}
	})
}

func TestAnErrorAheadOfNeedIsNobodys(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newFakeStore()
		l := open(t, lowWater(100, 10, 5), s)
		acquire(t, l, "", 1)
		s.set(func() { s.down = errDown })
		if got := admitted(t, l, 9); got != 9 {
			t.Errorf("admitted %d of the 9 in hand", got)
		}
	})
}
