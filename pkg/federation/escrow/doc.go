// Package escrow is where a region keeps what it was granted of a budget (L2): the
// pure state machine that hands units of the open window on to the processes of the
// region, and knows what is to be asked of the coordinator.
//
// One escrow is one holder of package ledger, however many processes share it: it
// numbers the commands and remembers what it was told. Its state need not be durable.
// When it is lost, what was granted is forfeited: the escrow that begins has another
// name, and uses slices only of windows that begin later.
//
// The package imports nothing but the standard library, limiter's units of time and
// the commands of package ledger. It knows no clock, context, goroutine or order of a
// map.
package escrow
