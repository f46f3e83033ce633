package stores

import (
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/weir-dev/weir/internal/backend"
	"github.com/weir-dev/weir/internal/sidecar/proxy/socket"
	"github.com/weir-dev/weir/pkg/concurrency"
	"github.com/weir-dev/weir/pkg/limiter"
	"github.com/weir-dev/weir/pkg/policy"
	"github.com/weir-dev/weir/pkg/store"
	"github.com/weir-dev/weir/pkg/twotier"
)

// A Pool shares stores among its users. All methods may be called concurrently.
type Pool struct {
	leader     Controller
	toward     twotier.Store // the controller, observed
	controller *twotier.Breaker
	divider    concurrency.Coordinator // the controller, of concurrency pools
	observer   Observer
	log        *slog.Logger
	began      time.Time

	mu          sync.Mutex
	users       []*User
	connections map[policy.Store]*connection // by store without the version of its secret
	gateways    map[policy.Store]*twotier.Breaker
	secrets     map[string]Secret   // by name, as they were last learned
	reached     map[string]*reached // what the controller knows of clocks, by policy.Store.Server
	retiring    sync.WaitGroup
}

// A Controller is the leading controller as a store, and as the way to others.
type Controller interface {
	twotier.Store
	// Gateway returns the store of type Gateway of that address.
	Gateway(address string) twotier.Store
}

// NewPool returns a pool in which the Controller store is controller, and divides
// concurrency pools as divider.
func NewPool(controller Controller, divider concurrency.Coordinator, o Observer, log *slog.Logger) *Pool {
	toward := observed{Store: controller, of: policy.Store{Type: policy.ControllerStore}, observer: o}
	return &Pool{
		leader: controller, toward: toward, controller: twotier.NewBreaker(toward), divider: divider, observer: o, log: log,
		connections: make(map[policy.Store]*connection), gateways: make(map[policy.Store]*twotier.Breaker), reached: make(map[string]*reached), began: time.Now(),
	}
}

// connect opens the connection's server with the credentials that are known; mu is
// held. A server that is open stays when another cannot be.
func (p *Pool) connect(c *connection) {
	secret, arrived := p.secrets[c.of.Secret]
	if c.of.Secret != "" && !arrived {
		return
	}
	opened, err := backend.Opener{Conn: socket.NewConn}.Open(c.of, secret.Data)
	if err != nil {
		c.Fail(err)
		p.log.Error("a store cannot be opened", "store", c.Name, "error", err)
		return
	}
	next := backend.Keep(opened, secret.Version)
	if f, known := p.reached[c.of.Server()]; known {
		next.Reached(f.by(p.local()))
	}
	if before := c.Replace(next, nil); before != nil {
		p.retiring.Go(func() { p.closed(c, before.Retire()) })
	}
}

// Learn takes over the credentials of all stores. Stores that were opened with
// others are opened again, and those that waited for them become available.
func (p *Pool) Learn(secrets []Secret) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.secrets = make(map[string]Secret, len(secrets))
	for _, s := range secrets {
		p.secrets[s.Name] = s
	}
	for _, c := range p.connections {
		on := c.Look()
		if s, known := p.secrets[c.of.Secret]; !known || on != nil && on.Version == s.Version {
			continue
		}
		p.connect(c)
	}
}

// reached is what the controller knows of the clock of a server.
type reached struct {
	store.Floor
	doubtful limiter.Instant
}

func (r *reached) by(local int64) store.Reached {
	return store.Reached{Now: r.At(local), Doubtful: r.doubtful}
}

// Reached notes what the controller knows of the clock of a server: also of one that is
// opened later, and of one that is opened again, which knows of no clock otherwise.
func (p *Pool) Reached(server string, by store.Reached) {
	p.mu.Lock()
	defer p.mu.Unlock()
	f, known := p.reached[server]
	if !known {
		f = &reached{}
		p.reached[server] = f
	}
	f.Observe(by.Now, p.local())
	f.doubtful = max(f.doubtful, by.Doubtful)
	for of, c := range p.connections {
		if of.Server() == server {
			c.reached(f.by(p.local()))
		}
	}
}

// Promise is that of the breaker before the controller's own store. Windows of the budgets that
// it hands on are others.
func (p *Pool) Promise(now, until limiter.Instant) (begun limiter.Instant, ok bool) {
	return p.controller.Promise(now, until)
}

// local is the local instant of the floors.
func (p *Pool) local() int64 { return int64(time.Since(p.began)) }

// retain closes the stores that no user needs and ends their upkeep; mu is held. When
// none is needed it returns after all are closed.
func (p *Pool) retain() {
	needed := 0
	for key, c := range p.connections {
		if p.needs(key) {
			needed++
			continue
		}
		delete(p.connections, key)
		if s := c.Replace(nil, errClosed); s != nil {
			p.closed(c, s.Close())
		}
		p.observer.Closed(key)
	}
	for of := range p.gateways {
		if !p.needs(of) {
			delete(p.gateways, of)
			p.observer.Closed(of)
		}
	}
	if needed == 0 {
		p.retiring.Wait()
	}
}

func (p *Pool) needs(s policy.Store) bool {
	return slices.ContainsFunc(p.users, func(u *User) bool { return u.used[s] })
}

func (p *Pool) closed(c *connection, err error) {
	if err != nil {
		p.log.Warn("closing a store failed", "store", c.Name, "error", err)
	}
}
