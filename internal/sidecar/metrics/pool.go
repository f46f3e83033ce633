package metrics

import (
	"strings"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/weir-dev/weir/internal/sidecar/pools"
	"github.com/weir-dev/weir/pkg/concurrency"
	"github.com/weir-dev/weir/pkg/policy"
)

// pool reads the metrics of the pools in force.
type pool struct{ source Source }

// A figure is one that a pool has.
type figure struct {
	desc *prometheus.Desc
	kind prometheus.ValueType
	of   func(s *concurrency.Stats) float64
}

var (
	poolLabels      = []string{"namespace", "pool"}
	partitionLabels = append(poolLabels[:2:2], "partition")

	poolInfo = prometheus.NewDesc("weir_pool_info",
		"1 for a pool in force, with how it works.", append(poolLabels[:2:2], "algorithm", "coordinator", "mode"), nil)
	poolRequests = prometheus.NewDesc("weir_pool_requests_total",
		"Requests that asked for a slot, by the answer, and those refused because they have no key.", append(partitionLabels[:3:3], "decision", "reason"), nil)
	poolSpared = prometheus.NewDesc("weir_pool_spared_in_flight",
		"Requests in flight that were let through without a slot in mode Shadow.", poolLabels, nil)
	partitionInFlight = prometheus.NewDesc("weir_pool_partition_in_flight",
		"Requests of the partition in flight.", partitionLabels, nil)
	partitionQueued = prometheus.NewDesc("weir_pool_partition_queued",
		"Requests of the partition that wait for a slot.", partitionLabels, nil)
	partitionGuaranteed = prometheus.NewDesc("weir_pool_partition_guaranteed",
		"Slots that are kept for the partition.", partitionLabels, nil)

	poolFigures = []figure{
		gauge("weir_pool_limit", "Limit of the fleet, as the coordinator answered last.",
			func(s *concurrency.Stats) float64 { return float64(s.Grant.Limit) }),
		gauge("weir_pool_holders", "Sidecars that divide the limit, as the coordinator answered last.",
			func(s *concurrency.Stats) float64 { return float64(s.Grant.Holders) }),
		gauge("weir_pool_share", "Part of the limit that is this sidecar's; 0 when it expired.",
			func(s *concurrency.Stats) float64 { return float64(s.Share) }),
		gauge("weir_pool_ceiling", "Requests that this sidecar lets be in flight.",
			func(s *concurrency.Stats) float64 { return float64(s.Ceiling) }),
		gauge("weir_pool_inferred", "Requests in flight that the app bears, by latency.",
			func(s *concurrency.Stats) float64 { return float64(s.Inferred) }),
		gauge("weir_pool_in_flight", "Requests in flight that hold a slot.",
			func(s *concurrency.Stats) float64 { return float64(s.InFlight) }),
		gauge("weir_pool_queued", "Requests that wait for a slot.",
			func(s *concurrency.Stats) float64 { return float64(s.Queued) }),
		gauge("weir_pool_fenced", "1 while nothing is admitted because the share expired.",
			func(s *concurrency.Stats) float64 { return one(s.Fenced) }),
		gauge("weir_pool_local", "1 while the sidecar admits by what it infers alone.",
			func(s *concurrency.Stats) float64 { return one(s.Local) }),
		gauge("weir_pool_coordinator_up", "1 while the coordinator is thought to answer.",
			func(s *concurrency.Stats) float64 { return one(s.CoordinatorError == nil) }),
		gauge("weir_pool_baseline_seconds", "Latency without load; 0 before it was measured.",
			func(s *concurrency.Stats) float64 { return s.Baseline.Seconds() }),
		gauge("weir_pool_latency_seconds", "Latency of the last request that was measured; 0 before the first.",
			func(s *concurrency.Stats) float64 { return s.Latency.Seconds() }),
		counter("weir_pool_beats_total", "Beats to the coordinator.",
			func(s *concurrency.Stats) float64 { return float64(s.Beats) }),
		counter("weir_pool_fences_total", "Times that the share expired before the coordinator answered.",
			func(s *concurrency.Stats) float64 { return float64(s.Fences) }),
		counter("weir_pool_aborted_total", "Requests that were ended because the share expired.",
			func(s *concurrency.Stats) float64 { return float64(s.Aborted) }),
	}
)

func gauge(name, help string, of func(*concurrency.Stats) float64) figure {
	return figure{prometheus.NewDesc(name, help, poolLabels, nil), prometheus.GaugeValue, of}
}

func counter(name, help string, of func(*concurrency.Stats) float64) figure {
	return figure{prometheus.NewDesc(name, help, poolLabels, nil), prometheus.CounterValue, of}
}

// Describe implements prometheus.Collector.
func (p *pool) Describe(out chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{poolInfo, poolRequests, poolSpared, partitionInFlight, partitionQueued, partitionGuaranteed} {
		out <- d
	}
	for _, f := range poolFigures {
		out <- f.desc
	}
}

// Collect implements prometheus.Collector.
func (p *pool) Collect(out chan<- prometheus.Metric) {
	for _, s := range p.source.Pools() {
		collectPool(out, &s)
	}
}

func collectPool(out chan<- prometheus.Metric, s *pools.State) {
	send := func(d *prometheus.Desc, kind prometheus.ValueType, value float64, labels ...string) {
		out <- prometheus.MustNewConstMetric(d, kind, value, append([]string{s.Pool.Namespace, s.Pool.Name}, labels...)...)
	}
	mode := policy.Enforce
	if s.Shadow {
		mode = policy.Shadow
	}
	send(poolInfo, prometheus.GaugeValue, 1, string(s.Pool.Algorithm.Type), string(s.Pool.Coordinator.Type), string(mode))
	send(poolSpared, prometheus.GaugeValue, float64(s.Spared))
	for _, f := range poolFigures {
		send(f.desc, f.kind, f.of(&s.Stats))
	}
	for _, part := range s.Stats.Partitions {
		send(partitionInFlight, prometheus.GaugeValue, float64(part.InFlight), part.Name)
		send(partitionQueued, prometheus.GaugeValue, float64(part.Queued), part.Name)
		send(partitionGuaranteed, prometheus.GaugeValue, float64(part.Guaranteed), part.Name)
	}
	for _, t := range s.Tallies {
		count := func(n int64, decision, reason string) {
			send(poolRequests, prometheus.CounterValue, float64(n), t.Partition, decision, reason)
		}
		count(t.Answered(concurrency.Admitted), "admitted", "")
		for _, v := range pools.Refusals() {
			reason := strings.ToLower(v.String())
			count(t.Answered(v), "refused", reason)
			count(t.Spared(v), "shadow_refused", reason)
		}
		if _, perKey := policy.PoolName(s.Pool.Name); perKey {
			count(t.KeyMissing(), "refused", "key_missing")
			count(t.KeyMissingSpared(), "shadow_refused", "key_missing")
		}
	}
}
