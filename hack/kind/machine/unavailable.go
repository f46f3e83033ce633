package machine

import "fmt"

// UnavailableError says that this machine cannot run a cluster as it is, and
// what a person can do about it.
type UnavailableError struct {
	Reason string // what is missing, as a clause
	Cure   string // what to do, as an imperative
}

func (e *UnavailableError) Error() string {
	return fmt.Sprintf("this machine cannot run a cluster: %s; %s", e.Reason, e.Cure)
}
