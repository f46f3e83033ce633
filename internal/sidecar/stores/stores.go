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
	log        *slog.Logger

	mu    sync.Mutex
	redis map[string]*connection // by address
}

// NewPool returns a pool in which the Controller store is controller.
func NewPool(controller twotier.Store, log *slog.Logger) *Pool {
	return &Pool{controller: twotier.NewGate(controller), log: log, redis: make(map[string]*connection)}
}

// Open returns the store behind its gate. It does not wait for a connection. A
// Redis store is refreshed until Retain closes it.
func (p *Pool) Open(s policy.Store) (twotier.Store, error) {
	switch s.Type {
	case policy.ControllerStore:
		return p.controller, nil
	case policy.RedisStore:
		return p.open(s.Address), nil
	default:
		return nil, fmt.Errorf("store type %q is not known to this version of the sidecar", s.Type)
	}
}

func (p *Pool) open(address string) *twotier.Gate {
	p.mu.Lock()
	defer p.mu.Unlock()
	c, ok := p.redis[address]
	if !ok {
		c = connect(address)
		p.redis[address] = c
	}
	return c.gate
}

// Retain closes the stores that are not in used, and ends their refreshing.
func (p *Pool) Retain(used map[policy.Store]bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for address, c := range p.redis {
		if used[policy.Store{Type: policy.RedisStore, Address: address}] {
			continue
		}
		delete(p.redis, address)
		if err := c.close(); err != nil {
			p.log.Warn("closing a store failed", "address", address, "error", err)
		}
	}
}
