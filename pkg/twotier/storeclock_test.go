package twotier

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/weir-dev/weir/pkg/limiter"
)

// standAlone returns a limiter of one of two holders on its own, and its breaker. It knows the
// clock of a store that is down.
func standAlone(t *testing.T, s *fakeStore, known bool) (*Limiter, *Breaker) {
	cfg := perSecond(100, 10)
	cfg.OnUnavailable, cfg.Holders = LocalShare, 2
	b := newBreaker(s, newClock())
	l := mustNew(cfg, b)
	t.Cleanup(func() { l.Close(t.Context()) })
	if known {
		acquire(t, l, "", 1)
	}
	s.set(func() { s.down = errDown })
	return l, b
}

// requireAlone fails unless the share decides a request, or is not used.
func requireAlone(t *testing.T, when string, l *Limiter, want bool) {
	t.Helper()
	before := l.Stats().Promised
	d := acquire(t, l, "", 1)
	if d.Allowed != want || want && d.Source != FromLocalShare {
		t.Errorf("%s: decided %+v, want the local share: %t", when, d, want)
	}
	if kept := l.Stats().Promised > before; kept == want || kept && (d.Source != FromFailureAction || d.RetryAfter <= 0) {
		t.Errorf("%s: decided %+v, refused for a promise %t", when, d, kept)
	}
}

// TestAPromiseIsKept: windows that have begun go on, and others begin when it is over.
func TestAPromiseIsKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newFakeStore()
		s.ahead = 37 * time.Minute
		l, b := standAlone(t, s, true)
		if begun, ok := b.Promise(s.now(), s.now()); begun != 0 || !ok {
			t.Errorf("before a window: begun %d, %t", begun, ok)
		}
		nextWindow()
		requireAlone(t, "before a promise", l, true)
		start := limiter.Rate{Limit: 1, Window: limiter.Second}.WindowAt(s.now()).Start()
		if begun, ok := b.Promise(s.now(), start.Add(1500*limiter.Millisecond)); begun != start || !ok {
			t.Errorf("begun %d, %t, want %d", begun, ok, start)
		}
		requireAlone(t, "in a window that was begun", l, true)
		if begun, ok := b.Promise(s.now(), start.Add(limiter.Second)); begun != start || !ok {
			t.Errorf("begun %d, %t, want %d", begun, ok, start)
		}
		nextWindow()
		requireAlone(t, "in the next one", l, false)
		nextWindow()
		requireAlone(t, "in the one after that", l, true)
		if begun, _ := b.Promise(s.now(), s.now()); begun != start.Add(2*limiter.Second) {
			t.Errorf("begun %d, want %d", begun, start.Add(2*limiter.Second))
		}
	})
}

// TestAPromiseIsKeptByTheOwnClock while the store's is not known. One is made only when what
// was begun is over.
func TestAPromiseIsKeptByTheOwnClock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newFakeStore()
		l, b := standAlone(t, s, false)
		nextWindow()
		if _, ok := b.Promise(s.now(), s.now().Add(1500*limiter.Millisecond)); !ok {
			t.Fatal("nothing is promised")
		}
		for i := range 4 { // a window of the local clock meets two of the store's
			if d := acquire(t, l, "", 1); d.Allowed && i < 3 {
				t.Errorf("window %d after the promise: decided %+v", i, d)
			}
			nextWindow()
		}
		requireAlone(t, "after the promise", l, true)
		if _, ok := b.Promise(s.now(), s.now().Add(limiter.Second)); ok {
			t.Error("it is promised while nobody knows what was begun")
		}
		alone, local := s.now(), b.clock.now()
		time.Sleep(300 * time.Millisecond)
		b.offset = b.offset.Observe(local, local, alone)
		if begun, ok := b.Promise(s.now(), s.now().Add(limiter.Second)); !ok || begun < alone || begun > s.now() {
			t.Errorf("begun %d, %t, want about %d", begun, ok, alone)
		}
	})
}

func TestAPromiseGoesNotFar(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newFakeStore()
		l, b := standAlone(t, s, true)
		if _, ok := b.Promise(s.now(), s.now().Add(limiter.Micros(MaxPromise/time.Microsecond)+1)); ok {
			t.Error("more than MaxPromise is promised")
		}
		nextWindow()
		requireAlone(t, "without a promise", l, true)
	})
}

// TestADecisionUnderWayKeepsThePromise: what was decided by what was known before is decided
// again.
func TestADecisionUnderWayKeepsThePromise(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newFakeStore()
		l, b := standAlone(t, s, true)
		p, v := l.settings.Load().Params, b.storeTime(storeKey)
		if _, ok := b.Promise(s.now(), s.now().Add(limiter.Second)); !ok {
			t.Fatal("nothing is promised")
		}
		if b.beginLocal(v, p, b.clock.now()) {
			t.Error("a window is begun by what was known before the promise")
		}
		if !b.beginLocal(b.storeTime(storeKey), p, b.clock.now()) {
			t.Error("no window is begun by what is known")
		}
	})
}
