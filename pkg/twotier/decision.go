package twotier

import (
	"time"

	"github.com/weir-dev/weir/pkg/limiter"
)

// Source says who made a decision.
type Source uint8

// The sources.
const (
	FromLease         Source = iota // credits in hand, or a refusal remembered to its end
	FromStore                       // the store, asked for this request
	FromLocalShare                  // this process alone, on its share of the limit
	FromFailureAction               // nobody: the store is unavailable and the policy says so
)

var sourceNames = [...]string{
	FromLease: "Lease", FromStore: "Store", FromLocalShare: "LocalShare", FromFailureAction: "FailureAction",
}

// String returns the source's name.
func (s Source) String() string { return sourceNames[s] }

// A Decision answers one request.
type Decision struct {
	Allowed bool
	Source  Source
	Reason  limiter.Reason

	// Limit, Remaining and ResetAfter describe the rate that binds: the one with
	// the fewest units left. Remaining is the best this process knows.
	Limit, Remaining int64
	ResetAfter       time.Duration // until the window of that rate ends
	RetryAfter       time.Duration // refused: until it may succeed; 0 when it never will

	// Windows are the store's windows the cost is charged to or, for a refusal,
	// the best known ones. Decisions on the same windows mostly share one value,
	// which is immutable and whose granted counts are not set. It is nil only
	// while the store's clock is unknown.
	Windows *limiter.Windows

	// LocalShare is the most this process admits alone per key and window of the
	// rate that binds. It is 0 unless Source is FromLocalShare.
	LocalShare int64

	key  *Key  // whose cost Cancel gives back, nil when there is none
	cost int64 // what Cancel gives back
	_    int64 // pads to a multiple of 16 bytes, which is copied without overlap
}

// Cancel takes the decision back because the request was not let through after
// all: the cost becomes available again, in the windows it was charged to and
// nowhere else. It does not block. It has no effect on a refusal, the second
// time, and on what was admitted without the store. Cancel of a copy counts as
// another time: cancel one copy only.
func (d *Decision) Cancel() {
	k := d.key
	if k == nil {
		return
	}
	d.key = nil
	if d.Source == FromStore {
		k.limiter.giveBack(k, d.Windows, d.cost)
		return
	}
	k.refund(d.Windows, d.cost)
}
