package region

import (
	"errors"
	"fmt"

	"github.com/weir-dev/weir/internal/controlplane/hub"
	"github.com/weir-dev/weir/pkg/store"
)

var (
	errNotYet = errors.New("it was not opened yet")
	errClosed = errors.New("it is no longer used")
	// errUnmeasured leaves the windows of a budget with a key unknown.
	errUnmeasured = errors.New("it does not measure the values of a budget: let a hub keep it")
)

// A CredentialsError says that a place cannot be opened with the Secret it names. The
// cause names the Secret, or the value in it that is wrong.
type CredentialsError struct{ Cause error }

// Error says what is wrong, and does not show a value.
func (e *CredentialsError) Error() string {
	return fmt.Sprintf("the credentials cannot be used: %v", e.Cause)
}

// Unwrap returns the cause.
func (e *CredentialsError) Unwrap() error { return e.Cause }

// plain returns an error of a place without what a server sent.
func plain(err error) error {
	if refused, ok := errors.AsType[*hub.RefusedError](err); ok {
		return refused
	}
	return store.Plain(err)
}

// detailed returns an error of a place with all that a server sent, for logs.
func detailed(err error) error {
	if refused, ok := errors.AsType[*hub.RefusedError](err); ok {
		return errors.New(refused.Detailed())
	}
	return err
}
