package twotier

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weir-dev/weir/pkg/limiter"
	"github.com/weir-dev/weir/pkg/store"
)

func TestGateSparesAStoreThatIsDown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newFakeStore()
		s.down = errDown
		l := open(t, perSecond(100, 10), s)
		calls := func(d time.Duration) int64 {
			before := l.Stats().RoundTrips
			for range int(d / time.Millisecond) {
				acquire(t, l, "", 1)
				time.Sleep(time.Millisecond)
			}
			return l.Stats().RoundTrips - before
		}
		if got := calls(time.Second); got < 2 || got > 5 {
			t.Errorf("%d probes in the first second, want a few, early ones", got)
		}
		calls(3 * time.Second)
		if got := calls(30 * time.Second); got < 15 || got > 30 {
			t.Errorf("%d probes in 30 s, want at most one a second", got)
		}
		if st := l.Stats(); st.CutOffSince.IsZero() || !errors.Is(st.CutOff, errDown) || st.Errors == 0 {
			t.Errorf("the outage does not show: %+v", st)
		}
		s.set(func() { s.down = nil })
		time.Sleep(2 * time.Second)
		if d := acquire(t, l, "", 1); !d.Allowed || d.Source != FromLease {
			t.Errorf("not back after the outage: %+v", d)
		}
		if st := l.Stats(); !st.CutOffSince.IsZero() || st.CutOff != nil {
			t.Errorf("the outage still shows: %+v", st)
		}
	})
}

func TestRequestsDoNotWaitForAStoreThatHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newFakeStore()
		s.lost = func() bool { return true }
		l := open(t, perSecond(1000, 10), s)
		before := time.Now()
		for range 1000 {
			acquire(t, l, "", 1)
		}
		if took := time.Since(before); took > DefaultTimeout {
			t.Errorf("1000 requests took %v, want one time-out of %v", took, DefaultTimeout)
		}
	})
}

// A repliedStore answers as soon as a goroutine has run that waits behind others.
type repliedStore struct{ *fakeStore }

func (s repliedStore) Apply(ctx context.Context, key store.Key, p limiter.Params, c limiter.Command) (limiter.Result, error) {
	for range 30 {
		go func() {
			for until := time.Now().Add(DefaultTimeout / 10); time.Now().Before(until); {
			}
		}()
	}
	replied := make(chan struct{})
	go close(replied)
	go func() {}() // the next to run is the goroutine that was begun last
	select {
	case <-replied:
		return s.fakeStore.Apply(ctx, key, p, c)
	case <-ctx.Done():
		return limiter.Result{}, unavailable(ctx.Err())
	}
}

// TestAStarvedProcessDoesNotTakeItsStoreForLost, while it has no time to read the reply.
func TestAStarvedProcessDoesNotTakeItsStoreForLost(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	l := open(t, perSecond(100, 10), repliedStore{newFakeStore()})
	began := time.Now()
	if d := acquire(t, l, "", 1); !d.Allowed || d.Source != FromLease {
		t.Errorf("after %v the request was decided by %v", time.Since(began), d.Source)
	}
	if st := l.Stats(); st.Errors != 0 {
		t.Errorf("%d calls failed: %v", st.Errors, st.CutOff)
	}
}

func TestOneProbeAtATime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newFakeStore()
		s.down = errDown
		b := newBreaker(s, newClock())
		ask := func(ctx context.Context) error {
			_, err := b.ask(ctx, storeKey, perSecond(1, 1).Params, limiter.Command{Min: 1, Want: 1}, time.Minute, true)
			return err
		}
		_ = ask(t.Context())
		time.Sleep(time.Second)
		s.set(func() { s.down, s.there = nil, constant(10*time.Second) })
		ctx, cancel := context.WithCancel(t.Context())
		probe := make(chan error)
		go func() { probe <- ask(ctx) }()
		synctest.Wait()
		if err := ask(t.Context()); !errors.Is(err, errDown) {
			t.Errorf("a second call beside the probe got %v, want the cause at once", err)
		}
		cancel()
		<-probe
		if err := ask(t.Context()); err != nil {
			t.Errorf("a probe that was given up blocks the next: %v", err)
		}
	})
}

// TestAReturnWithoutAnAnswerSaysNothingOfTheStore: the controller does not answer returns,
// so that one was sent says neither that the store serves nor what time it is.
func TestAReturnWithoutAnAnswerSaysNothingOfTheStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newFakeStore()
		b := newBreaker(s, newClock())
		ask := func(op limiter.Op) {
			_, _ = b.ask(t.Context(), storeKey, perSecond(10, 1).Params, limiter.Command{Op: op, Min: 1, Want: 1}, time.Minute, true)
		}
		ask(limiter.Take)
		before := b.storeTime(storeKey)
		s.set(func() { s.hook = func(limiter.Command, limiter.Result) limiter.Result { return limiter.Result{} } })
		ask(limiter.Return)
		if v := b.storeTime(storeKey); v != before {
			t.Errorf("the store's time is now thought %+v; was %+v", v, before)
		}
		s.set(func() { s.down = errDown })
		ask(limiter.Take)
		s.set(func() { s.down = nil })
		time.Sleep(time.Second)
		ask(limiter.Return)
		if since, cause := b.state(storeKey.Scope); cause == nil || since.IsZero() {
			t.Error("the breaker closed although the store answered nothing")
		}
		s.set(func() { s.hook = func(_ limiter.Command, r limiter.Result) limiter.Result { return r } })
		ask(limiter.Take)
		if _, cause := b.state(storeKey.Scope); cause != nil {
			t.Errorf("the return kept the breaker open: %v", cause)
		}
	})
}

func TestAPanicDoesNotKeepTheGateShut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newFakeStore()
		s.down = errDown
		b := newBreaker(s, newClock())
		ask := func() (err error) {
			defer func() {
				if reason := recover(); reason != nil {
					err = fmt.Errorf("panic: %v", reason)
				}
			}()
			_, err = b.ask(t.Context(), storeKey, perSecond(10, 1).Params, limiter.Command{Min: 1, Want: 1}, time.Minute, true)
			return err
		}
		_ = ask()
		time.Sleep(time.Second)
		defect := func() time.Duration {
			s.mu.Unlock()
			panic("a defect")
		}
		s.set(func() { s.down, s.there = nil, defect })
		if err := ask(); err == nil || errors.Is(err, errDown) {
			t.Fatalf("the probe got %v, want the panic", err)
		}
		s.set(func() { s.there = constant(0) })
		if err := ask(); err != nil {
			t.Errorf("no probe after a panic: %v", err)
		}
	})
}

// reconnected is a store to which there is a new way now and then.
type reconnected struct {
	*fakeStore
	ways atomic.Uint64
	lost atomic.Pointer[time.Time]

	moving atomic.Pointer[chan struct{}] // closed when the move has ended; nil: there was none
}

func (r *reconnected) Moved(ctx context.Context, n uint64) bool {
	moving := r.moving.Load()
	if moving == nil {
		return false
	}
	select {
	case <-*moving:
		return r.ways.Load() > n
	case <-ctx.Done():
		return false
	}
}

func (r *reconnected) Connections() (uint64, time.Time) {
	if lost := r.lost.Load(); lost != nil {
		return r.ways.Load(), *lost
	}
	return r.ways.Load(), time.Time{}
}

// TestAStoreThatMovesIsWaitedFor: a take that failed because of that is made again; a return
// would count twice.
func TestAStoreThatMovesIsWaitedFor(t *testing.T) {
	for _, mode := range []Mode{Strict, CachedDeny, Leased} {
		for _, comes := range []bool{true, false} {
			t.Run(fmt.Sprintf("%v, another way %t", mode, comes), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					s := &reconnected{fakeStore: newFakeStore()}
					cfg := perSecond(1000, 10)
					cfg.Mode, cfg.OnUnavailable = mode, Deny
					l := open(t, cfg, s)
					acquire(t, l, "", 1)
					moving := make(chan struct{})
					s.moving.Store(&moving)
					s.set(func() { s.down = errDown })
					time.AfterFunc(300*time.Millisecond, func() {
						if comes {
							s.set(func() { s.down = nil })
							s.ways.Add(1)
						}
						close(moving)
					})
					began := time.Now()
					atOnce(20, func(int) {
						if d := acquire(t, l, "", 20); d.Allowed != comes || comes && d.Source == FromLocalShare {
							t.Errorf("decided %+v", d)
						}
					})
					if took := time.Since(began); took < 300*time.Millisecond || took > 300*time.Millisecond+DefaultTimeout {
						t.Errorf("they were decided after %s", took)
					}
					if st := l.Stats(); comes && (st.CutOff != nil || st.Errors > 0) {
						t.Errorf("%d errors, cut off by %v", st.Errors, st.CutOff)
					}
				})
			})
		}
	}
}

func TestAReturnIsNotMadeAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &reconnected{fakeStore: newFakeStore()}
		moving := make(chan struct{})
		time.AfterFunc(300*time.Millisecond, func() {
			s.ways.Add(1)
			close(moving)
		})
		s.moving.Store(&moving)
		calls := 0
		s.set(func() { s.down, s.there = errDown, func() time.Duration { calls++; return 0 } })
		b := newBreaker(s, &process)
		_, err := b.call(t.Context(), storeKey, perSecond(10, 1).Params, limiter.Command{Op: limiter.Return, Want: 1}, time.Second)
		if err == nil || calls != 1 {
			t.Errorf("%d calls, error %v", calls, err)
		}
	})
}

// TestANewWayToTheStoreOpensItsGate: of requests that come together none begins a window
// on the local share once the store can be reached.
func TestANewWayToTheStoreOpensItsGate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &reconnected{fakeStore: newFakeStore()}
		cfg := perSecond(100, 10)
		cfg.OnUnavailable, cfg.Holders = LocalShare, 2
		l := open(t, cfg, s)
		acquire(t, l, "", 1)
		s.set(func() { s.down = errDown })
		for range 30 {
			time.Sleep(100 * time.Millisecond)
			acquire(t, l, "", 10)
		}
		if st := l.Stats(); st.CutOff == nil {
			t.Fatal("the breaker is closed")
		}
		time.Sleep(time.Until(time.Now().Truncate(time.Second).Add(time.Second + time.Millisecond)))
		s.set(func() { s.down = nil; s.there = func() time.Duration { return time.Millisecond } })
		s.ways.Add(1)
		var waiting sync.WaitGroup
		for range 5 {
			waiting.Go(func() {
				if d := acquire(t, l, "", 1); d.Source != FromLease {
					t.Errorf("decided %+v, want what the store says", d)
				}
			})
		}
		waiting.Wait()
	})
}

// TestNoWindowBeginsAloneThatWasOpenWhenTheStoreWasLeft, although nothing was asked in it.
func TestNoWindowBeginsAloneThatWasOpenWhenTheStoreWasLeft(t *testing.T) {
	for _, known := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			s := &reconnected{fakeStore: newFakeStore()}
			cfg := perSecond(100, 10)
			cfg.OnUnavailable, cfg.Holders = LocalShare, 2
			l := open(t, cfg, s)
			if known {
				acquire(t, l, "", 1)
			}
			time.Sleep(2100 * time.Millisecond)
			lost := time.Now()
			s.set(func() { s.down = errDown })
			s.lost.Store(&lost)
			for range 8 {
				if d := acquire(t, l, "", 1); d.Allowed {
					t.Errorf("store's clock known: %t: admitted %+v in the window in which the store was left", known, d)
				}
				time.Sleep(100 * time.Millisecond)
			}
			time.Sleep(2 * time.Second)
			if d := acquire(t, l, "", 1); !d.Allowed || d.Source != FromLocalShare {
				t.Errorf("store's clock known: %t: decided %+v in a later window, want the share", known, d)
			}
		})
	}
}

// TestAConnectionThatStandsIsWaitedFor: a window does not begin on the local share because the store is
// slow, while nothing says that it is gone. It serves others, up to the limit.
func TestAConnectionThatStandsIsWaitedFor(t *testing.T) {
	for _, mode := range []Mode{Strict, CachedDeny, Leased} {
		for _, tc := range []struct {
			takes time.Duration // to answer when a window begins
			alone bool
		}{
			{DefaultTimeout * 3 / 2, false},
			{SilenceTime/2 - time.Millisecond, false},
			{SilenceTime + time.Millisecond, true},
		} {
			t.Run(fmt.Sprintf("%v, %v", mode, tc.takes), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					s := &reconnected{fakeStore: newFakeStore()}
					s.ways.Store(1)
					cfg := perSecond(1000, 10)
					cfg.Params.Rates[0].Window = 10 * limiter.Second
					cfg.Mode, cfg.OnUnavailable, cfg.Holders = mode, LocalShare, 2
					l := open(t, cfg, s)
					acquire(t, l, "", 1)
					time.Sleep(time.Until(time.Now().Truncate(10 * time.Second).Add(10*time.Second + time.Millisecond)))
					s.set(func() { s.there = constant(tc.takes) })
					before := time.Now()
					if d := acquire(t, l, "", 1); !d.Allowed || d.Source == FromLocalShare != tc.alone {
						t.Errorf("decided %+v", d)
					}
					if took := time.Since(before); took > SilenceTime+2*time.Millisecond {
						t.Errorf("it took %v", took)
					}
				})
			})
		}
	}
}

// TestOnlyTheLocalShareWaitsForAConnectionThatStands: with other actions nothing is at stake, and
// without a connection the store fails at once or never answers.
func TestOnlyTheLocalShareWaitsForAConnectionThatStands(t *testing.T) {
	for name, tc := range map[string]struct {
		action Action
		ways   uint64
		want   time.Duration
	}{
		"a share":                       {LocalShare, 1, SilenceTime},
		"a share, without a connection": {LocalShare, 0, DefaultTimeout},
		"denied":                        {Deny, 1, DefaultTimeout},
		"allowed":                       {Allow, 1, DefaultTimeout},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &reconnected{fakeStore: newFakeStore()}
				s.ways.Store(tc.ways)
				cfg := perSecond(1000, 10)
				cfg.OnUnavailable, cfg.Holders = tc.action, 2
				l := open(t, cfg, s)
				s.set(func() { s.fakeStore.lost = func() bool { return true } })
				before := time.Now()
				acquire(t, l, "", 1)
				if took := time.Since(before); took != tc.want {
					t.Errorf("a request waited %v for a store that does not answer, want %v", took, tc.want)
				}
			})
		})
	}
}
