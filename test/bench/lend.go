package main

import (
	"context"
	"crypto/rand"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weir-dev/weir/internal/controlplane/hub"
	"github.com/weir-dev/weir/internal/testing/devcluster/servers"
	"github.com/weir-dev/weir/pkg/federation"
	kubernetescoordinator "github.com/weir-dev/weir/pkg/federation/coordinator/kubernetes"
	memorycoordinator "github.com/weir-dev/weir/pkg/federation/coordinator/memory"
	postgrescoordinator "github.com/weir-dev/weir/pkg/federation/coordinator/postgres"
	rediscoordinator "github.com/weir-dev/weir/pkg/federation/coordinator/redis"
	"github.com/weir-dev/weir/pkg/federation/ledger"
	"github.com/weir-dev/weir/pkg/limiter"
	"github.com/weir-dev/weir/pkg/store/postgres"
	"github.com/weir-dev/weir/pkg/store/redis"
)

// lendingTurn is one lender's turn: as long as a window, so that what a window costs when
// it begins is in every turn.
const lendingTurn = time.Duration(budgetWindow) * time.Microsecond

// A lender grants leases to callers, each of which takes one after another.
type lender struct {
	name   string
	lease  func(caller int) error // of leaseUnits
	writes func() int64           // to the API server so far; nil when it has none
	close  func()
}

// lent is what one lender did.
type lent struct {
	figure            // its trips are writes to the API server
	writes  []float64 // a second, by round; nil when it has no API server
	windows int64     // that its turns met
	refused int64     // leases that were not granted in full
	why     error     // the first of them was not
}

// lend lets the lenders take turns.
func lend(lenders []lender, callers int) []lent {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(2))
	all := make([]lent, len(lenders))
	for i, l := range lenders {
		all[i].name = l.name
		settle(l, callers)
	}
	for range rounds {
		for i, l := range lenders {
			all[i].turn(l, callers)
		}
	}
	for _, l := range lenders {
		l.close()
	}
	return all
}

// settle waits until every caller was granted a lease: a coordinator that is new serves
// no window that began before it.
func settle(l lender, callers int) {
	for caller := range callers {
		for deadline := time.Now().Add(5 * time.Second); time.Now().Before(deadline); {
			if l.lease(caller) == nil {
				break
			}
		}
	}
}

func (l *lent) turn(from lender, callers int) {
	var wait sync.WaitGroup
	var granted, refused atomic.Int64
	var why sync.Once
	written := from.written()
	begin := time.Now()
	for caller := range callers {
		wait.Go(func() {
			for time.Since(begin) < lendingTurn {
				if err := from.lease(caller); err != nil {
					refused.Add(1)
					why.Do(func() { l.why = err })
					continue
				}
				granted.Add(1)
			}
		})
	}
	wait.Wait()
	end := time.Now()
	l.ns = append(l.ns, float64(end.Sub(begin).Nanoseconds())/float64(granted.Load()))
	l.ops += int(granted.Load())
	l.refused += refused.Load()
	l.windows += windowOf(end) - windowOf(begin) + 1
	if from.writes != nil {
		writes := from.written() - written
		l.trips += writes
		l.writes = append(l.writes, float64(writes)/end.Sub(begin).Seconds())
	}
}

func windowOf(t time.Time) int64 { return t.UnixMicro() / int64(budgetWindow) }

func (l lender) written() int64 {
	if l.writes == nil {
		return 0
	}
	return l.writes()
}

// lenders returns all that grant leases to that many callers, on budgets of their own.
func (b *backends) lenders(callers int) ([]lender, error) {
	database, err := postgres.Dial(postgres.Options{
		Address: b.postgres.Address, Database: servers.PostgresDatabase, User: servers.PostgresUser, Connections: 16,
	})
	if err != nil {
		return nil, err
	}
	cache := redis.Dial(b.redis.Address)
	keeper := kubernetescoordinator.New(kubernetescoordinator.Options{Journal: hub.NewJournal(b.configMaps), Clock: wallClock})
	ofKubernetes := coordinated("weir, Kubernetes", keeper, callers, func() { keeper.Seal(context.Background()) })
	ofKubernetes.writes = func() int64 { return int64(keeper.Stats().Writes) }
	return []lender{
		transactions("bare etcd transaction", b.etcd, callers, func(caller int) string { return fmt.Sprintf("/bench/%d/%d", callers, caller) }),
		transactions("etcd transactions on one key", b.etcd, callers, func(int) string { return fmt.Sprintf("/bench/%d", callers) }),
		ofKubernetes,
		coordinated("weir, Redis", rediscoordinator.New(cache), callers, func() { _ = cache.Close() }),
		coordinated("weir, Postgres", postgrescoordinator.New(database), callers, func() { _ = database.Close() }),
		coordinated("weir, in memory", memorycoordinator.New(memorycoordinator.Options{Clock: wallClock, Term: 1, First: true}), callers, keep),
	}, nil
}

func wallClock() limiter.Instant { return limiter.Instant(time.Now().UnixMicro()) }

// coordinated returns the lender that a coordinator is. Each caller is a holder of one
// of the members.
func coordinated(name string, c federation.Coordinator, callers int, close func()) lender {
	holders := make([]*holder, callers)
	for i := range holders {
		holders[i] = &holder{
			coordinator: c, budget: fmt.Sprintf("bench/%d", callers), params: budget(),
			next: ledger.Command{
				Op: ledger.Lease, Member: budgetMembers[i%len(budgetMembers)], Holder: rand.Text(), Min: leaseUnits, Want: leaseUnits,
			},
		}
	}
	return lender{name: name, lease: func(caller int) error { return holders[caller].lease() }, close: close}
}

// A holder leases from a coordinator and holds it to its answers.
type holder struct {
	coordinator federation.Coordinator
	budget      string
	params      ledger.Params
	next        ledger.Command
}

// lease fails unless it was granted as much as it asked for.
func (h *holder) lease() error {
	h.next.Seq++
	g, err := h.coordinator.Apply(context.Background(), h.budget, h.params, h.next)
	if err != nil {
		return err
	}
	if g.Epoch != h.next.Epoch {
		h.next.Epoch, h.next.Granted = g.Epoch, 0
	}
	more := g.Granted - h.next.Granted
	h.next.Granted = g.Granted
	if more != leaseUnits {
		return fmt.Errorf("granted %d units: %v", more, g.Reason)
	}
	return nil
}
