package concurrency

import (
	"math"

	"github.com/weir-dev/weir/pkg/concurrency/slots"
)

// bounded is what a share bounds: all that is in flight, or that of the key that has the
// most. The coordinator is reported this, so that what it keeps for a holder covers every key.
type bounded interface {
	InFlight() int64
	Peak() int64
	Mark()
	Forget()
}

// occupy takes a slot, below the ceiling of all requests or of those with the same key.
func (g *Guard) occupy(now int64, r Request) (slots.Ticket, slots.Outcome) {
	at, ceiling := g.instant(now), g.ceiling(now)
	if g.keys == nil {
		return g.table.Acquire(at, r.Partition, ceiling)
	}
	if !g.keys.Admit(r.Key, ceiling) {
		return slots.Ticket{}, slots.Full
	}
	return g.table.Acquire(at, slots.Rest, math.MaxInt64)
}
