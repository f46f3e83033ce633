package twotier

import (
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weir-dev/weir/pkg/limiter"
	"github.com/weir-dev/weir/pkg/twotier/account"
)

// stream lets a request of each cost come in turn, so often, while calls take a
// millisecond and bring no more than is asked for. It returns what became of each and how
// long it waited.
func stream(t *testing.T, every time.Duration, costs []int64) (all []Decision, waited []time.Duration) {
	t.Helper()
	s := newFakeStore()
	l := open(t, perSecond(1_000_000_000, 1), s)
	nextWindow()
	s.there, s.back = constant(500*time.Microsecond), constant(500*time.Microsecond)
	all, waited = make([]Decision, len(costs)), make([]time.Duration, len(costs))
	var requests sync.WaitGroup
	for i, cost := range costs {
		came := time.Now()
		requests.Go(func() {
			all[i] = acquire(t, l, "", cost)
			waited[i] = time.Since(came)
		})
		time.Sleep(every)
	}
	requests.Wait()
	return all, waited
}

// Requests that come while a call is in progress find some of what it brings before those
// that it was made for do.
func TestThoseThatComeLaterAreNotServedBefore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		costs := make([]int64, 3000)
		for i := range costs {
			costs[i] = 1
		}
		all, waited := stream(t, 250*time.Microsecond, costs)
		for i, d := range all {
			if !d.Allowed || waited[i] > 2*time.Millisecond {
				t.Errorf("request %d, after %v: %+v, want it admitted after two calls at most", i, waited[i], d)
			}
		}
	})
}

func TestALargeCostIsNotServedAfterSmallOnesForEver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		costs := make([]int64, 400)
		for i := range costs {
			costs[i] = 1
			if i%20 == 10 {
				costs[i] = 50
			}
		}
		all, waited := stream(t, 100*time.Microsecond, costs)
		for i, d := range all {
			if !d.Allowed || waited[i] > 3*time.Millisecond {
				t.Errorf("request %d of %d, after %v: %+v", i, costs[i], waited[i], d)
			}
		}
	})
}

// wait puts a request for the cost into the queue of a key that holds credits.
func wait(t *testing.T, k *Key, cost int64) *waiter {
	t.Helper()
	w := &waiter{cost: cost}
	if !k.register(w) {
		t.Fatal("the key is evicted")
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.inflight.queue.add(w)
	return w
}

func TestGrantsToACancelledRequestGoBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := open(t, perSecond(1000, 10), newFakeStore())
		nextWindow()
		acquire(t, l, "", 1)
		k := l.Key("", "")
		had := l.Credits()
		gone, stays, large := wait(t, k, 3), wait(t, k, 2), wait(t, k, 100)
		k.mu.Lock()
		k.setAndPay(l.settings.Load(), k.takeAccount(), l.clock.now())
		k.mu.Unlock()
		if got := l.Credits(); got != had-5 {
			t.Errorf("%d of %d credits are left, want those of two requests less", got, had)
		}
		k.finish(gone)
		if got := l.Credits(); got != had-2 {
			t.Errorf("%d of %d credits are left, want those of one request less", got, had)
		}
		if d, ok := k.decideBeforeCall(stays); !ok || !d.Allowed {
			t.Errorf("who stayed got %+v", d)
		}
		if got := l.Credits(); got != had-2 {
			t.Errorf("%d of %d credits are left after one request knew", got, had)
		}
		if _, ok := k.decideBeforeCall(large); ok || k.inflight.cost != 100 || k.inflight.queue.Len() != 0 {
			t.Errorf("%d wait, %d of them in the queue, after one for 100 could not be paid and left the queue", k.inflight.cost, k.inflight.queue.Len())
		}
		k.finish(large)
		if k.inflight.cost != 0 {
			t.Errorf("%d wait after all have left but one who was served", k.inflight.cost)
		}
		k.finish(stays)
		if k.inflight != nil {
			t.Errorf("the key is busy with %+v after all have left", k.inflight)
		}
		if got := l.Credits(); got != had-2 {
			t.Errorf("%d of %d credits are left in the end", got, had)
		}
	})
}

// A request that comes is not served before those that wait when one of them goes away.
func TestWhatACancelledRequestGivesBackIsForThoseThatWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := open(t, perSecond(1000, 10), newFakeStore())
		nextWindow()
		acquire(t, l, "", 6)
		k := l.Key("", "")
		gone, next, last := wait(t, k, 4), wait(t, k, 3), wait(t, k, 2)
		defer k.finish(next)
		defer k.finish(last)
		k.mu.Lock()
		k.setAndPay(l.settings.Load(), k.takeAccount(), l.clock.now())
		k.mu.Unlock()
		if !gone.decided || next.decided || last.decided {
			t.Fatalf("4 credits paid for 4: %v, for 3: %v, and for 2: %v", gone.decided, next.decided, last.decided)
		}
		k.finish(gone)
		if !next.decided || last.decided || k.inflight.cost != 2 || l.Credits() != 1 {
			t.Errorf("4 credits paid for 3: %v, and for 2: %v; %d wait, and %d credits are left", next.decided, last.decided, k.inflight.cost, l.Credits())
		}
	})
}

// The calls that a request waits for may all come to nothing. Then it is not the limit
// that refuses it.
func TestARequestThatNoCallAnswersIsNotOverTheLimit(t *testing.T) {
	for name, mode := range modes() {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newFakeStore()
				s.back = constant(1100 * time.Millisecond) // each grant comes after its window
				cfg := perSecond(1_000_000_000, 10)
				cfg.Mode, cfg.Timeout = mode, 3*time.Second
				l := open(t, cfg, s)
				answered := make(chan Decision, 1)
				go func() { answered <- acquire(t, l, "", 1) }()
				edit := time.NewTicker(100 * time.Millisecond)
				defer edit.Stop()
				for range time.Minute / (100 * time.Millisecond) {
					select {
					case d := <-answered:
						if d.Allowed || d.Source != FromFailureAction || s.count(limiter.Take) != maxRounds {
							t.Errorf("got %+v after %d calls, want a refusal for want of the store after %d", d, s.count(limiter.Take), maxRounds)
						}
						return
					case <-edit.C:
						l.Reconfigure(cfg)
					}
				}
				t.Error("a request waits for a minute")
			})
		})
	}
}

// One that finds credits when it comes back is not served a second time.
func TestAServedRequestStopsWaiting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := open(t, perSecond(1000, 10), newFakeStore())
		nextWindow()
		acquire(t, l, "", 1)
		k := l.Key("", "")
		w := wait(t, k, 3)
		defer k.finish(w)
		if d, c, err := k.join(t.Context(), w); c != nil || err != nil || !d.Allowed {
			t.Fatalf("%+v, %v", d, err)
		}
		had := l.Credits()
		k.mu.Lock()
		k.setAndPay(l.settings.Load(), k.takeAccount(), l.clock.now())
		k.mu.Unlock()
		if got := l.Credits(); got != had {
			t.Errorf("%d of %d credits are left", got, had)
		}
	})
}

// A store that grants less than all wait for grants at least what a call asks for.
func TestACallPaysForTheNextInTheQueue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newFakeStore()
		l := open(t, perSecond(1000, 10), s)
		nextWindow()
		k := l.Key("", "")
		defer k.finish(wait(t, k, 70))
		acquire(t, l, "", 1)
		if c := applied(s)[0]; c.Min != 70 {
			t.Errorf("a call asks for %d at least, want what the first in the queue costs", c.Min)
		}
	})
}

// hold gives the account of a key of a bucket the credits in front and behind, for
// those that wait.
func hold(k *Key, front, behind int64) {
	k.mu.Lock()
	defer k.mu.Unlock()
	now := k.limiter().clock.now()
	a := k.takeAccount()
	for part, credits := range map[*account.Grant]int64{&a.Front: front, &a.Back: behind} {
		*part = account.Grant{Credits: credits, Deadline: now + int64(100*time.Millisecond), Charge: account.Charge{ByTime: true, At: limiter.Instant(1 + credits)}}
	}
	k.setAndPay(k.limiter().settings.Load(), a, now)
}

func bucketKey(t *testing.T) *Key {
	t.Helper()
	cfg := byTime(limiter.TokenBucket, Leased)
	cfg.LowWater = 0
	return open(t, cfg, newFakeStore()).Key("", "")
}

func TestThoseThatWaitArePaidFromBehind(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := bucketKey(t)
		large, small, last := wait(t, k, 5), wait(t, k, 1), wait(t, k, 4)
		for _, w := range []*waiter{large, small, last} {
			defer k.finish(w)
		}
		hold(k, 1, 8)
		if !large.decided || !small.decided || last.decided {
			t.Errorf("9 credits paid for 5: %v, for 1: %v, and for 4: %v", large.decided, small.decided, last.decided)
		}
		if k.inflight.cost != 4 {
			t.Errorf("%d wait, want 4", k.inflight.cost)
		}
	})
}

// A request that asks for itself in the end need not, if it finds what pays behind.
func TestARequestThatAsksForItselfFirstLooksForCreditsBehind(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := bucketKey(t)
		hold(k, 1, 8)
		w := wait(t, k, 5)
		defer k.finish(w)
		if d, ok := k.decideBeforeCall(w); !ok || !d.Allowed {
			t.Errorf("8 credits behind did not pay for 5: %+v", d)
		}
	})
}

// A thread may lose the processor for long between being served and being woken.
func TestCreditsThatDiedBeforeTheWaitingRequestWokeAdmitNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := bucketKey(t)
		w := wait(t, k, 3)
		defer k.finish(w)
		hold(k, 8, 0)
		time.Sleep(100 * time.Millisecond)
		k.mu.Lock()
		defer k.mu.Unlock()
		if d, ok := k.takeDecision(w); ok || k.inflight.cost != 3 {
			t.Errorf("decided %+v, and %d wait", d, k.inflight.cost)
		}
	})
}

// A request that waits for an answer of a store that no longer serves may do so for long.
// It must not hold what another one grants meanwhile.
func TestAnotherStoreServesTheRequestsThatAskIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := bucketKey(t)
		w := wait(t, k, 3)
		defer k.finish(w)
		k.dropStore()
		hold(k, 8, 0)
		if w.decided {
			t.Errorf("decided %+v", w.decision)
		}
	})
}

// Calls of requests that ask for themselves go beside leases, and may end later.
func TestTheAnswerToOneRequestIsNotTheAnswerToALease(t *testing.T) {
	for mode, want := range map[Mode]bool{Strict: false, CachedDeny: true, Leased: false} {
		cfg := perSecond(10, 1)
		cfg.Mode = mode
		if got := (&settings{Config: cfg.normalize()}).remembersReplies(); got != want {
			t.Errorf("%v remembers: %v", mode, got)
		}
	}
	if !(&settings{Config: byTime(limiter.TokenBucket, Leased).normalize()}).remembersReplies() {
		t.Error("a refusal by a bucket is not remembered where leases come too late")
	}
}
