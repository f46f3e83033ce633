package twotier

import (
	"time"

	"github.com/weir-dev/weir/pkg/limiter"
)

// Source says where a decision was made.
type Source uint8

// The sources.
const (
	FromLease         Source = iota // held credits, or a refusal remembered to its end
	FromStore                       // the store, asked for this request; in mode Leased, because leases come too late or bring it nothing
	FromLocalShare                  // this process, on its local share of the limit
	FromFailureAction               // nobody: the store does not answer, and the policy says so or no share may be begun
	FromDrain                       // nobody: another store is about to take over
)

var sourceNames = [...]string{
	FromLease: "Lease", FromStore: "Store", FromLocalShare: "LocalShare", FromFailureAction: "FailureAction",
	FromDrain: "Drain",
}

// String returns the source's name.
func (s Source) String() string { return sourceNames[s] }

// A Decision answers one request.
type Decision struct {
	Allowed bool
	Source  Source
	Reason  limiter.Reason

	// Limit, Remaining and ResetAfter describe the rate that binds. Remaining is the
	// best this process knows.
	Limit, Remaining int64
	ResetAfter       time.Duration // until nothing counts any more of that rate
	RetryAfter       time.Duration // refused: until it may succeed; 0 when it never will
	// Delay is how long the request has to wait before it is let through. The caller
	// sees to that. LeakyBucket only.
	Delay time.Duration

	// Windows are the store's windows the cost is charged to; of algorithms without
	// windows, those that hold the instant at which the store granted it; for a
	// refusal the best known ones. Decisions on the same windows mostly share one
	// value, which is immutable and whose granted counts are not set. It is nil only
	// while the store's clock is unknown.
	Windows *limiter.Windows

	// LocalShare is the most this process admits locally per key and window of the
	// rate that binds. It is 0 unless Source is FromLocalShare.
	LocalShare int64

	// Paid is how many units of the key's debt were paid along with this decision,
	// charged to Windows on top of the cost, whether it was admitted or not; see
	// Settle.
	Paid int64

	from *lease // that the cost was charged to, nil when the store was not
	cost int64  // what Cancel gives back
	_    int64  // pads to a multiple of 16 bytes, which is copied without overlap
}
