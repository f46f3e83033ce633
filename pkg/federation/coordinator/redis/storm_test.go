package redis

import (
	"slices"
	"testing"
	"time"

	"github.com/weir-dev/weir/internal/testing/budgettest"
	"github.com/weir-dev/weir/internal/testing/redistest"
	"github.com/weir-dev/weir/pkg/store/redis"
)

// TestNoLossGrantsTooMuch lets a fleet lease while servers lose what they know.
func TestNoLossGrantsTooMuch(t *testing.T) {
	for name, start := range map[string]func(t *testing.T) (*redis.Store, []func()){
		"one server": func(t *testing.T) (*redis.Store, []func()) {
			server := redistest.Start(t)
			return dial(t, server), []func(){
				server.Restart, server.Flush, server.FlushScripts,
				func() { server.Flush(); server.FlushScripts() },
				func() { server.Do("SAVE"); <-time.After(50 * time.Millisecond); server.Restart() },
				func() { server.Pause(); <-time.After(time.Second); server.Resume() },
			}
		},
		"a failover by Sentinels": func(t *testing.T) (*redis.Store, []func()) {
			primary := redistest.Start(t)
			replica := primary.StartReplica()
			sentinels := redistest.StartSentinels(t, 3, "budgets", primary)
			return open(t, redis.Options{Addresses: sentinels, Sentinel: "budgets"}), []func(){failover(primary, replica)}
		},
		"a failover of a cluster's node": func(t *testing.T) (*redis.Store, []func()) {
			cluster := redistest.StartCluster(t, 3)
			replicas := map[*redistest.Server]*redistest.Server{}
			for _, node := range slices.Clone(cluster.Nodes) {
				replicas[node] = cluster.StartReplica(node)
			}
			losses := []func(){func() {
				for node, replica := range replicas {
					if node.Do("DBSIZE") != int64(0) { // it has the budget
						failover(node, replica)()
					}
				}
			}}
			return open(t, redis.Options{Addresses: cluster.Addrs(), Cluster: true}), losses
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, losses := start(t)
			budgettest.Storm(t, budgettest.Subject{Coordinator: New(s)}, losses)
		})
	}
}

// failover kills a primary whose replica missed its last grants.
func failover(primary, replica *redistest.Server) func() {
	return func() {
		replica.Pause()
		primary.Do("CLIENT", "KILL", "TYPE", "replica")
		<-time.After(100 * time.Millisecond) // the load goes on
		primary.Kill()
		replica.Resume()
	}
}
