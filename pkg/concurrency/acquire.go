package concurrency

import (
	"context"

	"github.com/weir-dev/weir/pkg/concurrency/slots"
)

// Request is what a guard has to know of a request.
type Request struct {
	// Partition is an index in Config.Slots.Partitions, or slots.Rest.
	Partition int
	// Key is what the limit is of, where Config.PerKey says so.
	Key string
}

// Verdict says what became of a request that asked for a slot.
type Verdict uint8

// The verdicts.
const (
	Admitted   Verdict = iota
	Full               // as much as may be is in flight, of its key where the limit is per key
	Overflow           // and the queue is full, too
	Expired            // it waited as long as the queue allows
	Canceled           // its context was done while it waited
	Unassigned         // the guard has no share yet
	Fenced             // the guard's share expired before the coordinator answered
	Closed             // the guard was closed
)

// String returns the verdict as logs and metrics name it.
func (v Verdict) String() string {
	switch v {
	case Admitted:
		return "Admitted"
	case Full:
		return "Full"
	case Overflow:
		return "Overflow"
	case Expired:
		return "Expired"
	case Canceled:
		return "Canceled"
	case Unassigned:
		return "Unassigned"
	case Fenced:
		return "Fenced"
	case Closed:
		return "Closed"
	default:
		return "Unknown"
	}
}

// Acquire asks for a slot. The slot is of use when the verdict is Admitted. It blocks
// only in the queue: at most for its MaxWait, until ctx is done, or until the guard is
// closed.
func (g *Guard) Acquire(ctx context.Context, r Request) (Slot, Verdict) {
	slot, verdict, w := g.enter(r)
	if w == nil {
		return slot, verdict
	}
	return g.wait(ctx, w)
}

// enter asks under the lock, which a request that panics does not keep from the others.
func (g *Guard) enter(r Request) (Slot, Verdict, *waiter) {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.ask(r)
}

// ask decides a request, or puts it into the queue and returns its waiter; mu is held.
func (g *Guard) ask(r Request) (Slot, Verdict, *waiter) {
	if g.closed {
		return Slot{}, g.refuse(r.Partition, Closed), nil
	}
	now := g.clock.Now()
	g.pass(now)
	ticket, outcome := g.occupy(now, r)
	if outcome == slots.Admitted {
		return g.admit(ticket, r.Key, now), Admitted, nil
	}
	g.starve(now)
	if outcome == slots.Queued {
		return Slot{}, 0, g.enqueue(now, ticket, r)
	}
	return Slot{}, g.refuse(r.Partition, g.reason(now, outcome)), nil
}

// admit returns the slot of a ticket that was admitted now.
func (g *Guard) admit(ticket slots.Ticket, key string, now int64) Slot {
	g.admitted++
	g.worst.Peak = max(g.worst.Peak, g.held())
	return Slot{epoch: g.epoch, ticket: ticket, key: key, forwarded: now}
}

// refuse counts a request that gets no slot.
func (g *Guard) refuse(partition int, v Verdict) Verdict {
	g.refused.count(partition)
	return v
}

// reason returns why a request was not even put into the queue.
func (g *Guard) reason(now int64, o slots.Outcome) Verdict {
	switch {
	case g.share.live || g.local(now):
	case g.share.known:
		return Fenced
	default:
		return Unassigned
	}
	if o == slots.Overflow {
		return Overflow
	}
	return Full
}
