package ledger

import "github.com/weir-dev/weir/pkg/limiter"

// State is what is remembered of one budget. The zero value is that of a budget never
// seen. It is a value: Step never writes to what a state that it was given holds.
type State struct {
	Window limiter.Micros
	Index  int64 // of the open window, the latest that was served
	Term   int64 // of the memory that serves it
	Limit  int64 // of the open window: the smallest that a command of it named
	Latest limiter.Instant

	// Before is what memories before this one may have granted of the open window;
	// Reserved is up to where units are set aside for all of them, this one included.
	// Both are 0 without blocks.
	Before, Reserved int64

	Accounts  []Account  // of the open window, ordered by member and holder
	Vouches   []Vouch    // of members for the memory, which began in the open window; ordered by member
	Standings []Standing // ordered by member
	Closed    []Closed   // the latest windows that are over, newest first
}

// An Account is what one holder was granted of the open window.
type Account struct {
	Member, Holder string
	Seq            int64
	Granted        int64
}

// A Standing is what is known of a member across windows.
type Standing struct {
	Member string
	Seen   limiter.Instant // when it last sent anything
	Weight int64           // that it claimed last, 0 for none
	// Tenants is what it said of them with the weight.
	Tenants Tenants
	// Demand is what it said it wants of the open window, at least what it asked for;
	// Before what it wanted of the one before, 0 when it did not ask then.
	Demand, Before int64
	// Slice is what it may be using without asking of the open window, Next what it was
	// sent for later ones and has not given up yet.
	Slice, Next int64
	// Told is the window in which the member was sent all of Next last, or may have been.
	Told int64
}

// Closed is a window that is over.
type Closed struct {
	Index   int64
	Limit   int64
	Granted int64 // with slices
	Usage   []MemberUsage
}

// MemberUsage is what a member reported of a window that is over.
type MemberUsage struct {
	Member            string
	Granted           int64 // with its slice
	Admitted, Refused int64
	Reported          bool
	Complete          bool
}
