// Package ledger is the coordinator of one budget that several regions share: the
// pure state machine that divides each window of the budget among its members (L3).
//
// A holder, which is one process or one shared escrow of a member, asks for units
// and hears how many it was granted in the open window altogether. A coordinator
// applies a command with Step, atomically and by its own clock; what a holder makes of
// the answer is the business of packages escrow and federation.
//
// The bound. The units of a window that all holders were granted and did not give
// back, and the slices that members use without asking, never exceed the limit. A
// grant dies with its window. So all regions admit at most the limit in a window of
// the coordinator's clock, for any number of members and holders, even if messages
// are lost, delayed, repeated or reordered. Totals are sent instead of differences,
// so an answer that was lost is sent again. A number that rises with each command of
// a holder makes one that is late or repeated change nothing.
//
// The bound needs this of a holder: it never spends more in a window than the total it
// heard last; before it gives units back it takes them off its own total, and from
// then on ignores answers to commands that it sent earlier; it spends them only until
// the remaining lifetime that came with an answer has passed since it sent the
// command, by a clock that is not slower than the coordinator's by more than its
// margin; and it is never two: its name is random and not used again. Windows of
// another length are another budget to it, so it begins again.
//
// Slices need more. One holder of a member at a time keeps its slice, and others say
// NoSlice. It raises the slice only by the answer to the command that it sent last, and
// takes none of an earlier term. It uses it of windows that have begun by the
// coordinator's clock, that began after its own memory did, and in which no holder
// before it did. Then a slice that shrinks counts as long as somebody may use it. A
// ledger that forgot slices takes members for using what they never lend, or what they
// say that they heard: so slices should not be edited while a memory is lost
// without a record. A slice outlives its member, until that acknowledges to have none.
//
// Memory. A term is one uninterrupted memory of a coordinator. Windows that began
// before the memory did grant nothing, unless what was granted before is known not to
// exceed a reservation: with Params.Block a memory grants only from blocks that were
// set aside in a durable place before, and the next memory takes all that was set
// aside for granted. A crash so forfeits at most one block, and two memories that
// believe to serve at once, each from its own blocks, stay within the limit. Nor need a
// memory wait that is the first of a budget: once all members say that they were granted
// nothing by another, it grants of the window that was open when it began.
//
// The package imports nothing but the standard library and limiter's units of time.
// It knows no clock, context, goroutine or order of a map.
package ledger
