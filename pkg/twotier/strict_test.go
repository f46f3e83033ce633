package twotier

import (
	"testing"
	"testing/synctest"

	"github.com/weir-dev/weir/pkg/limiter"
)

func TestStrictAsksForEveryRequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newFakeStore()
		cfg := perSecond(10, 5)
		cfg.Mode = Strict
		l := open(t, cfg, s)
		if got := admitted(t, l, 15); got != 10 {
			t.Errorf("admitted %d, want 10", got)
		}
		if got := s.count(limiter.Take); got != 15 {
			t.Errorf("%d store calls for 15 requests, want 15", got)
		}
		for _, c := range s.commands {
			if c.Min != 1 || c.Want != 1 {
				t.Errorf("asked for %d to %d, want exactly the cost 1", c.Min, c.Want)
			}
		}
	})
}
