// Package simulate runs a fleet of holders and their store in virtual time.
//
// The production code decides: the holders' core of pkg/twotier with its sizes, deadlines
// and refusals, and limiter.Params.Step at the store. The package supplies what surrounds
// it: requests, a network that delays and loses messages, partitions, crashes and edits of
// the policy. Each node has a clock of its own, which is off, drifts and may be set:
// holders, a server, and controllers that lead one after the other with the leased clock of
// internal/controlplane/leadership and the store of pkg/store/memory. An auditor that sees true time, and
// nothing that the holders or the store count, reports what was admitted.
//
// A run is a discrete-event simulation on one goroutine. Everything random in it
// comes from the seed, so a seed replays event by event.
package simulate
