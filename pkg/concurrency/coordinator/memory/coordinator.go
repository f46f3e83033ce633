package memory

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/weir-dev/weir/pkg/concurrency/pool"
	"github.com/weir-dev/weir/pkg/limiter"
	"github.com/weir-dev/weir/pkg/store"
)

// name is what users call this coordinator.
const name = "the controller's coordinator"

// ErrSealed is the cause of every refusal after Seal.
var ErrSealed = errors.New("the controller is handing over to the next leader")

// Options configure a Coordinator.
type Options struct {
	// Clock returns the coordinator's time. It may step back: pools then stand still.
	Clock func() limiter.Instant
	// Term is that of the pools that begin here, at least 1. It is above the terms of
	// all coordinators before.
	Term int64
	// First says that no coordinator ever divided these pools: no share is in use that
	// was forgotten, so there is no quarantine.
	First bool
}

// A Coordinator divides pools. It is safe for concurrent use and never blocks for
// long.
type Coordinator struct {
	clock func() limiter.Instant
	term  int64

	mu     sync.Mutex // guards all below
	sealed bool
	began  limiter.Instant // since when no share is forgotten
	pools  map[pool.Key]*divided
	// newest is the largest generation of a share of the pools that were forgotten. A
	// pool that comes back goes on from it, so that none is used twice.
	newest int64
}

// divided is a pool and when it was last asked for.
type divided struct {
	*pool.State
	asked limiter.Instant
}

// New returns a coordinator whose memory begins now.
func New(o Options) *Coordinator {
	c := &Coordinator{clock: o.Clock, term: o.Term, began: o.Clock(), pools: map[pool.Key]*divided{}}
	if o.First {
		c.began = c.began.Add(-pool.MaxTTL)
	}
	return c
}

// Apply applies c to a pool. The error is a *store.UnavailableError when ctx is
// done, the coordinator is sealed, or a holder has heard of a later coordinator, then
// with a *pool.BehindError as its cause. Any other error wraps a *pool.InvalidError.
func (c *Coordinator) Apply(ctx context.Context, key pool.Key, p pool.Params, cmd pool.Command) (pool.Grant, error) {
	if err := ctx.Err(); err != nil {
		return pool.Grant{}, unavailable(err)
	}
	g, err := c.apply(key, p, cmd)
	if err != nil {
		return pool.Grant{}, refusal(key, err)
	}
	return g, nil
}

func refusal(key pool.Key, err error) error {
	behind := (*pool.BehindError)(nil)
	if errors.Is(err, ErrSealed) || errors.As(err, &behind) {
		return unavailable(err)
	}
	return fmt.Errorf("%s: pool %s: %w", name, key, err)
}

func (c *Coordinator) apply(key pool.Key, p pool.Params, cmd pool.Command) (pool.Grant, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.sealed {
		return pool.Grant{}, ErrSealed
	}
	now := c.clock()
	d, known := c.pools[key]
	if !known {
		s, err := c.begin(p, now)
		if err != nil {
			return pool.Grant{}, err
		}
		d = &divided{State: s}
	}
	g, err := d.Step(p, now, cmd)
	if err != nil {
		return pool.Grant{}, err
	}
	if !known {
		c.forget(now)
		c.pools[key] = d
	}
	d.asked = max(d.asked, now)
	return g, nil
}

// begin returns the memory of a pool that is not known: nobody asked for it since
// this memory began, or for a time in which every share expired.
func (c *Coordinator) begin(p pool.Params, now limiter.Instant) (*pool.State, error) {
	return pool.Restore(pool.Memory{
		Term: c.term, Generation: c.newest, Params: p, Limit: p.Initial, Bound: p.Initial,
		Quarantined: max(0, c.began.Add(p.Quarantine).Sub(now)),
	}, now)
}

// forget drops the pools that nobody asked for since every share of them expired.
func (c *Coordinator) forget(now limiter.Instant) {
	for key, d := range c.pools {
		if now.Sub(d.asked) > pool.MaxTTL {
			c.newest = max(c.newest, d.Generation())
			delete(c.pools, key)
		}
	}
}

// Seal makes every later Apply fail with ErrSealed and waits for those under way.
// It may be called more than once.
func (c *Coordinator) Seal() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.sealed = true
}

func unavailable(cause error) error { return &store.UnavailableError{Store: name, Cause: cause} }
