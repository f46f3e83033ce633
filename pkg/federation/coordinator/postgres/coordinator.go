package postgres

import (
	"context"
	"fmt"

	"github.com/weir-dev/weir/pkg/federation/ledger"
	"github.com/weir-dev/weir/pkg/store/postgres"
)

// A Coordinator keeps budgets. It is safe for concurrent use.
type Coordinator struct {
	store         *postgres.Store
	program       postgres.Program
	step, observe string // SQL
}

// New returns a coordinator that keeps the budgets in a database, whose store the caller
// closes.
func New(s *postgres.Store) *Coordinator { return newCoordinator(s, read("clock")) }

func newCoordinator(s *postgres.Store, clock string) *Coordinator {
	p := newProgram(clock)
	return &Coordinator{
		store: s, program: p,
		step:    p.SQL("SELECT weir.step$build($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)"),
		observe: p.SQL("SELECT weir.observe$build($1)"),
	}
}

// Apply implements federation.Coordinator, in one round trip. The error is a
// *store.UnavailableError when the server could not be reached, was not able to serve,
// or ctx was done; a *ledger.InvalidError is in one that names what is wrong with p or
// cmd; any other is a defect. A command whose error is unavailable may still have been
// carried out.
func (c *Coordinator) Apply(ctx context.Context, id string, p ledger.Params, cmd ledger.Command) (ledger.Grant, error) {
	// What was granted is remembered, or known to be lost, and the server knows its memory.
	p.Block, cmd.Memory = 0, ledger.Memory{Term: 1}
	if err := cmd.ValidateGrant(p); err != nil {
		return ledger.Grant{}, c.name(id, err)
	}
	reply, err := postgres.Run[[]int64](ctx, c.store, c.program, c.step, encode(id, &p, &cmd)...)
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
	reply, err := postgres.Run[[]byte](ctx, c.store, c.program, c.observe, []byte(id))
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
