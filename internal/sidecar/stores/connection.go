package stores

import (
	"context"
	"errors"
	"fmt"

	"github.com/weir-dev/weir/internal/backend"
	"github.com/weir-dev/weir/pkg/concurrency/pool"
	"github.com/weir-dev/weir/pkg/limiter"
	"github.com/weir-dev/weir/pkg/policy"
	"github.com/weir-dev/weir/pkg/store"
	"github.com/weir-dev/weir/pkg/twotier"
)

// A connection is a store in use. It outlives its credentials. When they change, a new
// server takes the place of the one that was opened with the old ones, behind the same
// breaker, and leases stay good.
type connection struct {
	backend.Handle[*backend.Server]

	of      policy.Store // without the version of its secret
	breaker *twotier.Breaker
}

func newConnection(of policy.Store, o Observer) *connection {
	c := &connection{of: of}
	c.Name = of.Name()
	c.Fail(fmt.Errorf("its credentials, secret %s, have not arrived from the controller yet", of.Secret))
	c.breaker = twotier.NewBreaker(observed{Store: c, of: of, observer: o})
	return c
}

var _ twotier.Store = (*connection)(nil)

var errClosed = errors.New("it is no longer used")

// Apply asks the server that was opened last, and fails at once while none is.
func (c *connection) Apply(ctx context.Context, key store.Key, p limiter.Params, cmd limiter.Command) (limiter.Result, error) {
	s, err := c.Enter()
	if err != nil {
		return limiter.Result{}, err
	}
	defer s.Leave()
	return s.Apply(ctx, key, p, cmd)
}

// reached notes what the controller knows of the store's clock.
func (c *connection) reached(by store.Reached) {
	if s, err := c.Enter(); err == nil {
		defer s.Leave()
		s.Reached(by)
	}
}

// dividing is a connection as it divides concurrency pools.
type dividing struct{ *connection }

// Apply asks the server that was opened last, and fails at once while none is.
func (d dividing) Apply(ctx context.Context, key pool.Key, p pool.Params, c pool.Command) (pool.Grant, error) {
	s, err := d.Enter()
	if err != nil {
		return pool.Grant{}, err
	}
	defer s.Leave()
	return s.Coordinator().Apply(ctx, key, p, c)
}
