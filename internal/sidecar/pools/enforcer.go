package pools

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weir-dev/weir/internal/sidecar/enforce"
	"github.com/weir-dev/weir/pkg/concurrency"
	"github.com/weir-dev/weir/pkg/policy"
)

// Config is what an Enforcer is made of.
type Config struct {
	// Holder is this process: pod UID, a slash and the boot nonce, which is how the
	// controller names it, too.
	Holder       string
	Mode         enforce.Mode
	Coordinators Coordinators
}

// An Enforcer keeps the guards of the pools in force. All methods may be called
// concurrently.
type Enforcer struct {
	cfg     Config
	current atomic.Pointer[together] // nil while no pool applies

	mu      sync.Mutex // guards the rest
	guards  int64      // that there ever were
	engines map[identity]*engine
	leaving map[*engine]bool // that give their share up
	ready   *Change          // not in force yet; nil for none
	closed  bool
	closing sync.WaitGroup // of those that leave
}

// An identity distinguishes pools.
type identity struct {
	cluster, namespace, name string
	coordinator              policy.Store // without what may change: TLS and credentials
}

func identityOf(cluster string, p *policy.Pool) identity {
	id := identity{cluster, p.Namespace, p.Name, p.Coordinator}
	id.coordinator.TLS, id.coordinator.Secret, id.coordinator.SecretVersion = false, "", ""
	return id
}

// An engine is a guard that is in force, or retired and waits for its last requests.
type engine struct {
	id          identity
	guard       *concurrency.Guard
	coordinator *numbered
	retired     atomic.Bool // changed under Enforcer.mu
	spared      spared

	// Guarded by Enforcer.mu.
	config concurrency.Config
	before int64        // commands that were sent under other configurations
	store  policy.Store // whose connections lead to the coordinator, without the version of its secret
	sent   sent
}

// inForce is a pool from one change to the next.
type inForce struct {
	*policy.CompiledPool
	shadow  bool
	aborts  bool // requests are ended when the share expires
	engine  *engine
	tallies tallies
}

// New returns an Enforcer without a pool. Close releases it.
func New(cfg Config) *Enforcer {
	return &Enforcer{cfg: cfg, engines: map[identity]*engine{}, leaving: map[*engine]bool{}}
}

var errClosed = errors.New("the sidecar is stopping")

// closeTimeout bounds how long a guard without requests may take to give its share up.
const closeTimeout = 5 * time.Second

// A Change is the pools of a set, which are ready to be put in force.
type Change struct {
	enforcer *Enforcer
	cluster  string
	pools    []prepared
}

// prepared is a pool that is ready to be put in force.
type prepared struct {
	*policy.CompiledPool
	config      concurrency.Config
	coordinator concurrency.Coordinator
}

// Prepare looks whether the pools of the set can be kept, and changes nothing. Commit or
// Abandon what it returns.
func (k *Enforcer) Prepare(set *policy.Set) (*Change, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.closed {
		return nil, errClosed
	}
	c := &Change{enforcer: k, cluster: set.Snapshot.Cluster}
	if k.cfg.Mode == enforce.Bypass {
		return c, nil
	}
	for _, p := range set.Pools() {
		ready, err := k.prepare(c.cluster, p)
		if err != nil {
			if len(c.pools) > 0 {
				k.retain() // without the coordinators that were opened for the others
			}
			return nil, fmt.Errorf("pool %s/%s: %w", p.Pool.Namespace, p.Pool.Name, err)
		}
		c.pools = append(c.pools, ready)
	}
	if len(c.pools) > 0 {
		k.ready = c
	}
	return c, nil
}

func (k *Enforcer) prepare(cluster string, p *policy.CompiledPool) (prepared, error) {
	out := prepared{CompiledPool: p, config: guardConfig(cluster, k.cfg.Holder, p.Pool, k.shadows(p))}
	if err := out.config.Validate(); err != nil {
		return prepared{}, err
	}
	var err error
	out.coordinator, err = k.cfg.Coordinators.Coordinator(p.Pool.Coordinator)
	return out, err
}

func (k *Enforcer) shadows(p *policy.CompiledPool) bool {
	return p.Shadow() || k.cfg.Mode == enforce.Shadow
}

// Commit puts the pools in force, and waits for nobody. After Close it does
// nothing.
func (c *Change) Commit() {
	k := c.enforcer
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.closed {
		return
	}
	k.ready = nil
	old := k.current.Load()
	next := k.build(c, old)
	k.current.Store(next)
	if old == nil {
		return
	}
	for _, p := range old.pools {
		if next.of(p.engine) == nil {
			k.retire(p.engine)
		}
	}
}

// Abandon closes the coordinators that were opened for the pools, if they are not needed
// otherwise.
func (c *Change) Abandon() {
	c.enforcer.mu.Lock()
	defer c.enforcer.mu.Unlock()
	c.enforcer.ready = nil
	c.enforcer.retain()
}

// build returns what is in force by the change, with the guards that run or new ones.
func (k *Enforcer) build(c *Change, old *together) *together {
	if len(c.pools) == 0 {
		return nil
	}
	next := &together{}
	for i := range c.pools {
		p := &c.pools[i]
		e := k.engine(c.cluster, p)
		of := &inForce{CompiledPool: p.CompiledPool, shadow: k.shadows(p.CompiledPool), aborts: e.config.OnFenced == concurrency.Abort, engine: e}
		if before := old.of(e); before != nil {
			of.tallies = before.tallies.under(p.Pool)
		} else {
			of.tallies = newTallies(p.Pool)
		}
		next.pools = append(next.pools, of)
		if q := p.Pool.Queue; q != nil {
			next.maxWait = max(next.maxWait, duration(q.MaxWait))
		}
	}
	return next
}

// engine returns the guard of the pool, under its present configuration.
func (k *Enforcer) engine(cluster string, c *prepared) *engine {
	id, store := identityOf(cluster, c.Pool), c.Pool.Coordinator
	store.SecretVersion = ""
	e := k.engines[id]
	if e == nil {
		e = &engine{id: id, coordinator: number(c.coordinator, k.guards), config: c.config, store: store}
		e.guard = concurrency.New(c.config, e.coordinator)
		k.engines[id] = e
		k.guards++
	}
	e.retired.Store(false)
	e.adopt(c.config)
	if store != e.store {
		e.store = store
		e.coordinator.reach(c.coordinator)
		k.retain()
	}
	return e
}

func (e *engine) adopt(cfg concurrency.Config) {
	if !reflect.DeepEqual(cfg, e.config) {
		e.config = cfg
		e.guard.Reconfigure(cfg)
		e.before = e.guard.Stats().Beats
	}
}

// retire lets the requests of a guard finish; mu is held. They are not ended on
// account of a pool that does not apply any more.
func (k *Enforcer) retire(e *engine) {
	e.retired.Store(true)
	cfg := e.config
	cfg.OnFenced = concurrency.Drain
	e.adopt(cfg)
	k.finish(e)
}

// finish closes a retired guard that has no requests; mu is held.
func (k *Enforcer) finish(e *engine) {
	if !e.retired.Load() || k.engines[e.id] != e || !e.idle() {
		return
	}
	delete(k.engines, e.id)
	ctx, cancel := context.WithTimeout(context.Background(), closeTimeout)
	k.leave(e, func() {
		defer cancel()
		e.guard.Close(ctx)
	})
}

func (e *engine) idle() bool {
	s := e.guard.Stats()
	return s.InFlight == 0 && s.Queued == 0
}

// leave closes a guard in the background, and then the coordinator that is no longer
// needed; mu is held.
func (k *Enforcer) leave(e *engine, closeGuard func()) {
	k.leaving[e] = true
	k.closing.Go(func() {
		closeGuard()
		k.mu.Lock()
		defer k.mu.Unlock()
		delete(k.leaving, e)
		k.retain()
	})
}

// retain closes the coordinators that no guard uses any more; mu is held.
func (k *Enforcer) retain() {
	used := make(map[policy.Store]bool)
	for _, e := range k.engines {
		used[e.store] = true
	}
	for e := range k.leaving {
		used[e.store] = true
	}
	if k.ready != nil {
		for i := range k.ready.pools {
			store := k.ready.pools[i].Pool.Coordinator
			store.SecretVersion = ""
			used[store] = true
		}
	}
	k.cfg.Coordinators.Retain(used)
}

// Close refuses requests from now on, waits until none is in flight, and gives the
// share up. When ctx is done before, the share is left to expire, since it is in use.
// The pools can still be reported.
func (k *Enforcer) Close(ctx context.Context) {
	k.mu.Lock()
	k.closed = true
	for id, e := range k.engines {
		delete(k.engines, id)
		k.leave(e, func() { e.guard.Close(ctx) })
	}
	k.mu.Unlock()
	k.closing.Wait()
	k.cfg.Coordinators.Retain(nil)
}
