//go:build unix

package processors

import (
	"syscall"
	"time"
)

// used returns the processor time that the program has used so far.
func used() (time.Duration, bool) {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0, false
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano()), true
}
