package twotier

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/weir-dev/weir/pkg/limiter"
	"github.com/weir-dev/weir/pkg/store"
)

// How long a gate stays shut after a failure: shortly at first, then at least a
// second between two probes. Up to half as much again is added at random, so
// that a fleet does not return in step.
const (
	firstRetry   = 100 * time.Millisecond
	longestRetry = time.Second
)

// A Gate stands before a store that may become unavailable. While it is, one
// request at a time finds out whether it still is, and the others fail at once
// instead of each waiting for a time-out. The limiters of one store share one
// gate. It also learns what the store's clock reads.
type Gate struct {
	store Store
	clock *clock

	mu       sync.Mutex // guards the rest
	cause    error      // why the store is unavailable, nil while it is not
	since    time.Time  // since when it is unavailable
	failures int        // in a row
	retryAt  int64      // instant of the next probe
	probing  bool       // a probe is under way
	era      int        // counts changes between available and unavailable
	offset   offset
	seen     limiter.Instant // the latest time the store told
}

// NewGate returns a gate before s, which is thought available.
func NewGate(s Store) *Gate { return newGate(s, &process) }

func newGate(s Store, c *clock) *Gate { return &Gate{store: s, clock: c} }

// gateOf returns s if it is a gate, and otherwise a gate before it with the clock.
func gateOf(s Store, c *clock) *Gate {
	if g, ok := s.(*Gate); ok {
		return g
	}
	return newGate(s, c)
}

var _ Store = (*Gate)(nil)

// Apply asks the store, or returns a *store.UnavailableError at once while the
// gate is shut.
func (g *Gate) Apply(ctx context.Context, key store.Key, p limiter.Params, c limiter.Command) (limiter.Result, error) {
	r, err := g.ask(ctx, key, p, c, 0)
	return r.Result, err
}

// A reply is what became of a call.
type reply struct {
	Reply
	asked bool // the store was called; false when the gate was shut
}

// ask is Apply with a time-out, if positive. Only a failure of the store shuts
// the gate, not a caller that gave up.
func (g *Gate) ask(ctx context.Context, key store.Key, p limiter.Params, c limiter.Command, timeout time.Duration) (reply, error) {
	era, err := g.enter()
	if err != nil {
		return reply{}, err
	}
	call := ctx
	if timeout > 0 {
		var cancel context.CancelFunc
		call, cancel = context.WithTimeout(ctx, timeout)
		defer cancel()
	}
	told := false
	defer func() {
		if !told { // nothing about the store, even by a panic
			g.left(era)
		}
	}()
	// The deadline of what is granted counts from here, before anything is sent.
	r := reply{Reply: Reply{Sent: g.clock.now()}, asked: true}
	r.Result, err = g.store.Apply(call, key, p, c)
	r.Received = g.clock.now()

	_, unavailable := errors.AsType[*store.UnavailableError](err)
	switch {
	case err == nil && r.Now > 0: // a return that gets no answer tells no time
		told = true
		g.succeeded(r)
	case unavailable && ctx.Err() == nil:
		told = true
		g.failed(era, err)
	}
	return r, err
}

// enter admits a call, and returns the era it belongs to, or says why not.
func (g *Gate) enter() (era int, err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if err := g.shut(); err != nil {
		return 0, err
	}
	g.probing = g.cause != nil
	return g.era, nil
}

// shut returns why no call is admitted now; mu is held.
func (g *Gate) shut() error {
	if g.cause != nil && (g.probing || g.clock.now() < g.retryAt) {
		return g.cause
	}
	return nil
}

// closed returns why a call would fail at once, nil when it would not.
func (g *Gate) closed() error {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.shut()
}

func (g *Gate) succeeded(r reply) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.offset = g.offset.observe(r.Sent, r.Received, r.Now)
	g.seen = max(g.seen, r.Now)
	if g.cause != nil {
		g.cause, g.failures, g.probing = nil, 0, false
		g.era++
	}
}

// failed shuts the gate for some time. Calls that began before the gate last
// opened or shut say nothing new.
func (g *Gate) failed(era int, err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if era != g.era {
		return
	}
	if g.cause == nil {
		g.since = time.Now()
		g.era++
	}
	g.cause, g.probing = err, false
	wait := min(firstRetry<<min(g.failures, 10), longestRetry)
	g.failures++
	g.retryAt = g.clock.now() + int64(wait) + g.clock.random(int64(wait)/2)
}

// left ends a call that says nothing about the store.
func (g *Gate) left(era int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if era == g.era {
		g.probing = false
	}
}

// state returns since when and why the store is unavailable; the time is zero
// while it is not.
func (g *Gate) state() (since time.Time, cause error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.cause == nil {
		return time.Time{}, nil
	}
	return g.since, g.cause
}

// storeClock returns what is known of the store's clock, the latest time it
// told, and the instant at which a shut gate lets the next probe through.
func (g *Gate) storeClock() (o offset, seen limiter.Instant, retryAt int64) {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.offset, g.seen, g.retryAt
}
