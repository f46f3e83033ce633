// Package keys divides a budget by the values of a key: each value has the whole limit in
// every window, over all members. It is the pure part, of the coordinator and of a region.
//
// The ledger of the budget (package ledger) says which window is open, by which memory of the
// coordinator, and how much of the limit no key may have. Here is counted what each key was
// granted of that window. A grant is final: it dies with its window, and nothing comes back.
// So one number a key is enough, and an answer that was lost strands its units until the
// window ends.
//
// # When a coordinator is lost
//
// A memory grants only what was set aside before in a record that outlives it (hi/lo
// allocation), and the memory that follows takes all of that for granted. One Aside holds it
// for all keys, which belong to Groups by their hash: a base that every key may have been
// granted of the open window, and marks of the groups that have a key with more. So a write
// raises all that run low, a key with at most the base needs no write of its own, and the
// record does not grow with the number of keys. A window begins with one write. A crash
// forfeits of each key what was set aside of its group and not granted to it: a block, and as
// much more as the busiest key of its group was granted.
//
// A memory counts a number of keys by themselves (Window.Keys), and those that come later in
// a few counters that they share. The memory that follows may meet the keys in another order.
// So the record says that keys share counters before units of one are granted, and from then
// on what was set aside of either counter of a key counts as granted to it.
//
// It needs this of the keeper of the record: a write fails when the record is not the one
// that was read, or written, last; nothing is granted before a record of this memory is
// written; and what was set aside counts when that is known to be written.
//
// # A region
//
// A Purse is what a region holds of one key. It needs this of its user: an answer counts for
// the lifetime that came with it from before the command was sent, by a clock that does not
// stop while the coordinator's goes on; and no answer is entered twice. A purse may be
// dropped at any time: its units are forfeited.
//
// The package imports nothing but the standard library, limiter's units of time and the
// reasons of package ledger.
package keys
