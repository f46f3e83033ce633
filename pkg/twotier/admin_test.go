package twotier

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/weir-dev/weir/pkg/limiter"
)

// TestCreditsAreThoseThatCanBeSpent: the rest of each key's lease, until its window is
// over.
func TestCreditsAreThoseThatCanBeSpent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := open(t, perSecond(1000, 10), newFakeStore())
		if got := l.Credits(); got != 0 {
			t.Errorf("%d credits before a lease", got)
		}
		acquire(t, l, "a", 1)
		acquire(t, l, "b", 3)
		acquire(t, l, "", 1)
		if got := l.Credits(); got != 9+7+9 {
			t.Errorf("%d credits, want what 10 each leave", got)
		}
		<-time.After(time.Second) // on the bubble's clock: past the window
		if got := l.Credits(); got != 0 {
			t.Errorf("%d credits of a window that is over", got)
		}
	})
}

func TestAStoreThatForgotShowsForAsLong(t *testing.T) {
	for _, reason := range []limiter.Reason{limiter.Amnesia, limiter.ClockBehind, limiter.Exhausted} {
		synctest.Test(t, func(t *testing.T) {
			s := newFakeStore()
			forgets := true
			s.hook = func(_ limiter.Command, res limiter.Result) limiter.Result {
				if forgets {
					return limiter.Result{Reason: reason, RetryAfter: 10 * limiter.Second, Now: res.Now}
				}
				return res
			}
			l := open(t, perSecond(100, 10), s)
			wants := func(lasts time.Duration) {
				t.Helper()
				want := reason
				if reason == limiter.Exhausted {
					want, lasts = limiter.Granted, 0
				}
				if lasts <= 0 {
					want = limiter.Granted
				}
				if got := l.Stats(); got.Learning != want || got.LearningFor != max(0, lasts) {
					t.Errorf("%v for %s, want %v for %s", got.Learning, got.LearningFor, want, lasts)
				}
			}
			wants(0)
			acquire(t, l, "a", 1)
			wants(10 * time.Second)
			time.Sleep(4 * time.Second)
			wants(6 * time.Second)
			forgets = false
			acquire(t, l, "b", 1) // another key of the same memory
			wants(0)
			forgets = true
			acquire(t, l, "c", 1)
			time.Sleep(10 * time.Second)
			wants(0)
		})
	}
}
