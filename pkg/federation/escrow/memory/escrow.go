package memory

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/weir-dev/weir/pkg/federation/escrow"
	"github.com/weir-dev/weir/pkg/limiter"
	"github.com/weir-dev/weir/pkg/store"
)

// name is what users call this escrow.
const name = "the controller's escrow"

// Options configure an Escrow.
type Options struct {
	// Clock returns the escrow's time. It should not step; nil is one that never does.
	Clock func() limiter.Instant
}

// An Escrow keeps the escrows of any number of budgets. It is safe for concurrent use
// and never blocks for long.
type Escrow struct {
	clock func() limiter.Instant
	since limiter.Instant // when the memory began

	mu      sync.Mutex // guards all below, and that the clock is read in order
	budgets map[string]*escrow.State
}

// New returns an escrow whose memory begins now.
func New(o Options) *Escrow {
	if o.Clock == nil {
		o.Clock = steady(time.Now())
	}
	return &Escrow{clock: o.Clock, since: o.Clock(), budgets: map[string]*escrow.State{}}
}

// steady returns a clock that goes on from start and does not step with the wall's.
func steady(start time.Time) func() limiter.Instant {
	return func() limiter.Instant {
		return limiter.Instant(start.UnixMicro()).Add(limiter.Micros(time.Since(start).Microseconds()))
	}
}

// Apply applies c to the escrow of the budget of that id. The error is a
// *store.UnavailableError when ctx is done; any other wraps an *escrow.InvalidError.
func (e *Escrow) Apply(ctx context.Context, id string, c escrow.Command) (escrow.Result, error) {
	if err := ctx.Err(); err != nil {
		return escrow.Result{}, &store.UnavailableError{Store: name, Cause: err}
	}
	if err := c.Validate(); err != nil {
		return escrow.Result{}, fmt.Errorf("%s: budget %s: %w", name, id, err)
	}
	c.Since = e.since
	e.mu.Lock()
	defer e.mu.Unlock()
	now := e.clock()
	s, known := e.budgets[id]
	if !known {
		e.forget(now)
		s = new(escrow.State)
		e.budgets[id] = s
	}
	var r escrow.Result
	*s, r = s.Step(now, c)
	return r, nil
}

// forget drops the budgets that nobody asked for since their last window was over.
func (e *Escrow) forget(now limiter.Instant) {
	for id, s := range e.budgets {
		if now > s.Keep() {
			delete(e.budgets, id)
		}
	}
}
