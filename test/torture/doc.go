// Command torture runs the whole system as processes of this machine under load, breaks
// what it stands on, and holds every window against its limit.
//
//	TORTURE=2m TORTURE_SEED=7 go run ./test/torture
//
// Each store and each node has a wall clock of its own, which is wrong, drifts and is
// set. A run has the controller's store and three of the servers that known lists: Redis
// that writes to disk at once, every second or not at all, Postgres, and each
// with a replica that is promoted. The servers, the faults, their instants and targets
// follow from the seed; a run that fails prints it, and the same seed injects the same
// faults again. How processes interleave does not follow from it.
//
// What is judged is what reached the application: every request carries the instant at
// which it was sent, and the application reports it with the instant of its arrival. So
// the window that a request was charged to is known from the store's clock, which is the
// program's own doing, without asking Weir (see judgement). The status is held against
// the same: it may say that it does not know, and nothing that is not so. Long windows
// have to serve from their first use, and after the last fault all has to serve again.
package main
