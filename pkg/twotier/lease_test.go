package twotier

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/weir-dev/weir/pkg/limiter"
)

func TestLeaseCostsOneRoundTripABatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newFakeStore()
		l := open(t, perSecond(1000, 10), s)
		if got := admitted(t, l, 100); got != 100 {
			t.Errorf("admitted %d of 100 within the limit", got)
		}
		if got := s.count(limiter.Take); got != 10 {
			t.Errorf("%d store calls for 100 requests in batches of 10, want 10", got)
		}
	})
}

func TestExhaustionIsRememberedToTheWindowsEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newFakeStore()
		l := open(t, perSecond(25, 10), s)
		if got := admitted(t, l, 100); got != 25 {
			t.Errorf("admitted %d, want the limit 25", got)
		}
		if got := s.count(limiter.Take); got != 3 {
			t.Errorf("%d store calls, want 3: the third took the rest and so foretells the refusal", got)
		}
		d := acquire(t, l, "", 1)
		if d.RetryAfter <= 0 || d.RetryAfter > time.Second || d.Reason != limiter.Exhausted {
			t.Errorf("refused with %v after %v, want Exhausted within the window", d.Reason, d.RetryAfter)
		}
		time.Sleep(d.RetryAfter)
		if got := admitted(t, l, 100); got != 25 {
			t.Errorf("admitted %d in the window after RetryAfter, want 25", got)
		}
	})
}
