package twotier

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/weir-dev/weir/pkg/limiter"
)

// hourly returns a configuration whose idle keys give back after 10 s.
func hourly(limit, batch int64) Config {
	cfg := perSecond(limit, batch)
	cfg.Params.Rates[0].Window = 3600 * limiter.Second
	cfg.ReturnIdleAfter = 10 * time.Second
	return cfg
}

func returned(s *fakeStore) (total int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range s.commands {
		if c.Op == limiter.Return {
			total += c.Want
		}
	}
	return total
}

func TestIdleKeysGiveBackOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newFakeStore()
		l := open(t, hourly(1000, 10), s)
		time.Sleep(4900 * time.Millisecond) // just before somebody looks
		acquire(t, l, "idle", 3)
		for range 99 {
			acquire(t, l, "busy", 1)
			time.Sleep(time.Second / 10)
			synctest.Wait()
		}
		if got := returned(s); got != 0 {
			t.Errorf("%d given back in 9.9 s, want none before 10 s", got)
		}
		for range 52 {
			acquire(t, l, "busy", 1)
			time.Sleep(time.Second / 10)
			synctest.Wait()
		}
		if got := returned(s); got != 7 {
			t.Errorf("%d given back in 15 s, want the 7 of the idle key", got)
		}
		time.Sleep(time.Minute)
		if got := s.count(limiter.Return); got != 2 {
			t.Errorf("%d returns, want one for each key that became idle", got)
		}
		if d := acquire(t, l, "idle", 990); !d.Allowed {
			t.Errorf("refused what is left of 1000 after 3: %+v", d)
		}
	})
}

func TestIdleKeysForfeitWhatIsOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newFakeStore()
		cfg := perSecond(100, 10)
		cfg.ReturnIdleAfter = 2 * time.Second
		l := open(t, cfg, s)
		acquire(t, l, "", 3)
		time.Sleep(10 * time.Second)
		if got := s.count(limiter.Return); got != 0 {
			t.Errorf("%d returns to a window that is over", got)
		}
	})
}

func TestRefusalsOutliveWhatIdleKeysGiveBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newFakeStore()
		l := open(t, hourly(10, 10), s)
		acquire(t, l, "", 3)
		if d := acquire(t, l, "", 9); d.Allowed {
			t.Fatal("admitted 12 of 10")
		}
		time.Sleep(20 * time.Second)
		if got := returned(s); got != 7 {
			t.Errorf("%d given back, want 7", got)
		}
	})
}

// A refusal is of what the store had left. What goes back to it may be granted again.
func TestWhatAnIdleKeyGaveBackIsNotRefusedToIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newFakeStore()
		l := open(t, hourly(10, 10), s) // the batch is the limit: the grant takes the rest
		acquire(t, l, "", 3)
		time.Sleep(30 * time.Second)
		if got := returned(s); got != 7 {
			t.Fatalf("%d given back, want 7", got)
		}
		if d := acquire(t, l, "", 8); d.Allowed || s.count(limiter.Take) != 1 {
			t.Errorf("got %+v after %d calls, want a refusal of 11 of 10 that is known", d, s.count(limiter.Take))
		}
		if d := acquire(t, l, "", 7); !d.Allowed {
			t.Errorf("refused what was given back: %+v", d)
		}
	})
}

func TestNoOneLooksWhenNothingIsToBeReturned(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newFakeStore()
		cfg := hourly(100, 10)
		l := open(t, cfg, s)
		cfg.ReturnIdleAfter = 0
		l.Reconfigure(cfg)
		acquire(t, l, "", 3)
		time.Sleep(time.Minute)
		if got := s.count(limiter.Return); got != 0 {
			t.Errorf("%d returns, want none", got)
		}
		cfg.ReturnIdleAfter = 10 * time.Second
		l.Reconfigure(cfg)
		time.Sleep(time.Minute)
		if got := s.count(limiter.Return); got != 1 {
			t.Errorf("%d returns, want 1", got)
		}
	})
}
