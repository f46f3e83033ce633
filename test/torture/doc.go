// Command torture runs the whole system as processes of this machine under load, breaks
// its stores, nodes and links, and compares every window with its limit.
//
//	TORTURE=2m TORTURE_SEED=7 go run ./test/torture
//
// Each store and each node has a wall clock of its own, which is wrong, drifts and is
// set. The seed draws one of two layouts, for a machine of two processors does not carry
// both at once:
//
//   - one cluster with the controller's store and three of the servers that known lists:
//     Redis that writes to disk at once, every second or not at all, Postgres, each with
//     a replica that is promoted, a Redis behind Sentinels and a Redis Cluster, which fail
//     over by themselves;
//   - two clusters that share a budget, and one that has a limit for each team, whose hub is
//     in one of them, with one of these servers.
//
// The servers, the faults, their instants and targets follow from the seed; a run that
// fails prints it, and the same seed injects the same faults again. How processes
// interleave does not follow from it.
//
// The judge counts what reached the application: every request carries the instant at
// which it was sent, and the application reports it with the instant of its arrival. So
// the window that a request was charged to is known from the store's clock, which this
// program sets, without asking Weir (see judgement). A policy is judged from the instant
// at which its status first says that all sidecars enforce it. When a policy is moved, only
// the status knows since when the new store serves, and is held to it: grants of the old
// store have to end before that instant. The status is compared with the same figures: it
// may be Unknown, but never wrong. Long windows have to serve from their first use, and
// after the last fault everything has to serve again.
//
// A run is not judged by rules that docs/guarantees.md does not promise: while two servers
// of one Redis are primaries at a time, each may grant a limit.
package main
