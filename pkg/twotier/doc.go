// Package twotier is the engine that makes nearly every decision in memory.
//
// A Limiter serves one limit of one policy in one process. In mode Leased it asks
// the store (L2) for a batch of credits and spends them locally (L1): a decision is
// then an atomic subtraction and a clock read. In mode Strict every request is decided
// by the store, in mode CachedDeny every request that is admitted; those that wait for
// one counter share calls.
//
// # What a process knows and may do
//
// An account.State is what a process knows of one counter, and the account.Rules say what becomes
// of it. Both are pure. Within, an account.Balance holds the credits:
//
//   - Credits live inside the grant that brought them and die with it, at an instant
//     counted on the monotonic clock from before the request was sent. So the fleet
//     admits at most the limit in every store window, whatever the number of
//     processes, their clocks, and the delay of replies.
//   - Algorithms without windows grant credits that live for a time. They keep what
//     was charged at one instant apart from what was charged at another.
//   - With CarryOver a bounded number of credits outlives its window.
//   - A refusal is remembered as long as it holds, for the costs that it holds for.
//   - Credits of a key that nobody asks for any more go back to the store where
//     others may need them.
//   - The size of a lease is learned from the demand that is offered, and bounded by
//     what the store says. Nothing that is learned can grant anything.
//
// The grant of a call goes first to the requests that wait for it, in the order in
// which they came, so that none is refused because others were faster.
//
// A Key holds the account of one counter, or of one tenant's part of it, in a form
// that requests spend from without a lock. A test makes both decide the same.
//
// # Without the store
//
// When the store cannot be reached, held credits are spent first; then the
// policy's failure action decides. A process on its local share keeps to windows
// of the store's clock, which it estimates from the replies it has had: in any window
// a key is charged either at the store or locally, never at both, and its share is
// admitted once. When the store's clock is set back, nothing is admitted until it has
// caught up with what it was thought to have shown.
//
// One lost reply is not an outage: a call for what requests wait for is made twice within
// its time-out, and those that waited for a lost lease wait for the next one, each for the
// rest of one time-out since it came. A part that a store does not serve, one limit or the
// counters of one server, is cut off by itself, and decided by the failure action while the
// others are served.
//
// A request is refused as over the limit only when the store has said so, or when the share
// that the process has begun is used up. Refusals for want of the store, or of a share that
// may be begun, are FromFailureAction.
//
// A store can be exchanged for another one: while Config.Draining is set, nothing is
// asked of it and none of its grants are spent. Swap puts the other in its place.
//
// # What is not covered
//
// Requests admitted between the resume of a suspended machine and the next look of
// the watchdog may belong to a window that ended meanwhile: at most the held
// credits. Package monotonic says when a suspension is noticed at all.
//
// The package owns goroutines and timers. It sees stores only through the
// interface Store.
package twotier
