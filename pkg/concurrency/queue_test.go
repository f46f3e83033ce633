package concurrency

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-dev/weir/pkg/limiter"
)

// queued returns a configuration with a queue.
func queued(holder string, limit int64, length int, wait limiter.Micros) Config {
	c := fixed(holder, limit)
	c.Slots.Queue.MaxLength, c.Slots.Queue.MaxWait = length, wait
	return c
}

// A queuer asks for slots on its own and notes what became of it.
type queuer struct {
	t     *testing.T
	g     *Guard
	began time.Time
	done  chan string
	slots chan Slot
}

func newQueuer(t *testing.T, g *Guard) *queuer {
	return &queuer{t, g, time.Now(), make(chan string, 16), make(chan Slot, 16)}
}

// ask asks for a slot, and waits until it is in the queue or out.
func (q *queuer) ask(ctx context.Context, name string) {
	go func() {
		s, v := q.g.Acquire(ctx, Request{})
		if v == Admitted {
			q.slots <- s
		}
		q.done <- fmt.Sprintf("%s: %v at %v", name, v, time.Since(q.began).Round(time.Millisecond))
	}()
	synctest.Wait()
}

// expect compares what became of requests, sorted: those that were answered at one instant
// run in any order.
func (q *queuer) expect(want ...string) {
	q.t.Helper()
	synctest.Wait()
	var got []string
	for len(q.done) > 0 {
		got = append(got, <-q.done)
	}
	slices.Sort(got)
	if diff := cmp.Diff(want, got); diff != "" {
		q.t.Errorf("requests (-want +got):\n%s", diff)
	}
}

func TestQueueServesTheOldestRequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := open(t, queued("a", 2, 3, 10*limiter.Second), constant(2))
		held := take(t, g, 2)
		q := newQueuer(t, g)
		for _, name := range []string{"first", "second", "third"} {
			q.ask(t.Context(), name)
		}
		q.ask(t.Context(), "fourth")
		q.expect("fourth: Overflow at 0s")
		if st := g.Stats(); st.Queued != 3 || st.InFlight != 2 || st.Refused != 1 {
			t.Errorf("%+v", st)
		}
		for i, want := range []string{"first", "second", "third"} {
			pass(100 * time.Millisecond)
			held[0].Release(Served)
			q.expect(fmt.Sprintf("%s: Admitted at %v", want, time.Duration(i+1)*100*time.Millisecond))
			held[0] = <-q.slots
		}
		if st := g.Stats(); st.Queued != 0 || st.InFlight != 2 || st.Admitted != 5 {
			t.Errorf("%+v", st)
		}
		release(held)
	})
}

func TestQueueEndsWaiting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := open(t, queued("a", 1, 8, limiter.Second), constant(1))
		held := take(t, g, 1)
		q := newQueuer(t, g)
		ctx, cancel := context.WithCancel(t.Context())
		q.ask(t.Context(), "patient")
		pass(300 * time.Millisecond)
		q.ask(ctx, "canceled")
		short, stop := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer stop()
		q.ask(short, "in a hurry")
		pass(100 * time.Millisecond)
		q.expect("in a hurry: Canceled at 400ms")
		cancel()
		q.expect("canceled: Canceled at 400ms")
		q.ask(t.Context(), "late")
		pass(600 * time.Millisecond)
		q.expect("patient: Expired at 1s")
		if st := g.Stats(); st.Queued != 1 || st.Refused != 3 {
			t.Errorf("%+v", st)
		}
		held[0].Release(Served)
		q.expect("late: Admitted at 1s")
		release([]Slot{<-q.slots})
		if st := g.Stats(); st.InFlight != 0 || len(g.waiters) != 0 {
			t.Errorf("%+v, and %d are still thought to wait", st, len(g.waiters))
		}
	})
}

// TestCanceledAndAdmittedAtOnce has the client go while its slot is on the way to it.
func TestCanceledAndAdmittedAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := open(t, queued("a", 1, 8, 10*limiter.Second), constant(1))
		held := take(t, g, 1)
		g.mu.Lock()
		_, _, gone := g.ask(Request{})
		g.mu.Unlock()
		q := newQueuer(t, g)
		q.ask(t.Context(), "next")
		held[0].Release(Served)
		if _, v := g.abandon(gone); v != Canceled {
			t.Errorf("%v, want Canceled", v)
		}
		q.expect("next: Admitted at 0s")
		release([]Slot{<-q.slots})
		if st := g.Stats(); st.Admitted != 2 || st.Refused != 1 || st.InFlight != 0 {
			t.Errorf("%+v", st)
		}
	})
}

func TestAShareThatGrowsWakesWaitingRequests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLine(constant(0))
		g := open(t, queued("a", 4, 8, 10*limiter.Second), l)
		q := newQueuer(t, g)
		for i := range 3 {
			q.ask(t.Context(), fmt.Sprint(i))
		}
		l.set(func() { l.to = constant(2) })
		pass(time.Second)
		q.expect("0: Admitted at 1s", "1: Admitted at 1s")
		l.set(func() { l.to = constant(3) })
		pass(time.Second)
		q.expect("2: Admitted at 2s")
		for range 3 {
			release([]Slot{<-q.slots})
		}
	})
}

// TestRequestsWaitForTheFirstShare has them come before the coordinator answers.
func TestRequestsWaitForTheFirstShare(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLine(constant(2))
		l.back = 200 * time.Millisecond
		g := open(t, queued("a", 4, 2, 300_000), l)
		q := newQueuer(t, g)
		q.ask(t.Context(), "first")
		pass(200 * time.Millisecond)
		q.expect("first: Admitted at 200ms")
		s := append(take(t, g, 1), <-q.slots)
		l.set(func() { l.deaf = true })
		pass(1300 * time.Millisecond)
		q.ask(t.Context(), "fenced")
		q.ask(t.Context(), "and another")
		expect(t, g, Fenced) // rather than that the queue is full
		pass(300 * time.Millisecond)
		q.expect("and another: Expired at 1.8s", "fenced: Expired at 1.8s")
		release(s)
	})
}
