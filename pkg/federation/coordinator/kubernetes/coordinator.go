package kubernetes

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/weir-dev/weir/pkg/federation/ledger"
	"github.com/weir-dev/weir/pkg/limiter"
	"github.com/weir-dev/weir/pkg/store"
)

// name is what users call this coordinator.
const name = "the hub's coordinator"

// ErrSealed is the cause of every refusal after Seal.
var ErrSealed = errors.New("the controller is handing over to the next leader")

var errNoBlock = &ledger.InvalidError{Field: "block", Why: "is 0: this coordinator grants from blocks, choose at least 1"}

// Options configure a Coordinator.
type Options struct {
	Journal Journal
	// Births distinguish new budgets from those whose record was lost. Nil: every budget without a
	// record grants nothing of the window that is open.
	Births Births
	// Clock returns the coordinator's time. It may step back: nothing is granted then
	// until it has caught up.
	Clock func() limiter.Instant
}

// A Coordinator keeps budgets. It is safe for concurrent use. Budgets do not wait for
// each other.
type Coordinator struct {
	options Options
	counts  counts

	mu      sync.Mutex // guards all below
	sealed  bool
	budgets map[string]*budget
}

type counts struct{ leases, loads, writes, conflicts atomic.Uint64 }

// Stats are counts since New.
type Stats struct {
	Leases    uint64 // commands applied that ask for units
	Loads     uint64 // records read
	Writes    uint64 // records written, or tried to
	Conflicts uint64 // memories given up because somebody else wrote
}

// New returns a coordinator that remembers nothing yet: it loads what it needs.
func New(o Options) *Coordinator {
	if o.Births == nil {
		o.Births = unrecorded{}
	}
	return &Coordinator{options: o, budgets: map[string]*budget{}}
}

// Apply implements federation.Coordinator. p.Block is at least 1. A command waits
// while the record is loaded, and when it asks for more than is set aside. The error
// is a *store.UnavailableError when the journal could not be reached in time, somebody
// else wrote the record, ctx is done or the coordinator is sealed. Any other error
// wraps a *ledger.InvalidError.
func (c *Coordinator) Apply(ctx context.Context, id string, p ledger.Params, cmd ledger.Command) (ledger.Grant, error) {
	if err := ctx.Err(); err != nil {
		return ledger.Grant{}, unavailable(err)
	}
	if err := validate(p, cmd); err != nil {
		return ledger.Grant{}, fmt.Errorf("%s: budget %s: %w", name, id, err)
	}
	b, err := c.budget(id)
	if err != nil {
		return ledger.Grant{}, unavailable(err)
	}
	g, err := b.apply(ctx, p, cmd)
	if err != nil {
		return ledger.Grant{}, unavailable(err)
	}
	if cmd.Op == ledger.Lease {
		c.counts.leases.Add(1)
	}
	return g, nil
}

func validate(p ledger.Params, cmd ledger.Command) error {
	if p.Block == 0 {
		return errNoBlock
	}
	cmd.Memory = ledger.Memory{Term: 1} // filled in later
	return cmd.ValidateGrant(p)
}

// Observe implements federation.Coordinator. For a budget that this memory has not
// served it returns what the record says, and the zero State when there is none.
func (c *Coordinator) Observe(ctx context.Context, id string) (ledger.State, error) {
	if err := ctx.Err(); err != nil {
		return ledger.State{}, unavailable(err)
	}
	c.mu.Lock()
	b, sealed := c.budgets[id], c.sealed
	c.mu.Unlock()
	if sealed {
		return ledger.State{}, unavailable(ErrSealed)
	}
	if b != nil {
		if s, ok := b.observe(); ok {
			return s, nil
		}
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	c.counts.loads.Add(1)
	r, _, err := c.options.Journal.Load(ctx, id)
	switch {
	case errors.Is(err, ErrNotFound):
		return ledger.State{}, nil
	case err != nil:
		return ledger.State{}, unavailable(err)
	}
	return r.state(), nil
}

// Seal makes every later call fail, waits for writes that are under way, and gives up
// what is set aside and was not granted, so that the next coordinator may grant it. It
// tries that until ctx is done; what it does not give up is forfeited.
func (c *Coordinator) Seal(ctx context.Context) {
	c.mu.Lock()
	c.sealed = true
	budgets := c.budgets
	c.budgets = nil
	c.mu.Unlock()
	var sealing sync.WaitGroup
	for _, b := range budgets {
		sealing.Go(func() { b.seal(ctx) })
	}
	sealing.Wait()
}

// Stats returns the counts.
func (c *Coordinator) Stats() Stats {
	return Stats{
		Leases: c.counts.leases.Load(), Loads: c.counts.loads.Load(),
		Writes: c.counts.writes.Load(), Conflicts: c.counts.conflicts.Load(),
	}
}

func (c *Coordinator) budget(id string) (*budget, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.sealed {
		return nil, ErrSealed
	}
	b, ok := c.budgets[id]
	if !ok {
		b = &budget{id: id, journal: c.options.Journal, births: c.options.Births, clock: c.options.Clock, counts: &c.counts}
		c.budgets[id] = b
	}
	return b, nil
}

func unavailable(cause error) error { return &store.UnavailableError{Store: name, Cause: cause} }
