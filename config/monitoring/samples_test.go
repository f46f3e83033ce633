package monitoring

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/weir-dev/weir/internal/sidecar/count"
	"github.com/weir-dev/weir/internal/sidecar/enforce"
	"github.com/weir-dev/weir/internal/sidecar/fleet"
	sidecar "github.com/weir-dev/weir/internal/sidecar/metrics"
	"github.com/weir-dev/weir/internal/sidecar/pools"
	"github.com/weir-dev/weir/pkg/concurrency"
	"github.com/weir-dev/weir/pkg/policy"
	"github.com/weir-dev/weir/pkg/store"
	"github.com/weir-dev/weir/pkg/twotier"
)

// fullPolicies is how many policies with as many limits as one may have a pod may be
// selected by before its scrape is refused.
const fullPolicies = 10

// ofTarget is what a scrape by a PodMonitor adds to each series, and its name.
var ofTarget = []string{"__name__", "namespace", "pod", "container", "endpoint", "instance", "job"}

// busy is the source of a sidecar that has as much in force as the limits of a scrape
// leave room for.
type busy struct {
	limits []enforce.LimitState
	pool   pools.State
}

func (b busy) Limits() []enforce.LimitState { return b.limits }
func (b busy) Pools() []pools.State         { return []pools.State{b.pool} }
func (busy) Fleet() *fleet.State            { return &fleet.State{Connected: true} }

// busiest returns the metrics of that sidecar, every policy with a store of its own that
// did all that a store can do.
func busiest() *sidecar.Metrics {
	b := busy{pool: pools.State{Pool: &policy.Pool{Namespace: "shop", Name: "checkout"}}}
	for i := range policy.MaxPartitions {
		name := fmt.Sprintf("partition-%d", i)
		b.pool.Stats.Partitions = append(b.pool.Stats.Partitions, concurrency.PartitionStats{Name: name})
		b.pool.Tallies = append(b.pool.Tallies, &pools.Tally{Partition: name})
	}
	b.pool.Tallies = append(b.pool.Tallies, &pools.Tally{})
	for i := range fullPolicies * policy.MaxLimits {
		name := count.Name{Namespace: "shop", Policy: fmt.Sprintf("policy-%d", i/policy.MaxLimits), Limit: fmt.Sprintf("limit-%d", i)}
		b.limits = append(b.limits, enforce.LimitState{Name: name, Counts: new(count.Limit), Stats: twotier.Stats{Full: twotier.MaxKeysBound}})
	}
	m := sidecar.New(b)
	for _, l := range b.limits {
		m.Refilled(store.Scope{Namespace: l.Namespace, Policy: l.Policy, Limit: l.Limit}, time.Millisecond)
		of := policy.Store{Type: policy.RedisStore, Address: l.Policy + ":6379"}
		for _, err := range []error{nil, errors.New("defect"), &store.UnavailableError{Store: l.Policy, Cause: errors.New("gone")}} {
			m.Called(of, time.Millisecond, err)
		}
	}
	return m
}

// TestASidecarFitsIntoAScrape: what keeps a pod that only bears the label from filling
// Prometheus must not cost the figures of a sidecar.
func TestASidecarFitsIntoAScrape(t *testing.T) {
	m := monitor(t, "weir-sidecars")
	families, err := busiest().Registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	total := 0
	for _, f := range families {
		for _, series := range f.GetMetric() {
			switch histogram, summary := series.GetHistogram(), series.GetSummary(); {
			case histogram != nil:
				total += len(histogram.GetBucket()) + 3 // +Inf, the sum and the count
			case summary != nil:
				total += len(summary.GetQuantile()) + 2
			default:
				total++
			}
			// A bucket has the label le, too.
			if n := len(series.GetLabel()) + len(ofTarget) + 1; n > m.LabelLimit {
				t.Errorf("%s has up to %d labels, labelLimit is %d", f.GetName(), n, m.LabelLimit)
			}
		}
	}
	if total > m.SampleLimit {
		t.Errorf("a sidecar with %d full policies has %d samples, sampleLimit is %d", fullPolicies, total, m.SampleLimit)
	}
	if total < m.SampleLimit/2 {
		t.Errorf("a sidecar with %d full policies has %d samples, and sampleLimit lets pods bring %d", fullPolicies, total, m.SampleLimit)
	}
	t.Logf("%d samples of a sidecar with %d policies of %d limits each and a pool of %d partitions", total, fullPolicies, policy.MaxLimits, policy.MaxPartitions)
}
