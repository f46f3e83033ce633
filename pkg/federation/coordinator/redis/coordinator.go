package redis

import (
	"context"
	"fmt"

	"github.com/weir-dev/weir/pkg/federation/ledger"
	"github.com/weir-dev/weir/pkg/store/redis"
)

// A Coordinator keeps budgets. It is safe for concurrent use.
type Coordinator struct {
	store         *redis.Store
	step, observe redis.Program
}

// New returns a coordinator that keeps the budgets in a store, which the caller closes.
func New(s *redis.Store) *Coordinator { return newCoordinator(s) }

func newCoordinator(s *redis.Store, before ...string) *Coordinator {
	return &Coordinator{
		store:   s,
		step:    redis.NewProgram(append(before, parts(stepFiles...)...)...),
		observe: redis.NewProgram(parts("observe")...),
	}
}

// Apply implements federation.Coordinator, in one round trip, two after the server lost
// its script cache. The error is a *store.UnavailableError when the server could not be
// reached, was not able to serve, or ctx was done; a *ledger.InvalidError is in one that names
// what is wrong with p or cmd; any other is a defect. A command whose error is
// unavailable may still have been carried out.
func (c *Coordinator) Apply(ctx context.Context, id string, p ledger.Params, cmd ledger.Command) (ledger.Grant, error) {
	// What was granted is remembered, or known to be lost, and the server knows its memory.
	p.Block, cmd.Memory = 0, ledger.Memory{Term: 1}
	if err := cmd.ValidateGrant(p); err != nil {
		return ledger.Grant{}, c.name(id, err)
	}
	reply, err := c.store.Run(ctx, c.step, key(id), suffixes, encodeParams(&p), encodeCommand(&cmd), cmd.Member, cmd.Holder)
	if err != nil {
		return ledger.Grant{}, err
	}
	g, err := decodeGrant(reply)
	if err != nil {
		return ledger.Grant{}, c.name(id, err)
	}
	return g, nil
}

// Observe implements federation.Coordinator. The error is that of Apply.
func (c *Coordinator) Observe(ctx context.Context, id string) (ledger.State, error) {
	reply, err := c.store.Run(ctx, c.observe, key(id), suffixes)
	if err != nil {
		return ledger.State{}, err
	}
	s, err := decodeState(reply)
	if err != nil {
		return ledger.State{}, c.name(id, err)
	}
	return s, nil
}

// name says in an error which budget it is about.
func (c *Coordinator) name(id string, err error) error {
	return fmt.Errorf("%s: budget %s: %w", c.store.Name(), id, err)
}

func key(id string) string { return "budget:" + id }
