package redis

import (
	"context"
	"fmt"

	"github.com/weir-dev/weir/pkg/concurrency/pool"
	"github.com/weir-dev/weir/pkg/store/redis"
)

// A Coordinator divides pools. It is safe for concurrent use.
type Coordinator struct {
	store *redis.Store
	step  redis.Program
}

// New returns a coordinator that divides the pools in a store, which the caller
// closes.
func New(s *redis.Store) *Coordinator { return newCoordinator(s) }

func newCoordinator(s *redis.Store, before ...string) *Coordinator {
	return &Coordinator{store: s, step: redis.NewProgram(append(before, programs()...)...)}
}

// Apply applies c to a pool in one round trip, two after the server lost its script
// cache. The error is a *store.UnavailableError when the server could not be reached,
// was not able to serve, or ctx was done; a *pool.InvalidError is in one that names
// what is wrong with p or c; any other is a defect. A command whose error is
// unavailable may still have been carried out.
func (c *Coordinator) Apply(ctx context.Context, key pool.Key, p pool.Params, cmd pool.Command) (pool.Grant, error) {
	if err := validate(&p, &cmd); err != nil {
		return pool.Grant{}, fmt.Errorf("%s: pool %s: %w", c.store.Name(), key, err)
	}
	reply, err := c.store.Run(ctx, c.step, "pool:"+key.String(), suffixes, encodeParams(&p), encodeCommand(&cmd), cmd.Holder)
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
