package redis

import (
	"context"
	"fmt"

	"github.com/weir-dev/weir/pkg/federation/escrow"
	"github.com/weir-dev/weir/pkg/store/redis"
)

// An Escrow keeps the escrows of any number of budgets. It is safe for concurrent
// use.
type Escrow struct {
	store *redis.Store
	step  redis.Program
}

// New returns an escrow in a store, which the caller closes.
func New(s *redis.Store) *Escrow { return newEscrow(s) }

func newEscrow(s *redis.Store, before ...string) *Escrow {
	return &Escrow{store: s, step: redis.NewProgram(append(before, programs()...)...)}
}

// suffixes are how the names of an escrow's keys end.
var suffixes = []string{""}

// Apply applies c to the escrow of the budget of that id in one round trip, two after
// the server lost its script cache. The error is a *store.UnavailableError when the
// server could not be reached, was not able to serve, or ctx was done; an
// *escrow.InvalidError is in one that names what is wrong with c; any other is a
// defect. A command whose error is unavailable may still have been carried out: what
// it took is stranded until the window ends.
func (e *Escrow) Apply(ctx context.Context, id string, c escrow.Command) (escrow.Result, error) {
	if err := c.Validate(); err != nil {
		return escrow.Result{}, fmt.Errorf("%s: budget %s: %w", e.store.Name(), id, err)
	}
	reply, err := e.store.Run(ctx, e.step, "escrow:"+id, suffixes, encode(&c), c.Holder)
	if err != nil {
		return escrow.Result{}, err
	}
	r, err := decode(reply)
	if err != nil {
		return escrow.Result{}, fmt.Errorf("%s: budget %s: %w", e.store.Name(), id, err)
	}
	return r, nil
}
