package twotier

import (
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weir-dev/weir/pkg/limiter"
	"github.com/weir-dev/weir/pkg/twotier/account"
)

// shortLived returns a limit of 1000 a second whose credits live for 50 ms.
func shortLived(a limiter.Algorithm) Config {
	cfg := perSecond(1000, 10)
	cfg.Params.Algorithm, cfg.Params.Lifetime = a, 50*limiter.Millisecond
	if a == limiter.SlidingWindow {
		cfg.Params.Buckets = 10
	}
	return cfg
}

func TestAStoreSlowerThanTheLifetimeDecidesEachRequest(t *testing.T) {
	for _, a := range []limiter.Algorithm{limiter.TokenBucket, limiter.GCRA, limiter.SlidingWindow, limiter.SlidingLog} {
		t.Run(a.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newFakeStore()
				l := open(t, shortLived(a), s)
				s.there, s.back = constant(30*time.Millisecond), constant(30*time.Millisecond)
				for i := range 50 {
					if d := acquire(t, l, "", 1); !d.Allowed || d.Source != FromStore || !l.Stats().Slow {
						t.Fatalf("request %d: %+v, slow %v", i, d, l.Stats().Slow)
					}
					time.Sleep(100 * time.Millisecond)
				}
				var asked int64
				for _, c := range applied(s) {
					asked += c.Want
				}
				if most := int64(50 + mostLate*10); asked > most {
					t.Errorf("%d units were asked for, want at most %d", asked, most)
				}
				s.set(func() { s.there, s.back = constant(time.Millisecond), constant(time.Millisecond) })
				acquire(t, l, "", 1)
				calls := s.count(limiter.Take)
				if got := admitted(t, l, 10); got != 10 || s.count(limiter.Take) != calls+1 || l.Stats().Slow {
					t.Errorf("%d of 10 by %d calls, want all by one lease again", got, s.count(limiter.Take)-calls)
				}
			})
		})
	}
}

// Each grant is for the request that waited for it: nobody else spends what is late.
func TestALateRequestIsAdmittedOncePerGrant(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newFakeStore()
		cfg := shortLived(limiter.SlidingLog)
		cfg.Params.Rates[0].Limit = 60
		l := open(t, cfg, s)
		s.there, s.back = constant(30*time.Millisecond), constant(30*time.Millisecond)
		acquire(t, l, "", 1)
		time.Sleep(2 * time.Second)
		var requests sync.WaitGroup
		all := crowd(t, l, 100, &requests)
		requests.Wait()
		got, window := 0, s.count(limiter.Take)
		for _, d := range all {
			if d.Allowed {
				got++
			}
		}
		if got != 60 {
			t.Errorf("%d of 100 admitted at once, limit 60", got)
		}
		if d := acquire(t, l, "", 1); d.Allowed || s.count(limiter.Take) != window {
			t.Errorf("got %+v after %d calls more, want a refusal that is remembered", d, s.count(limiter.Take)-window)
		}
	})
}

// One reply that is late says little: leases go on, and only what lives is spent.
func TestALateReplyDoesNotEndLeases(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newFakeStore()
		l := open(t, shortLived(limiter.TokenBucket), s)
		late := 1
		s.back = func() time.Duration {
			late--
			return time.Duration(max(0, late+1)) * 60 * time.Millisecond
		}
		if d := acquire(t, l, "", 1); !d.Allowed || d.Source != FromLease || s.count(limiter.Take) != 2 {
			t.Errorf("got %+v after %d calls, want it from a second lease", d, s.count(limiter.Take))
		}
	})
}

// A store at the edge costs a lease at a time, not mostLate.
func TestAStoreThatIsSlowAgainIsFoundOutByOneLease(t *testing.T) {
	var s slowness
	reply := func(took time.Duration) account.Reply {
		return account.Reply{Received: int64(took), Result: limiter.Result{Algorithm: limiter.GCRA, ExpiresIn: 50 * limiter.Millisecond}}
	}
	cfg := &settings{Config: shortLived(limiter.GCRA).normalize()}
	hear := func(took time.Duration, times int) {
		for range times {
			s.observe(reply(took), int64(took))
		}
	}
	for i, step := range []struct {
		took  time.Duration
		times int
		want  bool
	}{{60 * time.Millisecond, mostLate - 1, false}, {60 * time.Millisecond, 9, true}, {time.Millisecond, 1, false}, {60 * time.Millisecond, 1, true}, {time.Millisecond, 9, false}} {
		if hear(step.took, step.times); s.tooSlow(cfg) != step.want {
			t.Errorf("step %d: slow %v, want %v", i, s.tooSlow(cfg), step.want)
		}
	}
}
