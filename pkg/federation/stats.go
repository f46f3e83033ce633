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
