package postgres

import (
	"context"
	"fmt"

	"github.com/weir-dev/weir/pkg/concurrency/pool"
	"github.com/weir-dev/weir/pkg/store/postgres"
)

// A Coordinator divides pools. It is safe for concurrent use.
type Coordinator struct {
	store   *postgres.Store
	program postgres.Program
	beat    string // SQL
}

// New returns a coordinator that divides the pools in a database, whose store the
// caller closes.
func New(s *postgres.Store) *Coordinator { return newCoordinator(s, read("clock")) }

func newCoordinator(s *postgres.Store, clock string) *Coordinator {
	p := newProgram(clock)
	return &Coordinator{store: s, program: p, beat: p.SQL("SELECT weir.beat$build($1, $2, $3, $4)")}
}

// Apply applies c to a pool in one round trip. The error is a *store.UnavailableError
// when the server could not be reached, was not able to serve, or ctx was done; a
// *pool.InvalidError is in one that names what is wrong with p or c; any other is a
// defect. A command whose error is unavailable may still have been carried out.
func (c *Coordinator) Apply(ctx context.Context, key pool.Key, p pool.Params, cmd pool.Command) (pool.Grant, error) {
	if err := validate(&p, &cmd); err != nil {
		return pool.Grant{}, fmt.Errorf("%s: pool %s: %w", c.store.Name(), key, err)
	}
	reply, err := postgres.Run[[]int64](ctx, c.store, c.program, c.beat, encode(key, &p, &cmd)...)
	if err != nil {
		return pool.Grant{}, err
	}
	g, err := decode(reply)
	if err != nil {
		return pool.Grant{}, fmt.Errorf("%s: pool %s: %w", c.store.Name(), key, err)
	}
	return g, nil
}

func validate(p *pool.Params, c *pool.Command) error {
	if err := c.Validate(); err != nil {
		return err
	}
	return p.Validate()
}
