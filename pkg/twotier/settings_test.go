package twotier

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/weir-dev/weir/pkg/limiter"
)

func edited(limit, batch, generation int64) Config {
	cfg := perSecond(limit, batch)
	cfg.Params.Generation = generation
	return cfg
}

func TestEditNeverOpensASecondBudget(t *testing.T) {
	for name, tc := range map[string]struct {
		limit int64
		want  int64 // admitted in all
	}{
		"raised":                         {15, 15},
		"lowered below what was granted": {3, 10},
		"lowered":                        {12, 12},
		"the same":                       {20, 20},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := open(t, edited(20, 10, 1), newFakeStore())
				before := admitted(t, l, 6) // 4 held
				l.Reconfigure(edited(tc.limit, 10, 2))
				if got := before + admitted(t, l, 100); got != tc.want {
					t.Errorf("admitted %d in the window of the edit, want %d", got, tc.want)
				}
				nextWindow()
				if got := admitted(t, l, 100); got != tc.limit {
					t.Errorf("admitted %d in the next window, want %d", got, tc.limit)
				}
			})
		})
	}
}

func TestEditForgetsRefusals(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := open(t, edited(10, 10, 1), newFakeStore())
		admitted(t, l, 20)
		l.Reconfigure(edited(30, 10, 2))
		if got := admitted(t, l, 100); got != 20 {
			t.Errorf("admitted %d after the limit rose from a spent 10 to 30, want 20", got)
		}
	})
}

func TestSwitchToStrictGivesCreditsBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newFakeStore()
		l := open(t, edited(10, 10, 1), s)
		acquire(t, l, "", 4)
		cfg := edited(10, 10, 2)
		cfg.Mode = Strict
		l.Reconfigure(cfg)
		synctest.Wait()
		if got := granted(s); got != 4 {
			t.Errorf("the store counts %d granted, want the 4 spent", got)
		}
		if got := admitted(t, l, 20); got != 6 {
			t.Errorf("admitted %d more, want 6", got)
		}
		if got := s.count(limiter.Take); got != 1+20 {
			t.Errorf("%d store calls, want one for each of 20 strict requests after the lease", got)
		}
	})
}

func TestReplyToAnOldModeBringsNoCredits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newFakeStore()
		s.back = constant(50 * time.Millisecond)
		l := open(t, edited(10, 10, 1), s)
		done := make(chan Decision)
		go func() {
			d, _ := l.Acquire(t.Context(), Request{Value: "", Cost: 1})
			done <- d
		}()
		synctest.Wait()
		cfg := edited(10, 10, 2)
		cfg.Mode = Strict
		l.Reconfigure(cfg)
		var spent int64
		if d := <-done; d.Allowed {
			spent++
		}
		if l.single.lease.Load().held(l.clock.now()) > 0 {
			t.Error("a strict limiter holds credits")
		}
		time.Sleep(time.Second / 2)
		if got := granted(s); got != spent {
			t.Errorf("the store counts %d granted, want the %d that was spent", got, spent)
		}
	})
}

func TestEditChangesTheBoundOfKeys(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cfg := edited(10, 1, 1)
		cfg.MaxKeys = 1
		l := open(t, cfg, newFakeStore())
		acquire(t, l, "a", 1)
		cfg.MaxKeys = 2
		l.Reconfigure(cfg)
		acquire(t, l, "b", 1)
		if got := l.Stats().ActiveKeys; got != 2 {
			t.Errorf("%d active keys after the bound rose to 2, want 2", got)
		}
	})
}

func TestScopeStays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newFakeStore()
		l := open(t, edited(10, 10, 1), s)
		cfg := edited(10, 10, 2)
		cfg.Scope.Policy = "another"
		admitted(t, l, 5)
		l.Reconfigure(cfg)
		admitted(t, l, 20)
		if len(s.keys) != 1 {
			t.Errorf("%d counters at the store, want the one", len(s.keys))
		}
	})
}
