package concurrency

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weir-dev/weir/pkg/limiter"
	"github.com/weir-dev/weir/pkg/monotonic"
)

// Nothing is admitted from the queue while the guard is fenced, also of a key that has nothing in
// flight. When there is a share again all keys have theirs.
func TestTheQueueOfAKeyIsFenced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		way := newLine(constant(2))
		g := open(t, keyQueued(2, 8, 60*limiter.Second), way)
		held := []Slot{ask(t, g, "gold", Admitted), ask(t, g, "gold", Admitted)}
		q := newQueuer(t, g)
		q.askOf(t.Context(), "gold", "gold 1")
		q.askOf(t.Context(), "gold", "gold 2")
		way.set(func() { way.err = errDown })
		pass(3 * time.Second)
		q.askOf(t.Context(), "free", "free 1")
		release(held)
		if s := g.Stats(); !s.Fenced || s.Queued != 3 || s.Keys != 0 {
			t.Errorf("%+v, want 3 that wait while it is fenced", s)
		}
		q.expect()
		way.set(func() { way.err = nil })
		pass(time.Second)
		q.expect("free 1: Admitted at 3.5s", "gold 1: Admitted at 3.5s", "gold 2: Admitted at 3.5s")
		for range 3 {
			release([]Slot{<-q.slots})
		}
	})
}

func TestTheQueueOfAKeyIsClosed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGuard(keyQueued(1, 8, 60*limiter.Second), constant(1), new(monotonic.Clock))
		synctest.Wait()
		held := ask(t, g, "gold", Admitted)
		q := newQueuer(t, g)
		q.askOf(t.Context(), "gold", "waits")
		closed := make(chan struct{})
		go func() {
			g.Close(t.Context())
			close(closed)
		}()
		q.expect("waits: Closed at 0s")
		held.Release(Served)
		<-closed
	})
}

// Without the queue, those that wait are not kept waiting for good.
func TestTheQueueOfAKeyIsRemoved(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := keyQueued(1, 8, 60*limiter.Second)
		g := open(t, c, constant(1))
		held := ask(t, g, "gold", Admitted)
		q := newQueuer(t, g)
		q.askOf(t.Context(), "gold", "waits")
		c.Slots.Queue.MaxLength, c.Slots.Queue.MaxWait = 0, 0
		g.Reconfigure(c)
		q.expect("waits: Expired at 0s")
		ask(t, g, "gold", Full)
		held.Release(Served)
		release([]Slot{ask(t, g, "gold", Admitted)})
	})
}

// Many clients at once, and some of them go away: no key has more than its limit in flight, nothing is
// lost, and all slots come back.
func TestManyWaitForSlotsOfTheirKeys(t *testing.T) {
	const limit = 3
	g := New(keyQueued(limit, 64, 10*limiter.Second), constant(limit))
	defer g.Close(t.Context())
	for {
		if s, v := g.Acquire(t.Context(), Request{Key: "first"}); v == Admitted { // there is a share
			s.Release(Served)
			break
		}
	}
	var mu sync.Mutex
	inFlight := map[string]int{}
	move := func(key string, by int) {
		mu.Lock()
		defer mu.Unlock()
		if inFlight[key] += by; inFlight[key] > limit {
			t.Errorf("%d of %s are in flight", inFlight[key], key)
		}
	}
	var clients sync.WaitGroup
	for n := range uint64(24) {
		clients.Go(func() {
			rng := rand.New(rand.NewPCG(n, 0))
			for range 40 {
				ctx, cancel := context.WithCancel(t.Context())
				if rng.IntN(4) == 0 {
					go cancel()
				}
				key := fmt.Sprint(rng.IntN(3))
				if s, v := g.Acquire(ctx, Request{Key: key}); v == Admitted {
					move(key, 1)
					move(key, -1)
					s.Release(Served)
				}
				cancel()
			}
		})
	}
	clients.Wait()
	if s := g.Stats(); s.InFlight != 0 || s.Keys != 0 || s.Queued != 0 {
		t.Errorf("in the end %+v, want nothing in flight or waiting", s)
	}
}
