package keyed

import (
	"time"

	"github.com/weir-dev/weir/pkg/federation/keys"
	"github.com/weir-dev/weir/pkg/federation/ledger"
)

// Stats are the figures of a region. Counts are since New.
type Stats struct {
	// Connected says that the last message was answered. Otherwise Err says why not, nil
	// before the first answer or failure. Since is when either began.
	Connected bool
	Err       error
	Since     time.Time
	// Reason is why the coordinator granted nothing of any key, 0 when it did not refuse that.
	Reason ledger.Reason

	Values   int       // of the key that are remembered
	Room     keys.Room // of the coordinator lately, as it said; the zero Room where it is not known
	Messages int64     // sent to the coordinator
	Asks     int64     // of one key each, in them
	Granted  int64     // units that answers brought
	Taken    int64     // units handed on, returns taken off
	Refused  int64     // units that were asked for in vain
	Outages  int64     // how often the coordinator went away
}

// counts are since the region was made.
type counts struct{ messages, asks, granted, taken, refused, outages int64 }

// Stats returns the present figures.
func (r *Region) Stats() Stats {
	r.mu.Lock()
	defer r.mu.Unlock()
	return Stats{
		Connected: r.link.answered && r.link.cause == nil, Err: r.link.cause, Since: r.link.since, Reason: r.link.refused.reason,
		Values: len(r.values), Room: r.room(), Messages: r.counts.messages, Asks: r.counts.asks,
		Granted: r.counts.granted, Taken: r.counts.taken, Refused: r.counts.refused, Outages: r.counts.outages,
	}
}

// room returns how full the coordinator is in the window that is open by the last answer.
func (r *Region) room() keys.Room {
	if r.link.shown.clock == 0 {
		return keys.Room{}
	}
	return r.link.crowd.In(r.config.rate().WindowAt(r.shown(r.instant())).Index)
}
