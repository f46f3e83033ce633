// Package memory is the store that lives in one process: the leading
// controller's own L2.
//
// Its memory begins when the process becomes leader, so windows that are older
// grant nothing, unless the predecessor handed over its Ledger: it seals its
// store, which from then on refuses, exports the ledger, and the successor
// imports it. The grants are then known; what holders did on their own between the
// two is not, so windows that began in between grant nothing.
//
// The package starts no goroutine. Counters that no window needs any more are
// dropped a few at a time by the calls that come in.
package memory
