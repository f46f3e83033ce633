package suite

import (
	"sync"

	"github.com/weir-dev/weir/pkg/limiter"
)

// Start is an instant at which the clocks of tests begin.
const Start = limiter.Instant(1_790_000_000_000_000)

// A Clock stands still until it is moved.
type Clock struct {
	mu  sync.Mutex
	now limiter.Instant
}

// NewClock returns a clock that shows an instant.
func NewClock(now limiter.Instant) *Clock { return &Clock{now: now} }

// Now returns what the clock shows.
func (c *Clock) Now() limiter.Instant {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

// Set makes the clock show an instant, which may be before the one that it shows.
func (c *Clock) Set(now limiter.Instant) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = now
}

// Advance moves the clock by d.
func (c *Clock) Advance(d limiter.Micros) { c.Set(c.Now().Add(d)) }
