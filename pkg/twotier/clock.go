package twotier

import (
	"math"
	"sync"
	"sync/atomic"
	"time"
)

// epoch is where instants count from. Only its monotonic reading is used.
var epoch = time.Now()

// past is before every instant; 0 need not be.
const past = math.MinInt64

// process is the clock that limiters share.
var process clock

// A clock tells an instant: nanoseconds since some start that never step and
// never go back. The monotonic clock of the system stops while the machine is
// suspended; a watchdog adds that time, so an instant jumps forward once the
// watchdog has noticed.
type clock struct {
	virtual Virtual      // nil on a real machine
	slept   atomic.Int64 // nanoseconds the machine was known to be suspended

	mu    sync.Mutex
	users int           // guarded by mu: open limiters
	stop  chan struct{} // guarded by mu: ends the watchdog
	done  chan struct{} // guarded by mu: closed when the watchdog has ended
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
func (c *clock) real() int64 { return int64(time.Since(epoch)) + c.slept.Load() }

// retain keeps the watchdog running until the matching release.
func (c *clock) retain() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.users++
	if c.users == 1 && c.virtual == nil {
		c.stop, c.done = make(chan struct{}), make(chan struct{})
		go c.watch(suspended, c.stop, c.done)
	}
}

// release undoes one retain. The last one returns when the watchdog has ended.
func (c *clock) release() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.users--
	if c.users == 0 && c.virtual == nil {
		close(c.stop)
		<-c.done
	}
}
