// Package journals carries the records of durable counters between the controller's own store
// and an object of each policy: a leader sets units aside in a record before the store grants
// them, so that a later one counts them. The spans in which no leader served are recorded, too,
// since sidecars may have begun windows by themselves in one.
//
// The package owns goroutines: one for each policy with durable counters, and one that records
// that the term serves.
package journals
