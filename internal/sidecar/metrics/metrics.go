package metrics

import (
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"github.com/weir-dev/weir/internal/sidecar/count"
	"github.com/weir-dev/weir/internal/sidecar/enforce"
	"github.com/weir-dev/weir/internal/sidecar/fleet"
	"github.com/weir-dev/weir/internal/sidecar/pools"
	"github.com/weir-dev/weir/internal/version"
	"github.com/weir-dev/weir/pkg/twotier"
)

// A Source is what the metrics of limits, of the pools and of the connection are read
// from, when they are scraped.
type Source interface {
	Limits() []enforce.LimitState
	Pools() []pools.State
	Fleet() *fleet.State // nil when no controller is configured
}

// Metrics are the figures of a sidecar. They are in a registry of their own.
type Metrics struct {
	Registry *prometheus.Registry
	// Panics counts defects that became an answer of 500, Errors decisions that
	// failed otherwise. Neither ever admits.
	Panics, Errors prometheus.Counter
	// Malformed counts requests that were refused before any limit was asked.
	Malformed prometheus.Counter
	// Dropped counts header fields that were taken off requests for their names.
	Dropped  prometheus.Counter
	Decision prometheus.Histogram

	calls   *prometheus.HistogramVec
	refills *refills
}

// New returns metrics that read what they do not count themselves from s.
func New(s Source) *Metrics {
	m := &Metrics{
		Registry: prometheus.NewRegistry(),
		Panics: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "weir_panics_total", Help: "Requests answered with 500 because of a panic.",
		}),
		Errors: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "weir_errors_total", Help: "Requests answered with 500 because no decision was reached.",
		}),
		Malformed: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "weir_malformed_requests_total", Help: "Requests refused as malformed before any limit was asked.",
		}),
		Dropped: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "weir_dropped_fields_total", Help: "Header fields with underscores in their names that were taken off requests.",
		}),
		Decision: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "weir_decision_seconds", Help: "Time to decide a request, calls to the store included.",
			Buckets: []float64{1e-6, 2e-6, 5e-6, 1e-5, 1e-4, 1e-3, 5e-3, 2e-2, 1e-1},
		}),
		calls:   newCalls(),
		refills: newRefills(s),
	}
	m.Registry.MustRegister(m.Panics, m.Errors, m.Malformed, m.Dropped, m.Decision, m.calls, m.refills, &limits{source: s}, &pool{source: s}, version.Metric(),
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return m
}

// limits reads the metrics of the limits in force.
type limits struct{ source Source }

var (
	limitLabels = []string{"namespace", "policy", "limit"}

	requests = prometheus.NewDesc("weir_requests_total",
		"Requests by the decision of a limit.", append(limitLabels[:3:3], "decision"), nil)
	info = prometheus.NewDesc("weir_limit_info",
		"1 for each limit in force, with how it works; budget names the FederatedBudget that it draws from.", append(limitLabels[:3:3], "algorithm", "consistency", "mode", "budget"), nil)
	roundTrips = prometheus.NewDesc("weir_store_round_trips_total",
		"Calls to the store.", limitLabels, nil)
	promised = prometheus.NewDesc("weir_promised_refusals_total",
		"Requests refused that the local share had room for, because the sidecar had promised a leader to begin no window by itself.", limitLabels, nil)
	storeUp = prometheus.NewDesc("weir_store_up",
		"1 while the limit's store is thought reachable.", limitLabels, nil)
	activeKeys = prometheus.NewDesc("weir_active_keys",
		"Values of the key that have a counter of their own here.", limitLabels, nil)
	keysFull = prometheus.NewDesc("weir_keys_full",
		"1 while values of the key that are asked for have no counter of their own here, because of the bound; absent otherwise.", append(limitLabels[:3:3], "bound"), nil)
	leaseCredits = prometheus.NewDesc("weir_lease_credits",
		"Units in hand that requests are admitted from without a call to the store.", limitLabels, nil)
	connected = prometheus.NewDesc("weir_fleet_connected",
		"1 while the stream to the controller is open.", nil, nil)
	streams = prometheus.NewDesc("weir_fleet_streams_total",
		"Streams to the controller that were opened; each after the first one replaced one that ended.", nil, nil)
)

// Describe implements prometheus.Collector.
func (l *limits) Describe(out chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{info, requests, roundTrips, promised, storeUp, activeKeys, keysFull, leaseCredits, connected, streams} {
		out <- d
	}
}

// Collect implements prometheus.Collector.
func (l *limits) Collect(out chan<- prometheus.Metric) {
	gauge := func(d *prometheus.Desc, value float64, labels ...string) {
		out <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, value, labels...)
	}
	counter := func(d *prometheus.Desc, value float64, labels ...string) {
		out <- prometheus.MustNewConstMetric(d, prometheus.CounterValue, value, labels...)
	}
	state := l.source.Fleet()
	if state == nil {
		state = new(fleet.State)
	}
	gauge(connected, one(state.Connected))
	counter(streams, float64(state.Streams))
	for _, s := range l.source.Limits() {
		gauge(info, 1, s.Namespace, s.Policy, s.Limit, string(s.Algorithm), string(s.Consistency), string(s.Mode), s.Budget)
		for _, o := range count.Outcomes() {
			counter(requests, float64(s.Counts.Requests(o)), s.Namespace, s.Policy, s.Limit, o.String())
		}
		counter(roundTrips, float64(s.Stats.RoundTrips), s.Namespace, s.Policy, s.Limit)
		counter(promised, float64(s.Stats.Promised), s.Namespace, s.Policy, s.Limit)
		gauge(storeUp, one(s.Stats.CutOff == nil), s.Namespace, s.Policy, s.Limit)
		gauge(activeKeys, float64(s.Stats.ActiveKeys), s.Namespace, s.Policy, s.Limit)
		if s.Stats.Full != twotier.NoBound {
			gauge(keysFull, 1, s.Namespace, s.Policy, s.Limit, s.Stats.Full.String())
		}
		gauge(leaseCredits, float64(s.Credits), s.Namespace, s.Policy, s.Limit)
	}
}

func one(yes bool) float64 {
	if yes {
		return 1
	}
	return 0
}
