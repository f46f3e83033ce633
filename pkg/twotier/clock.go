package twotier

import (
	"context"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/weir-dev/weir/pkg/monotonic"
)

// process is the clock that limiters share.
var process = clock{Clock: monotonic.Process}

// A clock reads an instant: nanoseconds since some start that never step and never go
// back.
type clock struct {
	*monotonic.Clock // of a real machine, never nil

	virtual Virtual // nil on a real machine
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
func (c *clock) real() int64 { return c.Now() }

// retain keeps instants true while the machine is suspended, until the returned
// function is called.
func (c *clock) retain() (release func()) {
	if c.virtual != nil {
		return func() {}
	}
	return c.Watch(nil)
}

// A Virtual machine is one on which limiters run in a simulation: with its own
// time, and with everything that would wait or run at once given into its balances. It
// has no watchdog, for it is never suspended.
type Virtual interface {
	// Now returns the instant, in nanoseconds since some start. It never goes back.
	Now() int64
	// Random returns a number in [0, n).
	Random(n int64) int64
	// Go runs f concurrently with its caller, which goes on first: it may hold a lock.
	Go(f func())
	// Sleep waits for d, or until ctx is done and returns its error.
	Sleep(ctx context.Context, d time.Duration) error
	// Wait waits until done is closed, or until ctx is done and returns its error.
	Wait(ctx context.Context, done <-chan struct{}) error
}

// NewVirtualBreaker returns a breaker in front of s on a virtual machine. Its limiters run
// there, too.
func NewVirtualBreaker(s Store, v Virtual) *Breaker {
	return newBreaker(s, &clock{Clock: new(monotonic.Clock), virtual: v})
}

// random returns a number in [0, n).
func (c *clock) random(n int64) int64 {
	if c.virtual != nil {
		return c.virtual.Random(n)
	}
	return rand.Int64N(n)
}

// run runs f concurrently with its caller and counts it as work.
func (c *clock) run(work *sync.WaitGroup, f func()) {
	if c.virtual != nil {
		c.virtual.Go(f)
		return
	}
	work.Go(f)
}

// sleep waits for d, or until ctx is done and returns its error.
func (c *clock) sleep(ctx context.Context, d time.Duration) error {
	switch {
	case d <= 0:
		return ctx.Err()
	case c.virtual != nil:
		return c.virtual.Sleep(ctx, d)
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// wait waits until done is closed, or until ctx is done and returns its error.
func (c *clock) wait(ctx context.Context, done <-chan struct{}) error {
	if c.virtual != nil {
		return c.virtual.Wait(ctx, done)
	}
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// within returns ctx with a deadline after d. On a virtual machine it has none: calls end
// by themselves there.
func (c *clock) within(ctx context.Context, d time.Duration) (context.Context, context.CancelFunc) {
	if c.virtual != nil {
		return ctx, func() {}
	}
	return context.WithTimeout(ctx, d)
}

// patiently is within for a call of a store. It does not give a call up while this process
// is what keeps it waiting.
func (c *clock) patiently(ctx context.Context, d time.Duration) (context.Context, context.CancelFunc) {
	if c.virtual != nil {
		return context.WithTimeout(ctx, d) // in real time, which ends no call there
	}
	return monotonic.Within(ctx, d)
}

// several runs f for the numbers below n, at most atOnce at the same time, and
// returns when all are done.
func (c *clock) several(n, atOnce int, f func(i int)) {
	if c.virtual != nil {
		for i := range n {
			f(i)
		}
		return
	}
	var wait sync.WaitGroup
	slots := make(chan struct{}, atOnce)
	for i := range n {
		slots <- struct{}{}
		wait.Go(func() {
			f(i)
			<-slots
		})
	}
	wait.Wait()
}
