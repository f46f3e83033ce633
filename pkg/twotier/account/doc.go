// Package account is the pure part of the engine of package twotier: what one process knows of
// one counter, and what becomes of that.
//
// A State is what is known of a counter, and the Rules say what becomes of it. Within, a Balance
// holds the credits, each inside the Grant that brought it, and a Refusal what the store would go
// on refusing. A LocalShare is what was admitted of the counter without the store, and
// LocalWindows what all counters of a store began and promised so.
//
// All are values: a function takes a state and returns the next one. Time is an argument, in
// nanoseconds of the process's own clock, which never steps, or a limiter.Instant of the store's
// clock. So a search can visit every state that they reach, and a simulation can run a fleet of
// them.
//
// The package is pure: it knows no clock, context or goroutine. Nothing in it blocks.
package account
