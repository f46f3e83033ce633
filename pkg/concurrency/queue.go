package concurrency

import (
	"context"

	"github.com/weir-dev/weir/pkg/concurrency/slots"
)

// A waiter is a request in the queue.
type waiter struct {
	ticket    slots.Ticket
	partition int
	key       string
	decided   chan decision // holds one
}

type decision struct {
	slot    Slot
	verdict Verdict
}

// enqueue notes the waiter with a ticket.
func (g *Guard) enqueue(now int64, ticket slots.Ticket, r Request) *waiter {
	w := &waiter{ticket: ticket, partition: r.Partition, key: r.Key, decided: make(chan decision, 1)}
	g.waiters[ticket] = w
	g.hurry(now)
	return w
}

// wait waits until it is decided what becomes of w, or until ctx is done.
func (g *Guard) wait(ctx context.Context, w *waiter) (Slot, Verdict) {
	select {
	case d := <-w.decided:
		return d.slot, d.verdict
	case <-ctx.Done():
		return g.abandon(w)
	}
}

// abandon takes w out of the queue, or gives back the slot that it has just got.
func (g *Guard) abandon(w *waiter) (Slot, Verdict) {
	g.mu.Lock()
	defer g.mu.Unlock()
	select {
	case d := <-w.decided:
		if d.verdict != Admitted {
			return d.slot, d.verdict
		}
		g.admitted--
		if g.keys != nil {
			g.keys.Release(w.key)
		}
	default:
		delete(g.waiters, w.ticket)
		g.unqueue(w)
	}
	g.table.Release(w.ticket)
	g.freed(g.clock.Now())
	return Slot{}, g.refuse(w.partition, Canceled)
}

// decide reports to the waiter with a ticket what became of it.
func (g *Guard) decide(ticket slots.Ticket, d decision) {
	w := g.waiters[ticket]
	delete(g.waiters, ticket)
	if d.verdict != Admitted {
		g.unqueue(w)
		g.refuse(w.partition, d.verdict)
	}
	w.decided <- d
}

// pass gives slots to those that wait, as far as the ceiling allows, and puts those
// out that waited too long.
func (g *Guard) pass(now int64) {
	if g.table.Waiting() == 0 {
		return
	}
	at := g.instant(now)
	for {
		ticket, ok := g.table.Expire(at)
		if !ok {
			break
		}
		g.decide(ticket, decision{verdict: Expired})
	}
	for {
		ticket, ok := g.following(now)
		if !ok {
			return
		}
		g.decide(ticket, decision{g.admit(ticket, g.waiters[ticket].key, now), Admitted})
	}
}

// flush puts all out that wait.
func (g *Guard) flush() {
	for {
		ticket, ok := g.table.Flush()
		if !ok {
			return
		}
		g.decide(ticket, decision{verdict: Closed})
	}
}
