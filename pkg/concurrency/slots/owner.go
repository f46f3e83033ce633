package slots

import (
	"math"

	"github.com/weir-dev/weir/pkg/limiter"
)

// An owner that bounds requests by another rule than the ceiling, as by Keys, uses these in the
// place of Acquire and Next.

// Hold admits a request.
func (t *Table) Hold() Ticket {
	t.adjust(math.MaxInt64)
	i := t.take(t.part(Rest))
	t.admit(i)
	return t.ticket(i)
}

// Wait puts a request into the queue, behind some that wait for the same slots as it does. These
// never have more places than are left free, so one key takes half of the queue when no other
// waits, and leaves room for those that come.
func (t *Table) Wait(now limiter.Instant, same int) (Ticket, Outcome) {
	return t.wait(now, t.part(Rest), t.config.Queue.MaxLength-t.waiting-same)
}

// Promote admits a request that waits. It panics when no request waits by the ticket.
func (t *Table) Promote(ticket Ticket) {
	if !t.valid(ticket) || t.places[ticket.index].state != waits {
		panic("slots: no request waits by the ticket")
	}
	t.adjust(math.MaxInt64)
	t.dequeue(ticket.index)
	t.admit(ticket.index)
}
