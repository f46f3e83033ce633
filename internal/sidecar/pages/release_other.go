//go:build !linux

package pages

// Release does nothing on this system.
func Release() (bool, error) { return false, nil }
