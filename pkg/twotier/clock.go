package twotier

import "github.com/weir-dev/weir/pkg/monotonic"

// process is the clock that limiters share.
var process = clock{Clock: monotonic.Process}

// A clock reads an instant: nanoseconds since some start that never step and never go
// back.
type clock struct {
	*monotonic.Clock // of a real machine, never nil

	virtual Virtual // nil on a real machine
}

// now reads the clock.
func (c *clock) now() int64 {
	if c.virtual != nil {
		return c.virtual.Now()
	}
	return c.real()
}

// real is now on a real machine. It is small enough to become a part of its caller,
// where a decision spends most of its time.
func (c *clock) real() int64 { return c.Now() }

// retain keeps instants true while the machine is suspended, until the returned
// function is called.
func (c *clock) retain() (release func()) {
	if c.virtual != nil {
		return func() {}
	}
	return c.Watch(nil)
}
