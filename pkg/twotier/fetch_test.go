package twotier

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weir-dev/weir/pkg/limiter"
)

// Whoever misses fetches the lease itself when it has the time. A deadline that is
// near is kept all the same, and the lease comes for those after it.
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

func TestARequestThatIsCancelledSpendsNothingOfWhatItFetched(t *testing.T) {
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
