package stores

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/weir-dev/weir/pkg/limiter"
	"github.com/weir-dev/weir/pkg/policy"
	"github.com/weir-dev/weir/pkg/store"
	"github.com/weir-dev/weir/pkg/twotier"
)

// A connection is a store in use. It outlives its credentials. When they change, a new
// server takes the place of the one that was opened with the old ones, behind the same
// breaker, and leases stay good.
type connection struct {
	of      policy.Store // without the version of its secret
	breaker *twotier.Breaker

	mu     sync.RWMutex
	server *server // nil while there is none
	cause  error   // why there is none
}

func newConnection(of policy.Store, o Observer) *connection {
	c := &connection{of: of}
	c.cause = fmt.Errorf("its credentials, secret %s, have not arrived from the controller yet", of.Secret)
	c.breaker = twotier.NewBreaker(observed{Store: c, of: of, observer: o})
	return c
}

var _ twotier.Store = (*connection)(nil)

var errClosed = errors.New("it is no longer used")

// Apply asks the server that was opened last, and fails at once while none is.
func (c *connection) Apply(ctx context.Context, key store.Key, p limiter.Params, cmd limiter.Command) (limiter.Result, error) {
	s, err := c.enter()
	if err != nil {
		return limiter.Result{}, &store.UnavailableError{Store: nameOf(c.of), Cause: err}
	}
	defer s.users.RUnlock()
	return s.Apply(ctx, key, p, cmd)
}

// reached notes what the controller knows of the store's clock.
func (c *connection) reached(by store.Reached) {
	if s, err := c.enter(); err == nil {
		defer s.users.RUnlock()
		s.Reached(by)
	}
}

// enter returns the server, which is not closed before its users are read-unlocked.
func (c *connection) enter() (*server, error) {
	c.mu.RLock()
	defer c.mu.RUnlock()
	if c.server == nil {
		return nil, c.cause
	}
	c.server.users.RLock()
	return c.server, nil
}

// replace puts next, nil to close the connection, in the place of the server and
// returns the one before.
func (c *connection) replace(next *server) (before *server) {
	c.mu.Lock()
	defer c.mu.Unlock()
	before = c.server
	c.server, c.cause = next, errClosed
	return before
}

// fail says why there is no server, if there is none.
func (c *connection) fail(cause error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.cause = cause
}

// open returns the version of the secret that the server was opened with, and false
// when there is no server.
func (c *connection) open() (version string, ok bool) {
	c.mu.RLock()
	defer c.mu.RUnlock()
	if c.server == nil {
		return "", false
	}
	return c.server.version, true
}
