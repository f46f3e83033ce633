package heap

import (
	"os"
	"runtime/debug"

	"github.com/KimMachineGun/automemlimit/memlimit"
)

// Fit lets the heap grow by percent of its live objects before garbage is collected, and
// collects more often when the heap comes near part of the limit of the container. The rest is
// for the program's file and what the kernel keeps for its connections. The process
// is slower then, which is better than to be killed. GOGC and GOMEMLIMIT take
// precedence. It returns an error when the limit cannot be read, and nil when there is
// no limit.
func Fit(percent int, part float64) error {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(percent)
	}
	_, err := memlimit.Set(memlimit.WithRatio(part))
	return err
}
