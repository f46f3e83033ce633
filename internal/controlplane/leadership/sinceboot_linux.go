package leadership

import (
	"time"

	"golang.org/x/sys/unix"
)

// sinceBoot returns the time since the machine started. Unlike Go's monotonic
// clock it goes on while the machine is suspended.
func sinceBoot() time.Duration {
	var t unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &t); err != nil {
		panic(err) // only for a clock that Linux does not have
	}
	return time.Duration(t.Nano())
}
