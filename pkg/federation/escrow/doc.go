// Package escrow is where a region keeps what it was granted of a budget (L2): the
// pure state machine that hands units of the open window on to the processes of the
// region, and knows what is to be asked of the coordinator.
//
// One escrow is one holder of package ledger, however many processes share it: it
// numbers the commands and remembers what it heard. Its state need not be durable.
// When it is lost, what was granted is forfeited: the escrow that begins has another
// name, and uses slices only of windows that begin later.
//
// How the bound is kept. Processes take of a window at most its slice and what all
// terms granted of it; what they took stays taken until the window is replaced by a
// later one, and nothing is handed on from the instant on at which the window may be
// over. A slice is used once: only of a window that began after the memory did. An
// answer counts only for the escrow that asked, and not when a release was prepared
// since.
//
// An escrow serves windows of one length, because the indexes of others do not
// compare: the id under which it is kept names the length too.
//
// The clock is the escrow's own. How long a window lasts is counted from an instant of
// it, so that an answer that is late on the way ends no later. When the clock is set
// back the window is closed until the coordinator answers again; an answer that was on
// the way while that happened may count for too long by as much.
//
// The package imports nothing but the standard library, limiter's units of time and
// the commands of package ledger. It knows no clock, context, goroutine or order of a
// map.
package escrow
