package twotier

import (
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weir-dev/weir/pkg/limiter"
)

// In a long window many values come once. Their keys are not kept up to its end.
func TestKeysWithoutCreditsMakeRoomInALongWindow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cfg := hourly(100, 10)
		cfg.MaxKeys = 20
		l := open(t, cfg, newFakeStore())
		for i := range 200 {
			if d := acquire(t, l, fmt.Sprint(i), 1); !d.Allowed || d.Remaining < 90 {
				t.Fatalf("client %d, the first request: %+v", i, d)
			}
			time.Sleep(time.Second) // by 15 s a key has given all back
			synctest.Wait()
		}
	})
}

func TestKeysOfLeastUseMakeRoom(t *testing.T) {
	const holds, uses, used, owes = "holds credits", "has spent its credits", "is used up", "is in debt"
	for name, tc := range map[string]struct {
		keys []string // that fill the table
		want string   // that makes room, "" for none
	}{
		"spent before refusing":    {[]string{holds, used, uses}, uses},
		"spent before in debt":     {[]string{owes, uses}, uses},
		"in debt before needed":    {[]string{owes, holds}, owes},
		"refusing before needed":   {[]string{holds, used}, used},
		"none that holds credits":  {[]string{holds}, ""},
		"one although two could":   {[]string{uses, uses}, uses},
		"refusing, several of it":  {[]string{used, used}, used},
		"spent beside many needed": {[]string{holds, holds, uses}, uses},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				cfg := perSecond(10, 5)
				cfg.MaxKeys = len(tc.keys)
				l := open(t, cfg, newFakeStore())
				for i, kind := range tc.keys {
					cost := map[string]int64{holds: 1, uses: 5, used: 10, owes: 5}[kind]
					if d := acquire(t, l, fmt.Sprint(i), cost); kind == owes {
						d.Settle(cost + 2)
					}
				}
				if got := !l.Key("another", "").isShared(); got != (tc.want != "") {
					t.Errorf("room for another: %v", got)
				}
				left := 0
				for i, kind := range tc.keys {
					if l.keys.find(fmt.Sprint(i), "") != nil {
						left++
					} else if kind != tc.want {
						t.Errorf("the key that %s made room", kind)
					}
				}
				if want := len(tc.keys) - 1; tc.want != "" && left != want {
					t.Errorf("%d keys are left, want %d", left, want)
				}
			})
		})
	}
}

func TestAKeyWithCreditsBehindIsNeeded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cfg := byTime(limiter.TokenBucket, Leased)
		cfg.LowWater, cfg.Holders, cfg.Size.Batch, cfg.MaxKeys = 0, 1, 5, 1
		l := open(t, cfg, newFakeStore())
		acquire(t, l, "a", 4) // 1 held
		acquire(t, l, "a", 2) // of a second grant, which has 3 more
		acquire(t, l, "a", 3)
		if k := l.Key("a", ""); k.lease.Load().held(l.clock.now()) > 0 || l.Credits() != 1 {
			t.Fatal("the test tests little")
		}
		if l.Key("b", ""); l.keys.find("a", "") == nil {
			t.Error("a key made room that has credits")
		}
	})
}

func TestAKeyWithACallUnderWayIsNeeded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newFakeStore()
		s.back = constant(20 * time.Millisecond)
		cfg := perSecond(10, 5)
		cfg.MaxKeys = 1
		l := open(t, cfg, s)
		var request sync.WaitGroup
		request.Go(func() { acquire(t, l, "a", 1) })
		synctest.Wait()
		if l.Key("b", ""); l.keys.find("a", "") == nil {
			t.Error("a key made room that is asking the store")
		}
		request.Wait()
	})
}

// A refused client may go on asking. That costs nothing while there is room, and does
// not cost a store call each when there is not.
func TestAFloodOfRefusedValuesDoesNotFloodTheStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newFakeStore()
		cfg := hourly(1, 1)
		cfg.MaxKeys, cfg.ReturnIdleAfter = 50, 0
		l := open(t, cfg, s)
		const requests, apart = 10_000, 100 * time.Microsecond
		for i := range requests {
			acquire(t, l, fmt.Sprint(i%100), 1)
			time.Sleep(apart)
		}
		most := 2*cfg.MaxKeys + int(requests*apart/time.Duration(evictionInterval))
		if got := s.count(limiter.Take); got > most {
			t.Errorf("%d store calls for %d requests that are refused, want at most %d", got, requests, most)
		}
	})
}

func TestAKeyThatIsUsedUpStaysUsedUpWhenItMadeRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cfg := perSecond(10, 10)
		cfg.MaxKeys = 1
		l := open(t, cfg, newFakeStore())
		acquire(t, l, "a", 10)
		acquire(t, l, "b", 10) // takes the place of a
		time.Sleep(time.Duration(evictionInterval))
		if d := acquire(t, l, "a", 1); d.Allowed || l.Key("a", "").isShared() {
			t.Errorf("got %+v, want a refusal by the counter of a", d)
		}
	})
}

func TestCreditsReturnedToAnEvictedKeyGoToTheStore(t *testing.T) {
	for expiry, want := range map[Expiry]int64{Coupled: 5, CarryOver: 10} { // carried credits may be of any window
		synctest.Test(t, func(t *testing.T) {
			s := newFakeStore()
			cfg := perSecond(10, 5)
			cfg.MaxKeys, cfg.Expiry = 1, expiry
			l := open(t, cfg, s)
			d := acquire(t, l, "a", 5)
			acquire(t, l, "b", 5) // takes the place of a
			d.Cancel()
			synctest.Wait()
			if got := granted(s); got != want {
				t.Errorf("the store counts %d granted, want %d", got, want)
			}
		})
	}
}

func TestADebtIsNotLeftWithAKeyThatMadeRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newFakeStore()
		cfg := perSecond(10, 5)
		cfg.MaxKeys = 1
		l := open(t, cfg, s)
		d := acquire(t, l, "a", 5)
		acquire(t, l, "b", 5) // takes the place of a
		d.Settle(9)
		if d := acquire(t, l, "a", 2); d.Allowed {
			t.Error("admitted 11 of 10")
		}
	})
}

func TestNothingIsFetchedAheadForAKeyThatMadeRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newFakeStore()
		cfg := perSecond(10, 5)
		cfg.MaxKeys, cfg.LowWater = 1, 1
		l := open(t, cfg, s)
		acquire(t, l, "a", 3)
		synctest.Wait()
		k := l.Key("a", "")
		e := k.lease.Load()
		e.take(2) // a request that does so is about to fetch ahead, but for a moment
		l.Key("b", "")
		calls := s.count(limiter.Take)
		k.prefetch(e)
		synctest.Wait()
		if got := s.count(limiter.Take); !k.evicted || got != calls {
			t.Errorf("evicted %v, %d calls more", k.evicted, got-calls)
		}
	})
}
