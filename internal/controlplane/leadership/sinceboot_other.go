//go:build !linux

package leadership

import "time"

var started = time.Now()

// sinceBoot stands still while the machine is suspended: only Linux reports that.
func sinceBoot() time.Duration { return time.Since(started) + 1 }
