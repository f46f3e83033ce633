package store

import "fmt"

// UnavailableError says that no decision was reached because the store could
// not be reached or could not answer in time. It is the only error on which a
// policy's failure action may act: any other error is a defect and must never
// read as an admission.
type UnavailableError struct {
	Store string // what was asked, as a user would name it, for example "redis at cache:6379"
	Cause error
}

// Error names the store and the cause.
func (e *UnavailableError) Error() string { return fmt.Sprintf("%s: %v", e.Store, e.Cause) }

// Unwrap returns the cause.
func (e *UnavailableError) Unwrap() error { return e.Cause }
