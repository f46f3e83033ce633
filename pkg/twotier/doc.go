// Package twotier is the engine that makes nearly every decision in memory.
//
// A Limiter serves one limit of one policy in one process. In leased mode it
// asks the store (L2) for a batch of credits and spends them locally (L1):
// a decision is then an atomic subtraction and a clock read. Credits live inside
// the lease that brought them and die with it, at an instant counted on the
// process's monotonic clock from before the request was sent; so the fleet admits
// at most the limit in every store window, whatever the number of processes,
// their clocks, and the delay of replies. In strict mode every request asks the
// store.
//
// The package owns goroutines and timers. It sees stores only through the
// interface Store.
package twotier
