package metrics_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/weir-dev/weir/internal/sidecar/metrics"
	"github.com/weir-dev/weir/internal/sidecar/pools"
	"github.com/weir-dev/weir/pkg/concurrency"
	"github.com/weir-dev/weir/pkg/concurrency/pool"
	"github.com/weir-dev/weir/pkg/policy"
)

var errGone = errors.New("gone")

// pooled is a source with a pool.
type pooled struct {
	source
	state pools.State
}

func (p pooled) Pools() []pools.State { return []pools.State{p.state} }

// several is a source with some pools.
type several struct {
	source
	states []pools.State
}

func (s several) Pools() []pools.State { return s.states }

// TestEachPoolHasItsOwnFigures sets two beside each other.
func TestEachPoolHasItsOwnFigures(t *testing.T) {
	of := func(name string, share int64) pools.State {
		return pools.State{Pool: &policy.Pool{Namespace: "shop", Name: name}, Stats: concurrency.Stats{Share: share}}
	}
	m := metrics.New(several{states: []pools.State{of("a", 3), of("z", 4)}})
	const want = `# HELP weir_pool_share Part of the limit that is this sidecar's; 0 when it expired.
# TYPE weir_pool_share gauge
weir_pool_share{namespace="shop",pool="a"} 3
weir_pool_share{namespace="shop",pool="z"} 4
`
	if err := testutil.GatherAndCompare(m.Registry, strings.NewReader(want), "weir_pool_share"); err != nil {
		t.Error(err)
	}
}

func TestThePoolInForce(t *testing.T) {
	m := metrics.New(pooled{state: pools.State{
		Pool: &policy.Pool{
			Namespace: "shop", Name: "checkout", Algorithm: policy.LimitAlgorithm{Type: policy.Gradient2},
			Coordinator: policy.Store{Type: policy.RedisStore},
		},
		Shadow: true, Spared: 9,
		Stats: concurrency.Stats{
			Share: 3, Ceiling: 2, Inferred: 5, InFlight: 1, Queued: 4, Fenced: true, Latency: 1500 * time.Millisecond,
			Beats: 7, CoordinatorError: errGone, Grant: pool.Grant{Limit: 12, Holders: 4},
			Partitions: []concurrency.PartitionStats{{Name: "gold", Guaranteed: 2, InFlight: 1, Queued: 3}},
		},
		Tallies: []*pools.Tally{{Partition: "gold"}, {}},
	}})
	const want = `# HELP weir_pool_beats_total Beats to the coordinator.
# TYPE weir_pool_beats_total counter
weir_pool_beats_total{namespace="shop",pool="checkout"} 7
# HELP weir_pool_coordinator_up 1 while the coordinator is thought to answer.
# TYPE weir_pool_coordinator_up gauge
weir_pool_coordinator_up{namespace="shop",pool="checkout"} 0
# HELP weir_pool_fenced 1 while nothing is admitted because the share expired.
# TYPE weir_pool_fenced gauge
weir_pool_fenced{namespace="shop",pool="checkout"} 1
# HELP weir_pool_info 1 for a pool in force, with how it works.
# TYPE weir_pool_info gauge
weir_pool_info{algorithm="Gradient2",coordinator="Redis",mode="Shadow",namespace="shop",pool="checkout"} 1
# HELP weir_pool_latency_seconds Latency of the last request that was measured; 0 before the first.
# TYPE weir_pool_latency_seconds gauge
weir_pool_latency_seconds{namespace="shop",pool="checkout"} 1.5
# HELP weir_pool_limit Limit of the fleet, as the coordinator answered last.
# TYPE weir_pool_limit gauge
weir_pool_limit{namespace="shop",pool="checkout"} 12
# HELP weir_pool_partition_guaranteed Slots that are kept for the partition.
# TYPE weir_pool_partition_guaranteed gauge
weir_pool_partition_guaranteed{namespace="shop",partition="gold",pool="checkout"} 2
# HELP weir_pool_share Part of the limit that is this sidecar's; 0 when it expired.
# TYPE weir_pool_share gauge
weir_pool_share{namespace="shop",pool="checkout"} 3
# HELP weir_pool_spared_in_flight Requests in flight that were let through without a slot in mode Shadow.
# TYPE weir_pool_spared_in_flight gauge
weir_pool_spared_in_flight{namespace="shop",pool="checkout"} 9
`
	if err := testutil.GatherAndCompare(m.Registry, strings.NewReader(want), "weir_pool_beats_total", "weir_pool_coordinator_up",
		"weir_pool_fenced", "weir_pool_info", "weir_pool_latency_seconds", "weir_pool_limit", "weir_pool_partition_guaranteed", "weir_pool_share", "weir_pool_spared_in_flight"); err != nil {
		t.Error(err)
	}
	// For each partition and for none: admitted, and seven reasons in two modes.
	if n, err := testutil.GatherAndCount(m.Registry, "weir_pool_requests_total"); err != nil || n != 2*(1+2*7) {
		t.Errorf("%d series of requests, %v", n, err)
	}
	m = metrics.New(pooled{state: pools.State{Pool: &policy.Pool{Namespace: "shop", Name: "checkout/key"}, Tallies: []*pools.Tally{{}}}})
	if n, err := testutil.GatherAndCount(m.Registry, "weir_pool_requests_total"); err != nil || n != 1+2*8 {
		t.Errorf("%d series of requests of a limit per key, with those that have no key in two modes, %v", n, err)
	}
	if problems, err := testutil.GatherAndLint(m.Registry); err != nil || len(problems) > 0 {
		t.Errorf("%v, %v", problems, err)
	}
}
