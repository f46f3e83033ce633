package monotonic

import (
	"time"

	"golang.org/x/sys/unix"
)

// suspended returns how long the machine has been suspended since it booted: by
// how much the clock that counts suspension is ahead of the one that does not.
// When the two are read apart, because the thread lost the processor in between,
// it reads them again.
func suspended() time.Duration {
	const together = 50 * time.Microsecond
	for attempt := 0; ; attempt++ {
		from := read(unix.CLOCK_MONOTONIC)
		boot := read(unix.CLOCK_BOOTTIME)
		to := read(unix.CLOCK_MONOTONIC)
		if to-from <= together || attempt == 10 {
			// The later reading makes the gap too small rather than too large.
			return boot - to
		}
	}
}

func read(clock int32) time.Duration {
	var t unix.Timespec
	if err := unix.ClockGettime(clock, &t); err != nil {
		panic(err) // both clocks exist since Linux 2.6.39
	}
	return time.Duration(t.Nano())
}
