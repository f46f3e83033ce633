// Package records holds in ConfigMaps what a term of leadership leaves to later ones: that it
// was, its hand-over, which limits were put in force, and what is set aside of durable counters.
// The API server's resourceVersion makes each change a compare-and-swap, so what a leader writes
// that was replaced changes nothing.
//
// Each call asks the API server and blocks until it answers or the context is done.
package records
