package main

import (
	"context"
	"crypto/rand"
	"fmt"
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
