package twotier

import (
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weir-dev/weir/pkg/limiter"
	"github.com/weir-dev/weir/pkg/store"
)

var storeKey store.Key

func TestFailureActionDecidesWhileTheStoreIsUnavailable(t *testing.T) {
	for name, tc := range map[string]struct {
		action      Action
		wantAllowed bool
		wantSource  Source
	}{
		"allow":                         {Allow, true, FromFailureAction},
		"deny":                          {Deny, false, FromFailureAction},
		"local share, store never seen": {LocalShare, true, FromLocalShare},
	} {
		for mode, m := range map[string]Mode{"leased": Leased, "strict": Strict} {
			t.Run(name+", "+mode, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					s := newFakeStore()
					s.down = errDown
					cfg := perSecond(100, 10)
					cfg.OnUnavailable, cfg.Mode = tc.action, m
					d := acquire(t, open(t, cfg, s), "", 1)
					if d.Allowed != tc.wantAllowed || d.Source != tc.wantSource {
						t.Errorf("got allowed %v from %v", d.Allowed, d.Source)
					}
					if !d.Allowed && d.RetryAfter <= 0 {
						t.Error("no time to retry")
					}
				})
			})
		}
	}
}

func TestCreditsInHandOutliveTheStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newFakeStore()
		l := open(t, perSecond(100, 10), s)
		acquire(t, l, "", 1)
		s.set(func() { s.down = errDown })
		if got := admitted(t, l, 20); got != 9 {
			t.Errorf("admitted %d without the store, want the 9 in hand", got)
		}
	})
}

// A store that carries out what it is asked but whose answers are lost is asked for no
// more than the waiting requests need, except the first time: its grants are lost with
// the answers.
func TestLostAnswersStrandOneLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newFakeStore()
		cfg := perSecond(100_000, 1000)
		cfg.Params.Rates[0].Window = 60 * limiter.Second
		l := open(t, cfg, s)
		granted := func() (sum int64) {
			s.set(func() {
				for _, state := range s.keys {
					sum += state.Meters[0].Used
				}
			})
			return sum
		}
		acquire(t, l, "", 1000)
		s.set(func() { s.lost = func() bool { return true } })
		for range 20 {
			acquire(t, l, "", 2)
			time.Sleep(500 * time.Millisecond)
		}
		if got := granted(); got > 1000+1000+20*2 {
			t.Errorf("%d units were granted while no answer came, want one lease of 1000 and 2 for each attempt", got-1000)
		}
		s.set(func() { s.lost = func() bool { return false } })
		time.Sleep(2 * time.Second)
		before := granted()
		acquire(t, l, "", 2)
		acquire(t, l, "", 2)
		if got := granted() - before; got != 1002 {
			t.Errorf("%d units are leased when the store answers again, want 2, and then 1000", got)
		}
	})
}

func TestOtherErrorsAreNeverDecisions(t *testing.T) {
	errBug := errors.New("wrong type of reply")
	for name, action := range map[string]Action{"allow": Allow, "deny": Deny, "local share": LocalShare} {
		for mode, m := range map[string]Mode{"leased": Leased, "strict": Strict} {
			t.Run(name+", "+mode, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					s := newFakeStore()
					s.down = errBug
					cfg := perSecond(100, 10)
					cfg.OnUnavailable, cfg.Mode = action, m
					d, err := open(t, cfg, s).Acquire(t.Context(), Request{Value: "", Cost: 1})
					if d.Allowed || !errors.Is(err, errBug) {
						t.Errorf("got allowed %v and error %v, want the error", d.Allowed, err)
					}
				})
			})
		}
	}
}

func TestLocalShareBeginsWithTheNextWindowAndEndsOnIt(t *testing.T) {
	for name, mode := range map[string]Mode{"leased": Leased, "strict": Strict} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newFakeStore()
				s.ahead = 300 * time.Millisecond
				cfg := perSecond(100, 10)
				cfg.OnUnavailable, cfg.Holders, cfg.Mode = LocalShare, 8, mode
				l := open(t, cfg, s)
				acquire(t, l, "", 10) // the store is at 0.3
				s.set(func() { s.down = errDown })
				if got := admitted(t, l, 20); got != 0 {
					t.Errorf("admitted %d in a window the store had begun", got)
				}
				time.Sleep(720 * time.Millisecond) // 1.02
				d := acquire(t, l, "", 1)
				if !d.Allowed || d.Source != FromLocalShare || d.LocalShare != 12 || d.Windows.Open[0].Index != window(s) {
					t.Errorf("got %+v, want an admission of a share of 12 in window %d", d, window(s))
				}
				s.set(func() { s.down = nil })
				time.Sleep(900 * time.Millisecond) // 1.92: the breaker has let go
				if got := admitted(t, l, 20); got != 11 {
					t.Errorf("admitted %d more, want the 11 left of the share", got)
				}
				time.Sleep(100 * time.Millisecond) // 2.02
				d = acquire(t, l, "", 1)
				if !d.Allowed || d.Source == FromLocalShare {
					t.Errorf("got %v from %v, want an admission from the store", d.Allowed, d.Source)
				}
			})
		})
	}
}

// A share that cannot be begun yet, or is too small, says nothing about the limit: the
// refusal is for want of the store. One that is used up is the limit as it is enforced.
func TestOnlyAShareThatIsUsedUpIsALimitThatIsReached(t *testing.T) {
	requireRefused := func(t *testing.T, when string, d Decision, by Source) {
		t.Helper()
		if d.Allowed || d.Source != by || d.Reason != limiter.Exhausted || d.RetryAfter <= 0 {
			t.Errorf("%s: %+v, want a refusal from %v", when, d, by)
		}
	}
	for name, mode := range modes() {
		for _, anyOf := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, any %t", name, anyOf), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					s := newFakeStore()
					cfg := perSecond(40, 10)
					cfg.Params.Any = anyOf
					cfg.Params.Rates = append(cfg.Params.Rates, limiter.Rate{Limit: 80, Window: 2 * limiter.Second})
					cfg.OnUnavailable, cfg.Holders, cfg.Mode = LocalShare, 8, mode
					l := open(t, cfg, s)
					acquire(t, l, "", 10)
					s.set(func() { s.down = errDown })
					requireRefused(t, "in a window of the store", acquire(t, l, "", 1), FromFailureAction)
					time.Sleep(time.Until(time.Now().Truncate(2 * time.Second).Add(2020 * time.Millisecond)))
					requireRefused(t, "for more than the share", acquire(t, l, "", 11), FromFailureAction)
					want := map[bool]int64{false: 5, true: 10}[anyOf]
					if got := admitted(t, l, 20); got != want {
						t.Errorf("admitted %d, want %d", got, want)
					}
					requireRefused(t, "when the share is used up", acquire(t, l, "", 1), FromLocalShare)
				})
			})
		}
	}
}

func TestLocalShareOfNothingRefuses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newFakeStore()
		s.down = errDown
		cfg := perSecond(5, 1)
		cfg.OnUnavailable = LocalShare
		l := open(t, cfg, s)
		l.SetHolders(6)
		time.Sleep(5 * time.Second)
		if d := acquire(t, l, "", 1); d.Allowed || d.Source != FromFailureAction {
			t.Errorf("got %+v on a share of 5/6, want a refusal for want of the store", d)
		}
	})
}

func TestNoShareWithoutTheNumberOfHolders(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newFakeStore()
		s.down = errDown
		cfg := perSecond(100, 1)
		cfg.OnUnavailable, cfg.Holders = LocalShare, 0
		l := open(t, cfg, s)
		time.Sleep(5 * time.Second)
		if got := admitted(t, l, 10); got != 0 {
			t.Errorf("admitted %d on a share of unknown size", got)
		}
		l.SetHolders(10)
		if got := admitted(t, l, 10); got == 0 {
			t.Error("admitted nothing once the number was known")
		}
	})
}

func TestStrictGrantGoesBackWhenTheWindowBeganOnTheLocalShare(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newFakeStore()
		cfg := perSecond(100, 1)
		cfg.OnUnavailable, cfg.Mode, cfg.Timeout = LocalShare, Strict, 500*time.Millisecond
		cfg.Holders = 10
		l := open(t, cfg, s)
		acquire(t, l, "", 1)
		nextWindow()
		s.set(func() { s.back = constant(200 * time.Millisecond) })
		slow := make(chan Decision)
		go func() {
			d, _ := l.Acquire(t.Context(), Request{Value: "", Cost: 1})
			slow <- d
		}()
		synctest.Wait() // granted, on its way back
		s.set(func() { s.down = errDown })
		if d := acquire(t, l, "", 2); d.Source != FromLocalShare || !d.Allowed { // one of 1 would wait for the other's call
			t.Fatalf("got %v from %v", d.Allowed, d.Source)
		}
		s.set(func() { s.down, s.back = nil, constant(0) })
		if d := <-slow; d.Source != FromLocalShare {
			t.Errorf("decided by %v in a window on the local share", d.Source)
		}
		synctest.Wait()
		if got := granted(s); got != 0 {
			t.Errorf("the store counts %d granted, want the grant given back", got)
		}
	})
}

func TestFirstContactInsideAWindowBegunBlindBringsNoCredits(t *testing.T) {
	for name, mode := range map[string]Mode{"leased": Leased, "strict": Strict} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newFakeStore()
				s.down = errDown
				cfg := perSecond(100, 10)
				cfg.OnUnavailable, cfg.Holders, cfg.Mode = LocalShare, 5, mode
				l := open(t, cfg, s)
				blind := admitted(t, l, 50)
				if blind != 10 {
					t.Errorf("admitted %d without ever having seen the store, want half the share of 20", blind)
				}
				s.set(func() { s.down = nil })
				time.Sleep(500 * time.Millisecond)
				if got := blind + admitted(t, l, 50); got > 20 {
					t.Errorf("admitted %d in one window, want at most the share of 20", got)
				}
				synctest.Wait()
				if got := granted(s); got != 0 {
					t.Errorf("the store counts %d granted, want none kept", got)
				}
				nextWindow()
				if d := acquire(t, l, "", 1); !d.Allowed || d.Source == FromLocalShare {
					t.Errorf("got %v from %v in the next window, want an admission from the store", d.Allowed, d.Source)
				}
			})
		})
	}
}
