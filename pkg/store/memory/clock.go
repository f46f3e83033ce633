package memory

import (
	"sync/atomic"
	"time"

	"github.com/weir-dev/weir/pkg/limiter"
)

// A Clock is a store clock that never steps back: the wall clock, read once,
// carried on by the monotonic clock. It drifts from the wall clock of its node by
// what that is later corrected by, which moves windows but never repeats one. It is
// safe for concurrent use.
type Clock struct {
	start time.Time    // carries the monotonic reading
	at    atomic.Int64 // the clock's time at start
}

// StartOf returns what a clock shows first when the node's clock shows wall: that or
// floor, whichever is later.
func StartOf(wall, floor limiter.Instant) limiter.Instant { return max(wall, floor) }

// NewClock returns a clock that starts as StartOf says. A new leader passes the newest
// instant that its predecessor may have served, and so never serves a window a second
// time because its node's clock is behind.
func NewClock(wall time.Time, floor limiter.Instant) *Clock {
	c := &Clock{start: time.Now()}
	c.at.Store(int64(StartOf(limiter.Instant(wall.UnixMicro()), floor)))
	return c
}

// Now returns the clock's time.
func (c *Clock) Now() limiter.Instant {
	return limiter.Instant(c.at.Load()).Add(limiter.Micros(time.Since(c.start).Microseconds()))
}

// Raise moves the clock ahead to floor if it shows less.
func (c *Clock) Raise(floor limiter.Instant) {
	for {
		at := c.at.Load()
		behind := floor.Sub(limiter.Instant(at)) - limiter.Micros(time.Since(c.start).Microseconds())
		if behind <= 0 || c.at.CompareAndSwap(at, at+int64(behind)) {
			return
		}
	}
}
