package concurrency

import "github.com/weir-dev/weir/pkg/concurrency/slots"

// bounded are the peaks of what a share bounds: all that is in flight, or that of the key that
// has the most. The coordinator is reported this, so that what it keeps for a holder covers every
// key.
type bounded interface {
	Peak() int64
	Mark()
	Forget()
}

// held returns how much is in flight of what the share bounds. It is asked for each slot, so it
// is not a method of bounded.
func (g *Guard) held() int64 {
	if g.keys != nil {
		return g.keys.InFlight()
	}
	return g.table.InFlight()
}

// occupy takes a slot, below the ceiling of all requests or of those with the same key.
func (g *Guard) occupy(now int64, r Request) (slots.Ticket, slots.Outcome) {
	at, ceiling := g.instant(now), g.ceiling(now)
	if g.keys == nil {
		return g.table.Acquire(at, r.Partition, ceiling)
	}
	if g.keys.Admit(r.Key, ceiling) {
		return g.table.Hold(), slots.Admitted
	}
	ticket, outcome := g.table.Wait(at, g.keys.Waiting(r.Key))
	if outcome == slots.Queued {
		g.keys.Wait(r.Key, ticket)
	}
	return ticket, outcome
}

// following admits the request that waited longest of those that may be admitted.
func (g *Guard) following(now int64) (slots.Ticket, bool) {
	ceiling := g.ceiling(now)
	if g.keys == nil {
		return g.table.Next(ceiling)
	}
	ticket, ok := g.keys.Next(ceiling)
	if ok {
		g.table.Promote(ticket)
	}
	return ticket, ok
}

// unqueue forgets that a request waits for a slot of its key.
func (g *Guard) unqueue(w *waiter) {
	if g.keys != nil {
		g.keys.Leave(w.key, w.ticket)
	}
}
