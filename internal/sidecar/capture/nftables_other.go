//go:build !linux

package capture

import "errors"

// Apply fails: pods' networks are Linux's.
func Apply([]Redirect) error { return errors.New("capture works on Linux only") }
