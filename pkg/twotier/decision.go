package twotier

import (
	"errors"
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

// A Forecast is how a request would fare, were it made now, as far as that is known. Nothing
// was taken for it, and there is nothing to cancel. RetryAfter and ResetAfter are later if
// others take units meanwhile, and may be earlier if they give some back.
type Forecast struct {
	Decision
	// Credits are the units that this process holds of the counter. No other can spend them.
	Credits int64
	// Unread is why the store was not read, nil when it was. Without that, Credits are known,
	// and what the limiter does on its own.
	Unread error
	// Age is how long ago the store was read, at most. Others may have taken units since.
	Age time.Duration
	// Shared says that there is no room for a counter of the value, so that it shares one.
	Shared bool
}

// ErrNotHeld is the error of a request that only a store can decide, or that has to wait.
var ErrNotHeld = errors.New("the process does not hold what the request asks for")

// A Request asks for units of one counter.
type Request struct {
	// Value names the counter; "" is the limit's single counter.
	Value string
	// Tenant is the tenant that is charged, by store.HashValue of its name, where
	// Config.Params.Fairness splits the limit; "" otherwise. Credits are leased for
	// each pair of value and tenant.
	Tenant string
	Cost   int64 // units, at least 1
	// Held has a request decided by what the process holds and remembers, without waiting for
	// anything, or else fail with ErrNotHeld.
	Held bool
}

// Kept returns the value of the request as the limiter keeps it: a text of its own, where the
// request's may be a part of a larger one. It reports false where the limiter keeps none for the
// decision: for a refusal, say, for one of a tenant, or for a value that shares a counter.
func (d *Decision) Kept(value string) (kept string, ok bool) {
	if d.from == nil || d.from.key.tenanted {
		return "", false
	}
	kept = d.from.key.value()
	return kept, kept == value
}

// Settle replaces the cost of an admitted request by what it really was, at least
// 0, once that is known. An excess of the reservation becomes available again, as by
// Cancel. A shortfall is charged to the held credits, or else is a debt of the
// key: later decisions wait until it is paid, and report that in Paid. A debt is at
// most what the limit ever grants at once; more is forgiven, and a key that is idle
// long enough to be forgotten takes its debt along.
//
// Settle returns how much more has been charged than the cost, less than 0 when some
// was given back. It does not include what is owed. It does not block, has the effect
// of Cancel on a later call of either, and none where Cancel has none.
func (d *Decision) Settle(actual int64) (charged int64) {
	e, cost := d.from, d.cost
	d.from, d.cost = nil, 0
	switch {
	case e == nil || actual == cost:
		return 0
	case actual < cost:
		e.refund(d.Source, cost-max(actual, 0))
		return max(actual, 0) - cost
	default:
		return e.key.charge(e, actual-cost)
	}
}

// Cancel takes the decision back because the request was not let through after
// all: the cost becomes available again, in what it was charged to and nowhere
// else. It does not block. It has no effect on a refusal, the second time, and on
// what was admitted without the store. Cancel of a copy counts as another time:
// cancel one copy only.
func (d *Decision) Cancel() {
	e, cost := d.from, d.cost
	d.from, d.cost = nil, 0
	if e != nil {
		e.refund(d.Source, cost)
	}
}
