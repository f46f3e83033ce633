package memory

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/weir-dev/weir/pkg/federation/keys"
	"github.com/weir-dev/weir/pkg/federation/ledger"
	"github.com/weir-dev/weir/pkg/limiter"
	"github.com/weir-dev/weir/pkg/store"
)

// name is what users call this coordinator.
const name = "the process's coordinator"

// Options configure a Coordinator.
type Options struct {
	// Clock returns the coordinator's time. It may step back: nothing is granted then
	// until it has caught up.
	Clock func() limiter.Instant
	// Term is that of its memory, at least 1. It is above the terms of all
	// coordinators before.
	Term int64
	// First says that no coordinator ever kept these budgets, so that nothing can have
	// been granted of the windows that are open when this one begins.
	First bool
}

// A Coordinator keeps budgets. It is safe for concurrent use and never blocks for long.
type Coordinator struct {
	clock func() limiter.Instant

	mu      sync.Mutex // guards all below
	memory  ledger.Memory
	budgets map[string]ledger.State
	books   map[string]*keys.Book // of budgets with a key
}

// New returns a coordinator whose memory begins now.
func New(o Options) *Coordinator {
	c := &Coordinator{clock: o.Clock, memory: ledger.Memory{Term: o.Term}, budgets: map[string]ledger.State{}, books: map[string]*keys.Book{}}
	if !o.First {
		c.memory.Since = o.Clock() + 1 // at this very instant another may have granted
	}
	return c
}

// Apply implements federation.Coordinator. The error is a *store.UnavailableError when
// ctx is done or the holder or its cluster has heard of a coordinator with a later term; any other
// wraps a *ledger.InvalidError.
func (c *Coordinator) Apply(ctx context.Context, id string, p ledger.Params, cmd ledger.Command) (ledger.Grant, error) {
	if err := ctx.Err(); err != nil {
		return ledger.Grant{}, unavailable(err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	p.Block = 0 // what was granted is remembered for as long as the windows are open
	cmd.Memory = c.memory
	if err := cmd.ValidateGrant(p); err != nil {
		return ledger.Grant{}, fmt.Errorf("%s: budget %s: %w", name, id, err)
	}
	if later := max(cmd.Epoch.Term, cmd.Born); later > c.memory.Term {
		return ledger.Grant{}, unavailable(fmt.Errorf("budget %s is kept by a later one, of term %d", id, later))
	}
	now := c.clock()
	s, known := c.budgets[id]
	if !known {
		c.forget(now)
		cmd.Memory = c.memory
	}
	next, g := s.Step(p, now, cmd)
	c.budgets[id] = next
	return g, nil
}

// ApplyKeys grants units of keys of the budget of that id: each value has the limit of p in
// every window. The error is that of Apply.
func (c *Coordinator) ApplyKeys(ctx context.Context, id string, p ledger.Params, r keys.Request) (keys.Reply, error) {
	if err := ctx.Err(); err != nil {
		return keys.Reply{}, unavailable(err)
	}
	if err := errors.Join(p.Validate(), r.Validate()); err != nil {
		return keys.Reply{}, fmt.Errorf("%s: budget %s: %w", name, id, err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	p.Block = 0
	now := c.clock()
	s, known := c.budgets[id]
	if !known {
		c.forget(now)
	}
	next, w, reply := keys.Open(s, p, now, c.memory, r.Member)
	c.budgets[id] = next
	if reply.Reason != ledger.Granted {
		return reply, nil
	}
	book := c.books[id]
	if book == nil {
		book = &keys.Book{Share: store.SharedHashOf}
		c.books[id] = book
	}
	for _, a := range r.Asks {
		reply.Grants = append(reply.Grants, book.Take(w, a))
	}
	reply.Room = book.Room()
	return reply, nil
}

// Observe implements federation.Coordinator. The error is a *store.UnavailableError
// when ctx is done.
func (c *Coordinator) Observe(ctx context.Context, id string) (ledger.State, error) {
	if err := ctx.Err(); err != nil {
		return ledger.State{}, unavailable(err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.budgets[id], nil
}

// forget drops the budgets with nothing worth keeping that nobody asked for during the
// length of the longest window. No window whose grants are forgotten so is served again,
// also when the clock is set back.
func (c *Coordinator) forget(now limiter.Instant) {
	for id, s := range c.budgets {
		if s.KeepFor(now) == 0 && now.Sub(s.Latest) > limiter.MaxWindow {
			c.memory.Since = max(c.memory.Since, s.Latest+1)
			delete(c.budgets, id)
			delete(c.books, id)
		}
	}
}

func unavailable(cause error) error { return &store.UnavailableError{Store: name, Cause: cause} }
