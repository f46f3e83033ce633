package stores

import (
	"fmt"

	"github.com/weir-dev/weir/pkg/concurrency"
	"github.com/weir-dev/weir/pkg/policy"
	"github.com/weir-dev/weir/pkg/twotier"
)

// A User is one of those that stores are kept open for. All methods may be called
// concurrently.
type User struct {
	pool *Pool
	used map[policy.Store]bool // without the version of their secrets; guarded by pool.mu
}

// User returns a new user, which needs nothing yet.
func (p *Pool) User() *User {
	p.mu.Lock()
	defer p.mu.Unlock()
	u := &User{pool: p, used: make(map[policy.Store]bool)}
	p.users = append(p.users, u)
	return u
}

// Open returns the store behind its breaker, the same for the same store in whatever
// version of its credentials. It does not wait for a connection. While its credentials
// have not arrived or are not valid, the store is unavailable, and other policies do
// not suffer from it. It is kept up until Retain of every user that opened it. The
// error names a type of store that is not known.
func (u *User) Open(s policy.Store) (twotier.Store, error) {
	switch s.Type {
	case policy.ControllerStore:
		return u.pool.controller, nil
	case policy.RedisStore, policy.PostgresStore:
		return u.open(s).breaker, nil
	case policy.GatewayStore:
		return u.gateway(s), nil
	default:
		return nil, unknown(s)
	}
}

// gateway returns the store behind the controller, with a breaker of its own: it has another
// clock than the controller's own store, and may be away when that is not.
func (u *User) gateway(s policy.Store) *twotier.Breaker {
	p := u.pool
	p.mu.Lock()
	defer p.mu.Unlock()
	u.used[s] = true
	b, ok := p.gateways[s]
	if !ok {
		b = twotier.NewBreaker(observed{Store: p.leader.Gateway(s.Address), of: s, observer: p.observer})
		p.gateways[s] = b
	}
	return b
}

// Budget returns the controller as it hands on a budget that clusters share, behind a new
// breaker. Windows are by the clock of the coordinator that keeps the budget, and what one budget
// granted is never taken for another's or for the controller's.
func (u *User) Budget() twotier.Store { return twotier.NewBreaker(u.pool.toward) }

// Coordinator returns the coordinator of concurrency pools in the store, the same for
// the same store, and over the connections that Open has. Otherwise it is as Open.
func (u *User) Coordinator(s policy.Store) (concurrency.Coordinator, error) {
	switch s.Type {
	case policy.ControllerStore:
		return u.pool.divider, nil
	case policy.RedisStore, policy.PostgresStore:
		return dividing{u.open(s)}, nil
	default:
		return nil, unknown(s)
	}
}

func unknown(s policy.Store) error {
	return fmt.Errorf("store type %q is not known to this version of the sidecar", s.Type)
}

// open returns the connection of a store, which it opens when there is none.
func (u *User) open(s policy.Store) *connection {
	s = withoutVersion(s)
	p := u.pool
	p.mu.Lock()
	defer p.mu.Unlock()
	u.used[s] = true
	if c, ok := p.connections[s]; ok {
		return c
	}
	c := newConnection(s, p.observer)
	p.connections[s] = c
	p.connect(c)
	return c
}

// Retain says that the user needs no stores but those in used. Stores that no user
// needs are closed; when those are all, Retain returns after all are closed.
func (u *User) Retain(used map[policy.Store]bool) {
	u.pool.mu.Lock()
	defer u.pool.mu.Unlock()
	u.used = make(map[policy.Store]bool, len(used))
	for s := range used {
		u.used[withoutVersion(s)] = true
	}
	u.pool.retain()
}

func withoutVersion(s policy.Store) policy.Store {
	s.SecretVersion = ""
	return s
}
