package monotonic

import (
	"sync"
	"sync/atomic"
	"time"
)

// epoch is where instants count from. Only its monotonic reading is used.
var epoch = time.Now()

// Process is the clock that the engines of a process share.
var Process = New(suspended)

// A Clock counts nanoseconds since some start that is the same for all clocks
// of a process. Its methods may be called concurrently. The zero Clock has no watchdog.
type Clock struct {
	suspended func() time.Duration // nil: there is nothing to watch
	slept     atomic.Int64         // nanoseconds the machine was known to be suspended

	mu       sync.Mutex // guards the rest
	watchers map[*watcher]struct{}
	reported bool          // the kernel reports resumes
	patrol   *patrol       // nil while nobody watches, or the kernel reports resumes
	seen     time.Duration // what suspended returned when somebody looked last
}

// New returns a clock of a machine that was suspended for what suspended returns, since
// some start. It never shrinks by more than readings wander.
func New(suspended func() time.Duration) *Clock {
	return &Clock{suspended: suspended, seen: suspended()}
}

// Now reads the clock. It is small enough to become a part of its caller, where a
// decision spends most of its time.
func (c *Clock) Now() int64 { return int64(time.Since(epoch)) + c.slept.Load() }

// Skip moves the clock forward by d.
func (c *Clock) Skip(d time.Duration) { c.slept.Add(int64(d)) }

// look moves the clock on by what the machine was suspended longer than when somebody
// looked last, and calls the watchers. Every deadline counted on the clock then comes as
// early as it should.
func (c *Clock) look() {
	c.mu.Lock()
	defer c.mu.Unlock()
	// Readings wander by microseconds; a suspension takes longer than that.
	now := c.suspended()
	slept := now - c.seen
	if slept < time.Millisecond {
		return
	}
	c.seen = now
	c.Skip(slept)
	for w := range c.watchers {
		if w.jumped != nil {
			w.jumped()
		}
	}
}
