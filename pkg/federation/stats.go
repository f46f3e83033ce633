package federation

import (
	"time"

	"github.com/weir-dev/weir/pkg/federation/ledger"
)

// Stats are the figures of a region. Counts are since New.
type Stats struct {
	// Connected says that the last command was answered. Otherwise Err says why not, nil
	// before the first answer or failure. Since is when either began.
	Connected bool
	Err       error
	Since     time.Time
	// Learning says that the coordinator does not know what was granted of the open
	// window, and grants nothing of it.
	Learning bool
	// EscrowErr says why the shared escrow is away, nil when it is not: the region leases
	// for this process alone meanwhile.
	EscrowErr error

	Epoch     ledger.Epoch // of the last answer
	Limit     int64        // of its window
	Remaining int64        // units in the escrow, by its last answer
	Slice     int64        // units of each later window that need no grant
	Demand    int64        // units that the region expects to want of a window
	Grant     ledger.Grant // the last answer,
	Heard     time.Time    // and when it came

	Commands int64 // sent to the coordinator, reports included
	Granted  int64 // units that answers brought
	Taken    int64 // units handed on, returns taken off
	Refused  int64 // units that were asked for in vain
	Outages  int64 // how often the coordinator went away
}

// counts are since the region was made.
type counts struct{ commands, granted, taken, refused, outages int64 }

// Stats returns the present figures.
func (r *Region) Stats() Stats {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := r.clock.Now()
	v := r.vault()
	s := Stats{
		Connected: r.link.answered && r.link.cause == nil, Err: r.link.cause, Since: r.link.since,
		Learning:  r.link.grant.Reason == ledger.Amnesia,
		EscrowErr: r.access.cause,
		Epoch:     r.link.epoch, Limit: r.link.grant.Limit, Slice: r.link.slice,
		Grant: r.link.grant, Heard: r.link.heard,
		Commands: r.counts.commands, Granted: r.counts.granted, Taken: r.counts.taken,
		Refused: r.counts.refused, Outages: r.counts.outages,
	}
	if r.deadline(v) > now {
		s.Remaining = v.seen.remaining
	}
	o := r.outlook(now)
	s.Demand = int64(o.whole)
	return s
}
