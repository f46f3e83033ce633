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
// When the store cannot be reached, credits in hand are spent first; then the
// policy's failure action decides. A process on its local share keeps to windows
// of the store's clock, which it estimates from the replies it has had: in any
// window a key is charged either at the store or locally, never at both.
//
// One thing is not covered. The monotonic clock stands still while the machine is
// suspended, and a watchdog compares it with the clock that does not, every 10 ms
// on Linux. What is admitted between a resume and the next comparison may belong
// to a window that ended meanwhile: at most the credits in hand. Elsewhere, and
// where a hypervisor stops a machine without telling it, this is not noticed.
//
// The package owns goroutines and timers. It sees stores only through the
// interface Store.
package twotier
