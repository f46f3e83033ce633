package twotier

import (
	"testing"
	"testing/synctest"
	"time"
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
