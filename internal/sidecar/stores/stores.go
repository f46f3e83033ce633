package stores

import (
	"fmt"
	"log/slog"
	"sync"

	"github.com/weir-dev/weir/pkg/policy"
	"github.com/weir-dev/weir/pkg/twotier"
)

// A Pool opens stores on demand and shares them. All methods may be called
// concurrently.
type Pool struct {
	controller *twotier.Gate
	observer   Observer
	log        *slog.Logger

	mu          sync.Mutex
	connections map[policy.Store]*connection // by store without the version of its secret
	secrets     map[string]Secret            // by name, as they were last learned
	retiring    sync.WaitGroup
}

// NewPool returns a pool in which the Controller store is controller.
func NewPool(controller twotier.Store, o Observer, log *slog.Logger) *Pool {
	toward := observed{Store: controller, of: policy.Store{Type: policy.ControllerStore}, observer: o}
	return &Pool{
		controller: twotier.NewGate(toward), observer: o, log: log,
		connections: make(map[policy.Store]*connection),
	}
}

// Open returns the store behind its gate, the same for the same store in whatever
// version of its credentials. It does not wait for a connection. While its
// credentials have not arrived or are no good, the store is unavailable, and
// other policies do not suffer from it. It is kept up until
// Retain closes it. The error names a type of store that is not known.
func (p *Pool) Open(s policy.Store) (twotier.Store, error) {
	switch s.Type {
	case policy.ControllerStore:
		return p.controller, nil
	case policy.RedisStore, policy.PostgresStore:
		return p.open(withoutVersion(s)), nil
	default:
		return nil, fmt.Errorf("store type %q is not known to this version of the sidecar", s.Type)
	}
}

func (p *Pool) open(s policy.Store) *twotier.Gate {
	p.mu.Lock()
	defer p.mu.Unlock()
	if c, ok := p.connections[s]; ok {
		return c.gate
	}
	c := newConnection(s, p.observer)
	p.connections[s] = c
	p.connect(c)
	return c.gate
}

// connect opens the connection's server with the credentials that are known; mu is
// held. A server that is open stays when another cannot be.
func (p *Pool) connect(c *connection) {
	secret, arrived := p.secrets[c.of.Secret]
	if c.of.Secret != "" && !arrived {
		return
	}
	next, err := dial(c.of, secret)
	if err != nil {
		c.fail(err)
		p.log.Error("a store cannot be opened", "store", nameOf(c.of), "error", err)
		return
	}
	if before := c.replace(next); before != nil {
		p.retiring.Go(func() { p.closed(c, before.retire()) })
	}
}

// Learn takes over the credentials of all stores. Stores that were opened with
// others are opened anew, and those that waited for them become available.
func (p *Pool) Learn(secrets []Secret) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.secrets = make(map[string]Secret, len(secrets))
	for _, s := range secrets {
		p.secrets[s.Name] = s
	}
	for _, c := range p.connections {
		version, open := c.open()
		if s, known := p.secrets[c.of.Secret]; !known || open && version == s.Version {
			continue
		}
		p.connect(c)
	}
}

// Retain closes the stores that are not in used and ends their upkeep. When none is
// in use it returns after all are closed.
func (p *Pool) Retain(used map[policy.Store]bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	kept := make(map[policy.Store]bool, len(used))
	for s := range used {
		kept[withoutVersion(s)] = true
	}
	for key, c := range p.connections {
		if kept[key] {
			continue
		}
		delete(p.connections, key)
		if s := c.replace(nil); s != nil {
			p.closed(c, s.close())
		}
		p.observer.Closed(key)
	}
	if len(kept) == 0 {
		p.retiring.Wait()
	}
}

func (p *Pool) closed(c *connection, err error) {
	if err != nil {
		p.log.Warn("closing a store failed", "store", nameOf(c.of), "error", err)
	}
}

func withoutVersion(s policy.Store) policy.Store {
	s.SecretVersion = ""
	return s
}
