package store

import "fmt"

// UnavailableError says that no decision was reached because the store could
// not be reached or could not answer in time. It is the only error on which a
// policy's failure action may act: any other error is a defect and must never
// read as an admission.
type UnavailableError struct {
	Store string // what was asked, as a user would name it, for example "redis at cache:6379"
	Cause error
	// Part is what the error speaks for, nil for the whole store. The error of a part
	// says nothing about counters that the part does not have.
	Part Part
}

// Error names the store and the cause.
func (e *UnavailableError) Error() string { return fmt.Sprintf("%s: %v", e.Store, e.Cause) }

// Unwrap returns the cause.
func (e *UnavailableError) Unwrap() error { return e.Cause }

// A Part is some of the counters of a store that may be unavailable by themselves: those
// of a limit that it does not serve, or of a server that is one of several. A store has
// few of them. Values are compared by ==, and the same counters are the same value.
type Part interface {
	// Has reports whether the counter is one of them.
	Has(k Key) bool
}
