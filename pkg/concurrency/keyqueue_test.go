package concurrency

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weir-dev/weir/pkg/limiter"
)

// keyQueued is perKey with a queue.
func keyQueued(limit int64, length int, wait limiter.Micros) Config {
	c := perKey("a", limit)
	c.Slots.Queue.MaxLength, c.Slots.Queue.MaxWait = length, wait
	return c
}

// askOf asks for a slot of a key, and waits until it is in the queue or out.
func (q *queuer) askOf(ctx context.Context, key, name string) {
	go func() {
		s, v := q.g.Acquire(ctx, Request{Key: key})
		if v == Admitted {
			q.slots <- s
		}
		q.done <- fmt.Sprintf("%s: %v at %v", name, v, time.Since(q.began).Round(time.Millisecond))
	}()
	synctest.Wait()
}

// A request waits for those of its key alone, and its slot goes to the next of it.
func TestAQueueOfAKeyHoldsUpNoOtherKey(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := open(t, keyQueued(1, 8, 10*limiter.Second), constant(1))
		gold, free := ask(t, g, "gold", Admitted), ask(t, g, "free", Admitted)
		q := newQueuer(t, g)
		q.askOf(t.Context(), "gold", "gold 1")
		q.askOf(t.Context(), "gold", "gold 2")
		q.askOf(t.Context(), "free", "free 1")
		other := ask(t, g, "other", Admitted) // although three wait
		if s := g.Stats(); s.Queued != 3 || s.InFlight != 1 || s.Keys != 3 {
			t.Errorf("%+v, want 3 in the queue and one in flight of each of 3 keys", s)
		}
		pass(100 * time.Millisecond)
		free.Release(Served)
		q.expect("free 1: Admitted at 100ms")
		gold.Release(Served)
		q.expect("gold 1: Admitted at 100ms")
		pass(100 * time.Millisecond)
		release([]Slot{<-q.slots, <-q.slots, other})
		q.expect("gold 2: Admitted at 200ms")
		release([]Slot{<-q.slots})
		if s := g.Stats(); s.Keys != 0 || s.InFlight != 0 || s.Queued != 0 || len(g.waiters) != 0 {
			t.Errorf("%+v, and %d are thought to wait", s, len(g.waiters))
		}
	})
}

// Whatever ends a wait, the slot is that of the next of the key.
func TestTheQueueOfAKeyEndsWaiting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := open(t, keyQueued(1, 8, limiter.Second), constant(1))
		held := ask(t, g, "gold", Admitted)
		q := newQueuer(t, g)
		ctx, cancel := context.WithCancel(t.Context())
		q.askOf(t.Context(), "gold", "patient")
		q.askOf(ctx, "gold", "gone")
		pass(400 * time.Millisecond)
		q.askOf(t.Context(), "gold", "late")
		cancel()
		q.expect("gone: Canceled at 400ms")
		pass(600 * time.Millisecond)
		q.expect("patient: Expired at 1s")
		held.Release(Served)
		q.expect("late: Admitted at 1s")
		release([]Slot{<-q.slots})
		if s := g.Stats(); s.Refused != 2 || s.Keys != 0 || s.Queued != 0 {
			t.Errorf("%+v, want 2 refused, and no key in use", s)
		}
	})
}

// The client goes while the slot of its key is on the way to it: the next of the key has it.
func TestASlotOfAKeyThatNobodyTakesIsGivenOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := open(t, keyQueued(1, 8, 10*limiter.Second), constant(1))
		held := ask(t, g, "gold", Admitted)
		g.mu.Lock()
		_, _, gone := g.ask(Request{Key: "gold"})
		g.mu.Unlock()
		q := newQueuer(t, g)
		q.askOf(t.Context(), "gold", "next")
		held.Release(Served)
		if _, v := g.abandon(gone); v != Canceled {
			t.Errorf("%v, want Canceled", v)
		}
		q.expect("next: Admitted at 0s")
		release([]Slot{<-q.slots})
		if s := g.Stats(); s.Admitted != 2 || s.Refused != 1 || s.Keys != 0 {
			t.Errorf("%+v, want 2 admitted, and no key in use", s)
		}
	})
}
