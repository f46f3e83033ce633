package twotier

import (
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weir-dev/weir/pkg/limiter"
)

func modes() map[string]Mode {
	return map[string]Mode{"leased": Leased, "cached deny": CachedDeny, "strict": Strict}
}

func draining(cfg Config) Config {
	cfg.Draining = true
	return cfg
}

func TestADrainedStoreIsNeitherAskedNorSpentFrom(t *testing.T) {
	for name, mode := range modes() {
		for action, a := range map[string]Action{"allow": Allow, "deny": Deny, "local share": LocalShare} {
			t.Run(name+", "+action, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					s := newFakeStore()
					cfg := perSecond(100, 10)
					cfg.Mode, cfg.OnUnavailable = mode, a
					l := open(t, cfg, s)
					acquire(t, l, "", 1)
					acquire(t, l, "key", 1)
					l.Reconfigure(draining(cfg))
					calls := s.count(limiter.Take)
					for _, down := range []error{nil, errDown} {
						s.set(func() { s.down = down })
						for _, value := range []string{"", "key", "another"} {
							d := acquire(t, l, value, 1)
							if d.Allowed || d.Source != FromDrain || d.RetryAfter <= 0 {
								t.Errorf("%q: got %+v, want a refusal that says why and until when", value, d)
							}
						}
						nextWindow()
					}
					if f, err := l.Peek(t.Context(), Request{Cost: 1}); err != nil || f.Unread == nil || f.Source != FromDrain || s.count(limiter.Peek) > 0 {
						t.Errorf("peeked into a store that is drained: %+v, %v", f, err)
					}
					if got := s.count(limiter.Take); got != calls {
						t.Errorf("%d calls while the store is drained, want none", got-calls)
					}
					s.set(func() { s.down = nil })
					l.Reconfigure(cfg)
					if d := acquire(t, l, "", 1); !d.Allowed {
						t.Errorf("refused after the drain was called off: %+v", d)
					}
				})
			})
		}
	}
}

// TestAPendingLimitAsksNobody: its action decides, and a window that began on the local share
// ends on it.
func TestAPendingLimitAsksNobody(t *testing.T) {
	for name, mode := range modes() {
		for action, c := range map[string]struct {
			Action
			admits, then int64 // of 100 requests in a second, and of 100 more when it is pending no more
		}{
			"allow":       {Allow, 100, 50},
			"deny":        {Deny, 0, 50},
			"local share": {LocalShare, 5, 0}, // half of its part, by its own clock
		} {
			t.Run(name+", "+action, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					s := newFakeStore()
					cfg := perSecond(50, 10)
					cfg.Mode, cfg.OnUnavailable, cfg.Holders, cfg.LowWater, cfg.Pending = mode, c.Action, 5, 5, true
					l, began := open(t, cfg, s), time.Now()
					nextWindow()
					nextWindow()
					if got := admitted(t, l, 100); got != c.admits {
						t.Errorf("admitted %d, want %d", got, c.admits)
					}
					if f, err := l.Peek(t.Context(), Request{Cost: 1}); err != nil || f.Unread == nil {
						t.Errorf("peeked: %+v, %v", f, err)
					}
					if s.count(limiter.Take) > 0 || s.count(limiter.Peek) > 0 {
						t.Error("the store was asked")
					}
					l.Reconfigure(cfg)
					if got := l.Stats(); got.CutOff == nil || !got.CutOffSince.Equal(began) {
						t.Errorf("cut off since %v by %v, want since %v", got.CutOffSince, got.CutOff, began)
					}
					cfg.Pending = false
					l.Reconfigure(cfg)
					if got := l.Stats(); got.CutOff != nil || !got.CutOffSince.IsZero() {
						t.Errorf("cut off by %v when it is in force", got.CutOff)
					}
					if got := admitted(t, l, 100); got != c.then {
						t.Errorf("admitted %d when it is in force, want %d", got, c.then)
					}
				})
			})
		}
	}
}

func TestADrainGivesCreditsBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newFakeStore()
		cfg := perSecond(100, 10)
		l := open(t, cfg, s)
		acquire(t, l, "", 4)
		l.Reconfigure(draining(cfg))
		synctest.Wait()
		if got := granted(s); got != 4 {
			t.Errorf("the store counts %d granted, want the 4 spent", got)
		}
	})
}

func TestAGrantOnItsWayWhenTheDrainBeginsIsNotSpent(t *testing.T) {
	for name, mode := range modes() {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newFakeStore()
				s.back = constant(50 * time.Millisecond)
				cfg := perSecond(100, 10)
				cfg.Mode = mode
				l := open(t, cfg, s)
				done := make(chan Decision)
				go func() { done <- acquire(t, l, "", 1) }()
				synctest.Wait()
				l.Reconfigure(draining(cfg))
				if d := <-done; d.Allowed || d.Source != FromDrain {
					t.Errorf("got %+v, want a refusal by the drain", d)
				}
				time.Sleep(200 * time.Millisecond)
				if got := granted(s); got != 0 {
					t.Errorf("the store counts %d granted, want all given back", got)
				}
			})
		})
	}
}

func TestAnotherStoreTakesOverUnderTheSameKeys(t *testing.T) {
	for name, mode := range modes() {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				first, second := newFakeStore(), newFakeStore()
				cfg := perSecond(100, 10)
				cfg.Mode = mode
				l := open(t, cfg, first)
				k := l.Key("key", "")
				acquire(t, l, "key", 1)
				l.Swap(cfg, newBreaker(second, l.clock))
				asked := len(first.commands)
				if d := acquire(t, l, "key", 1); !d.Allowed {
					t.Errorf("refused by the second store: %+v", d)
				}
				synctest.Wait()
				if len(first.commands) != asked || second.count(limiter.Take) != 1 {
					t.Errorf("%d commands for the first store and %d for the second, want none and one", len(first.commands)-asked, second.count(limiter.Take))
				}
				if l.Key("key", "") != k || l.Stats().ActiveKeys != 1 || l.Stats().RoundTrips < 2 {
					t.Errorf("the keys and figures are gone: %+v", l.Stats())
				}
			})
		})
	}
}

func TestALateReplyOfTheOldStoreIsNotUsed(t *testing.T) {
	for name, mode := range modes() {
		for answer, err := range map[string]error{"a grant": nil, "an error": errDown} {
			t.Run(name+", "+answer, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					first, second := newFakeStore(), newFakeStore()
					first.back = constant(80 * time.Millisecond)
					cfg := perSecond(100, 10)
					cfg.Mode, cfg.OnUnavailable = mode, Allow
					if err != nil {
						first.down, first.there = err, constant(80*time.Millisecond)
					}
					l := open(t, cfg, first)
					old := make(chan Decision)
					go func() { old <- acquire(t, l, "", 1) }()
					synctest.Wait()
					l.Swap(cfg, newBreaker(second, l.clock))
					before := time.Now()
					if d := acquire(t, l, "", 1); !d.Allowed || time.Since(before) != 0 {
						t.Errorf("allowed %v after %v, want at once: another call is not a reason to wait", d.Allowed, time.Since(before))
					}
					if d := <-old; !d.Allowed || d.Source == FromFailureAction {
						t.Errorf("the request that waited got %+v, want an admission by the second store", d)
					}
					spent := int64(2)
					synctest.Wait()
					held := l.single.lease.Load().held(l.clock.now())
					if got := granted(second); got != spent+held {
						t.Errorf("the second store counts %d granted, but %d were spent and %d are held", got, spent, held)
					}
				})
			})
		}
	}
}

func TestCancelAfterASwapGivesTheNewStoreNothing(t *testing.T) {
	for name, mode := range modes() {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				first, second := newFakeStore(), newFakeStore()
				cfg := perSecond(10, 10)
				cfg.Mode = mode
				l := open(t, cfg, first)
				d := acquire(t, l, "", 4)
				l.Swap(cfg, newBreaker(second, l.clock))
				acquire(t, l, "", 4)
				d.Cancel()
				synctest.Wait()
				if got := 4 + admitted(t, l, 20); got != 10 {
					t.Errorf("admitted %d by the second store, want 10", got)
				}
			})
		})
	}
}

// TestANewStoreThatDoesNotAnswerOpensNoLocalShareOfTheOpenWindow: the old store may
// have granted all of it.
func TestANewStoreThatDoesNotAnswerOpensNoLocalShareOfTheOpenWindow(t *testing.T) {
	for name, heard := range map[string]bool{
		"a store that never answered":                     false,
		"a store that another limiter heard of, long ago": true,
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				first, second := newFakeStore(), newFakeStore()
				cfg := perSecond(100, 10)
				cfg.OnUnavailable, cfg.Holders = LocalShare, 1
				l := open(t, cfg, first)
				breaker := newBreaker(second, l.clock)
				if heard {
					other := open(t, cfg, breaker)
					acquire(t, other, "", 1)
					time.Sleep(3 * time.Second)
				}
				if got := admitted(t, l, 200); got != 100 {
					t.Fatalf("the first store granted %d, want 100", got)
				}
				second.down = errDown
				l.Swap(cfg, breaker)
				swapped := time.Now()
				for time.Since(swapped) < time.Second {
					if acquire(t, l, "", 1).Allowed && time.Now().Unix() == swapped.Unix() {
						t.Fatalf("admitted alone %s after the swap", time.Since(swapped))
					}
					time.Sleep(5 * time.Millisecond)
				}
				time.Sleep(1200 * time.Millisecond)
				if got := admitted(t, l, 200); got == 0 {
					t.Error("nothing is admitted alone in later windows")
				}
			})
		})
	}
}

func TestAGroupThatWaitsIsNotAskedForOfADrainedStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, s := slowStrict(t, Strict, 10)
		var requests sync.WaitGroup
		all := crowd(t, l, 5, &requests)
		l.Reconfigure(draining(l.settings.Load().Config))
		requests.Wait()
		for i, d := range all {
			if d.Allowed || d.Source != FromDrain {
				t.Errorf("request %d: %v from %v, want a refusal that says why", i, d.Allowed, d.Source)
			}
		}
		if got := s.count(limiter.Take); got != 1 {
			t.Errorf("the store was asked %d times, want once, before the drain", got)
		}
	})
}

func TestNobodyWaitsForTheStoreBefore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, _ := slowStrict(t, Strict, 10)
		var requests sync.WaitGroup
		crowd(t, l, 5, &requests)
		l.Swap(l.settings.Load().Config, newFakeStore())
		begin := time.Now()
		if d := acquire(t, l, "", 1); !d.Allowed || time.Since(begin) > 0 {
			t.Errorf("%v after %v, want an admission by the new store at once", d.Allowed, time.Since(begin))
		}
		requests.Wait()
	})
}
