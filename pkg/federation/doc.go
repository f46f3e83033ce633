// Package federation lets a region use its part of a budget that several regions
// share: the engine between the holders of a region (L1) and the coordinator of the
// budget (L3).
//
// A Region is one process's view of one budget. To the holders it is a store like any
// other. It keeps what the coordinator granted in the region's escrow (L2), and leases
// more when that runs out or is about to.
//
// # Why the regions stay within the limit
//
// The coordinator grants no more than the limit of a window (package ledger), and an
// escrow hands on no more than it was granted (package escrow). The engine adds:
//
//   - Nothing is handed on from the instant on at which its window may be over: by the
//     lifetime that came with an answer, counted on the monotonic clock from before the
//     command was sent, less what two clocks may part meanwhile; and by what is known of
//     the coordinator's clock. That is looked at after every wait, and after a suspension
//     of the machine the clock has moved on (package monotonic).
//   - The later term of a window decides. Answers of an earlier one do not count.
//   - With slices a window begins without an answer, when it surely has begun by the
//     coordinator's clock, and is over when it may be. The escrow uses nothing that it
//     did not hear of, nor anything of a window that began before its memory did.
//
// # How much of the limit is used
//
// One command is under way at a time, and speaks for all that wait. The engine asks ahead
// of need by the rate of demand and the time that an answer takes. It asks for as much as
// package sizing learned is worth a command, and for no more than is expected to be asked
// for before the window ends. Each time that half of the rest of a window has passed, it
// gives back what is not expected to be needed. It also reports when it wants less than
// it reported before, so that nothing is kept in vain. After an answer that brought
// nothing it asks again as time goes by, and lets those wait whose next window begins
// before another answer could come. With three regions that together want what the limit
// is, 99 percent of it and more are used; a test measures it.
//
// # Tenants
//
// With each command the region reports what its tenants want and weigh (ledger.Tenants), at the
// level that its last answer brought them to: units for each weight. For each tenant it counts
// what was asked for in this window and in the one before. A declared tenant may want its whole
// part at any time, so nothing of that is lent while it is not idle; one that is not declared
// wants the more of both, or anything when it is new. The region splits its part by the same
// numbers: what a tenant does not want goes to the others.
//
// # Without the coordinator
//
// The units in the escrow are handed on; then requests are refused, with the time until
// the next attempt. That is never an error: a holder that knows nothing of other regions
// might act on one. A region of action Nominal goes on with its slice of every window,
// for as long as it knows where windows begin: clocks part by up to 200 ppm, so windows
// of a second for about half an hour, and longer ones in proportion.
//
// Without the escrow the region leases into its own memory, as another holder.
//
// # What is not covered
//
// With slices only one process of a member may begin windows at a time. A process that
// still does while another has taken its place uses the slice twice.
//
// The package owns goroutines and timers. It sees coordinators and escrows only through
// its interfaces.
package federation
