package memory

import (
	"time"

	"github.com/weir-dev/weir/pkg/limiter"
)

// A Clock is a store clock that never steps back: the wall clock, read once,
// carried on by the monotonic clock. It drifts from the wall clock of its node by
// what that is later corrected by, which moves windows but never repeats one.
type Clock struct {
	start time.Time // carries the monotonic reading
	at    limiter.Instant
}

// NewClock returns a clock that starts at the wall clock's time or at floor,
// whichever is later. A new leader passes the newest instant its predecessor may
// have served (Ledger.Sealed, or 0 when none is known), and so never serves a
// window a second time because its node's clock is behind.
func NewClock(floor limiter.Instant) *Clock {
	start := time.Now()
	return &Clock{start: start, at: max(floor, limiter.Instant(start.UnixMicro()))}
}

// Now returns the clock's time. It is safe for concurrent use.
func (c *Clock) Now() limiter.Instant {
	return c.at.Add(limiter.Micros(time.Since(c.start).Microseconds()))
}
