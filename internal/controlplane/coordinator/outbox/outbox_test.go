package outbox

import (
	"context"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// A receiver takes messages, one at a time, as slowly as said.
type receiver struct {
	t     *testing.T
	takes time.Duration
	last  int // it takes no more after this one

	mu   sync.Mutex
	busy bool
	got  []int
}

func (r *receiver) send(m int) bool {
	r.mu.Lock()
	if r.busy {
		r.t.Error("two messages are sent at once")
	}
	r.busy = true
	r.mu.Unlock()
	time.Sleep(r.takes)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.busy = false
	r.got = append(r.got, m)
	return m != r.last
}

func (r *receiver) has(t *testing.T, want ...int) {
	t.Helper()
	synctest.Wait()
	r.mu.Lock()
	defer r.mu.Unlock()
	if !slices.Equal(r.got, want) {
		t.Errorf("sent %v, want %v", r.got, want)
	}
}

func TestMessagesAreSentInTheirOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, to := New[int](3), &receiver{t: t, takes: time.Second}
		b.Push(1)
		b.Push(2)
		to.has(t)
		b.Open(to.send)
		b.Push(3)
		time.Sleep(3 * time.Second)
		to.has(t, 1, 2, 3)
		time.Sleep(time.Hour)
		b.Push(4)
		b.Push(5)
		time.Sleep(2 * time.Second)
		to.has(t, 1, 2, 3, 4, 5)
		if b.waiting != nil || b.sending {
			t.Errorf("it holds %v and sends %t, want nothing when nothing waits", b.waiting, b.sending)
		}
	})
}

// TestABoxIsFull: one of the messages that may wait is sent, and Put waits for its room.
func TestABoxIsFull(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, to := New[int](2), &receiver{t: t, takes: time.Second}
		b.Open(to.send)
		for i := 1; i <= 3; i++ {
			if !b.Push(i) {
				t.Errorf("no room for message %d", i)
			}
			synctest.Wait()
		}
		if b.Push(4) {
			t.Error("there is room for more than may wait")
		}
		var putting sync.WaitGroup
		for range 2 {
			putting.Go(func() {
				if !b.Put(t.Context(), 5) {
					t.Error("Put gave up")
				}
			})
		}
		late, cancel := context.WithTimeout(t.Context(), time.Second/2)
		defer cancel()
		if b.Put(late, 6) {
			t.Error("Put found room")
		}
		time.Sleep(5 * time.Second)
		putting.Wait()
		to.has(t, 1, 2, 3, 5, 5)
	})
}

// TestNothingIsSentAfterTheLastMessage, and nobody waits for room.
func TestNothingIsSentAfterTheLastMessage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, to := New[int](2), &receiver{t: t, takes: time.Second, last: 2}
		b.Open(to.send)
		for i := 1; i <= 2; i++ {
			b.Push(i)
			synctest.Wait()
		}
		b.Push(3)
		putting := sync.WaitGroup{}
		putting.Go(func() { b.Put(t.Context(), 4) })
		time.Sleep(3 * time.Second)
		putting.Wait()
		for range 5 {
			if !b.Push(5) {
				t.Error("what is dropped needs room")
			}
		}
		to.has(t, 1, 2)
	})
}

func TestTheNextIsTakenOut(t *testing.T) {
	b := New[int](2)
	b.Push(1)
	b.Push(2)
	for i, want := range []int{1, 2, 0} {
		if m, ok := b.Next(); m != want || ok != (i < 2) {
			t.Errorf("took %d, %t, want %d", m, ok, want)
		}
	}
	if !b.Push(3) {
		t.Error("no room in an empty box")
	}
}
