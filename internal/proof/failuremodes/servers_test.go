package failuremodes_test

import (
	"context"
	"sync"
	"time"

	"github.com/weir-dev/weir/internal/testing/postgrestest"
	"github.com/weir-dev/weir/internal/testing/redistest"
	"github.com/weir-dev/weir/pkg/federation"
	"github.com/weir-dev/weir/pkg/federation/coordinator/memory"
	coordinatorpostgres "github.com/weir-dev/weir/pkg/federation/coordinator/postgres"
	coordinatorredis "github.com/weir-dev/weir/pkg/federation/coordinator/redis"
	escrowredis "github.com/weir-dev/weir/pkg/federation/escrow/redis"
	"github.com/weir-dev/weir/pkg/federation/ledger"
	"github.com/weir-dev/weir/pkg/limiter"
	"github.com/weir-dev/weir/pkg/store/postgres"
	"github.com/weir-dev/weir/pkg/store/redis"
)

// servers are the real ones of a row.
type servers struct {
	address  address
	redis    *redistest.Server
	postgres *postgrestest.Server
}

// An address is a name that another server can take over, as the name of a primary.
type address struct {
	mu sync.Mutex
	to federation.Coordinator // guarded by mu
}

func (a *address) move(to federation.Coordinator) *address {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.to = to
	return a
}

func (a *address) get() federation.Coordinator {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.to
}

// Apply implements federation.Coordinator.
func (a *address) Apply(ctx context.Context, id string, p ledger.Params, c ledger.Command) (ledger.Grant, error) {
	return a.get().Apply(ctx, id, p, c)
}

// Observe implements federation.Coordinator.
func (a *address) Observe(ctx context.Context, id string) (ledger.State, error) {
	return a.get().Observe(ctx, id)
}

func onARedis(w *world) federation.Coordinator {
	w.servers.redis = redistest.Start(w.t)
	return w.servers.address.move(w.atRedis(w.servers.redis))
}

func onAPostgres(w *world) federation.Coordinator {
	w.servers.postgres = postgrestest.Start(w.t)
	return w.servers.address.move(w.atPostgres(w.servers.postgres))
}

// inMemory coordinates in the test's process: it is the escrow that is on a server.
func inMemory(*world) federation.Coordinator {
	clock := func() limiter.Instant { return limiter.Instant(time.Now().UnixMicro()) }
	return memory.New(memory.Options{Clock: clock, Term: 1, First: true})
}

// inARedis keeps the escrow of the first region in one Redis, and those of others in
// another each.
func inARedis(w *world) federation.Escrow {
	server := redistest.Start(w.t)
	if w.servers.redis == nil {
		w.servers.redis = server
	}
	return escrowredis.New(w.dialRedis(server))
}

func (w *world) dialRedis(server *redistest.Server) *redis.Store {
	s, err := redis.Open(redis.Options{Addresses: []string{server.Addr}})
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() { _ = s.Close() })
	return s
}

func (w *world) atRedis(server *redistest.Server) federation.Coordinator {
	return coordinatorredis.New(w.dialRedis(server))
}

func (w *world) atPostgres(server *postgrestest.Server) federation.Coordinator {
	s, err := postgres.Dial(postgres.Options{Address: server.Addr, Database: postgrestest.Database, User: postgrestest.User})
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() { _ = s.Close() })
	return coordinatorpostgres.New(s)
}

// grace is how long a row waits for what has to happen on a machine that is busy.
const grace = 60 * time.Second

// await waits for something to hold.
func (w *world) await(what string, holds func() bool) {
	w.t.Helper()
	for deadline := time.Now().Add(grace); !holds(); <-time.After(time.Millisecond) {
		if time.Now().After(deadline) {
			w.t.Fatalf("after %v: %s", grace, what)
		}
	}
}

// awaitConnected waits until every controller had an answer.
func (w *world) awaitConnected() {
	w.t.Helper()
	w.await("not all are connected", func() bool {
		for _, r := range w.regions {
			for i := range r.processes {
				if !r.get(i).Stats().Connected {
					return false
				}
			}
		}
		return true
	})
}

// awaitBusy waits until half of a window is admitted that is later than every window
// with admissions before, and returns its number.
func (w *world) awaitBusy() (index int64) {
	w.t.Helper()
	latest := w.latest()
	w.await("of no window half is admitted", func() bool {
		index = w.latest()
		return index > latest && w.of(index) >= w.params.Limit/2
	})
	return index
}

// latest returns the latest window with admissions.
func (w *world) latest() (index int64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for i, n := range w.named {
		if n > 0 {
			index = max(index, i)
		}
	}
	return index
}

// term returns the latest memory of the coordinator that a region heard of.
func (w *world) term() (term int64) {
	for _, r := range w.regions {
		r.line.set(func(l *line) {
			for _, g := range l.grants {
				term = max(term, g.Epoch.Term)
			}
		})
	}
	return term
}
