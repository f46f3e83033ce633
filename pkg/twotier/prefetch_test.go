package twotier

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/weir-dev/weir/pkg/limiter"
)

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
