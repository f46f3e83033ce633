package ledger

import "github.com/weir-dev/weir/pkg/limiter"

// Op says what a command asks for.
type Op uint8

// The operations.
const (
	// Lease asks for Want units beyond what the holder was granted, or for at least
	// Min of them.
	Lease Op = iota + 1
	// Release gives units back: from now on the holder uses at most Granted units of
	// the window of Epoch. When that window or term is over they are forfeited, not
	// credited to another.
	Release
	// Report says what the member admitted and refused in windows that are over. A
	// later report of a window replaces an earlier one. It grants nothing.
	Report
	// Reserve says that units of the open window up to Granted are set aside durably
	// for this memory, on top of what was set aside for memories before it.
	Reserve
)

// An Epoch is one window as one memory of a coordinator serves it. The zero Epoch is
// before all.
type Epoch struct {
	Index int64 // of the window: it spans [Index·Window, (Index+1)·Window)
	Term  int64 // of the memory, at least 1
}

// A Command is one message of a holder; Reserve is a command of the coordinator itself.
type Command struct {
	Op Op
	// Member is the region, Holder the process or escrow in it: a random name that is
	// never used again.
	Member, Holder string
	// Seq rises with every Lease and Release of the holder, across windows. One that does not exceed
	// all before it changes nothing, and is answered with what is.
	Seq int64

	// Epoch and Granted are those of the last answer that the holder took: what it was
	// granted altogether in that epoch. When another epoch is open, the command is for
	// that one, in which the holder was granted nothing yet.
	Epoch     Epoch
	Granted   int64
	Min, Want int64 // Lease: beyond Granted, 1 ≤ Min ≤ Want

	// Demand is what the member expects to want of a whole window, 0 when it does not
	// know; more while it keeps the part of a tenant that may still ask. It guides what is
	// kept for it and is never trusted.
	Demand int64
	// Weight stands for the member's weight from now on when it is above 0, up to
	// MaxClaim: the sum of the weights of the tenants that are active there. So tenants share by weight
	// across regions (Parekh and Gallager 1993: a parent weighs what its children do).
	Weight int64
	// Tenants says which of that weight wants little. It comes with Weight, which it does not
	// exceed, and guides what is kept for the member as Demand does.
	Tenants Tenants
	// Slice is what the member uses without asking from the next window on, at most:
	// what it heard last. A holder that does not keep its member's slice says
	// NoSlice.
	Slice int64

	// Born is the term of the first memory of the budget that the member's cluster met: it
	// was granted nothing by those before. 0: it does not know that. List stands for the
	// members that it knows of, all that it ever knew of included, and is not 0 where Born
	// is not. Both are at most limiter.MaxExact. Once all members name the present memory
	// and the same List, that one grants of windows that are older, too.
	Born, List int64

	Usage []Usage // Report: at most MaxClosed windows

	Memory Memory // what the coordinator that runs the machine still remembers
}

// NoSlice is what a holder says that does not know its member's slice. One process of
// a member at a time says another.
const NoSlice = limiter.MaxLimit

// MaxClosed is how many windows that are over a ledger remembers.
const MaxClosed = 8

// Usage is what a member counted in a window that is over.
type Usage struct {
	Index             int64
	Admitted, Refused int64
	// Complete says that every holder's count is in it. Otherwise it is at least that.
	Complete bool
}

// Memory is what a coordinator knows of its own past.
type Memory struct {
	Term int64 // at least 1; above the terms of all memories before
	// Since is when it began, after all that memories before it served by their clocks.
	// Windows that are older grant nothing, unless all members vouch for the memory
	// (Command.Born); 0 remembers all.
	Since limiter.Instant
}

// Reason says why a grant is what it is.
type Reason uint8

// The reasons.
const (
	Granted    Reason = iota + 1 // also of a command that asked for nothing
	Exhausted                    // fewer than Min units are left
	Kept                         // the rest is kept for other members, or the member may not borrow more
	Stale                        // a command with a higher Seq was served: this one changed nothing
	Amnesia                      // the window began before the memory did, for which not all members vouch
	Behind                       // the clock shows an earlier instant than was served
	Unknown                      // no member has that name
	Crowded                      // the member has MaxHolders holders in this window
	Mismatched                   // the budget is kept in windows of another length until the open one ends
	Unreserved                   // Grant.Reserve has to be set aside first; nothing changed
	Forfeited                    // Release: the window or the term is over
)

// A Grant answers a command.
type Grant struct {
	Reason Reason
	Seq    int64 // of the last Lease or Release of the holder that counts: this one's unless Stale
	Epoch  Epoch // that is open
	// Granted is what the holder was granted altogether in Epoch, returns taken
	// off. The later of two grants of one epoch is the one with the larger Seq.
	Granted int64
	// Slice is what the member may use without asking of each window that begins later
	// than this one, until it hears otherwise. NowSlice is what it may in this one.
	Slice, NowSlice int64

	Limit      int64          // of the open window
	Remaining  int64          // units the member could still be granted now
	ExpiresIn  limiter.Micros // until the open window ends
	RetryAfter limiter.Micros // nothing granted: until it may succeed
	Now        limiter.Instant

	Reserve int64 // Unreserved: up to what units have to be set aside
}
