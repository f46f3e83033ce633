package metrics

import (
	"errors"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/weir-dev/weir/internal/sidecar/count"
	"github.com/weir-dev/weir/pkg/policy"
	"github.com/weir-dev/weir/pkg/store"
)

// newCalls returns the times of calls to stores, by what became of them.
func newCalls() *prometheus.HistogramVec {
	return prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name: "weir_store_call_seconds", Help: "Time of a call to a store.",
		Buckets: []float64{1e-4, 2.5e-4, 5e-4, 1e-3, 2.5e-3, 5e-3, 1e-2, 2.5e-2, 5e-2, 1e-1, 5e-1},
	}, []string{"type", "address", "outcome"})
}

// Called observes a call of a store.
func (m *Metrics) Called(s policy.Store, took time.Duration, err error) {
	outcome := "answered"
	if _, unavailable := errors.AsType[*store.UnavailableError](err); unavailable {
		outcome = "unavailable"
	} else if err != nil {
		outcome = "failed"
	}
	m.calls.WithLabelValues(string(s.Type), s.Address, outcome).Observe(took.Seconds())
}

// Closed forgets a store that is no longer used.
func (m *Metrics) Closed(s policy.Store) {
	m.calls.DeletePartialMatch(prometheus.Labels{"type": string(s.Type), "address": s.Address})
}

// refills are the times of calls that asked for units of a limit. A limit that is no
// longer in force is forgotten at the next scrape, so that edits leave no series behind.
type refills struct {
	source Source
	times  *prometheus.HistogramVec

	mu   sync.Mutex
	seen map[count.Name]bool // that have a series
}

func newRefills(s Source) *refills {
	return &refills{
		source: s,
		times: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "weir_lease_refill_seconds",
			Help:    "Time of a call that asked for units of a limit: for a lease or, without leases, for a single request.",
			Buckets: []float64{1e-4, 2.5e-4, 5e-4, 1e-3, 2.5e-3, 5e-3, 1e-2, 2.5e-2, 5e-2, 1e-1, 5e-1},
		}, limitLabels),
		seen: make(map[count.Name]bool),
	}
}

// Refilled observes a call that asked for units of a limit.
func (m *Metrics) Refilled(limit store.Scope, took time.Duration) {
	m.refills.observe(count.Name{Namespace: limit.Namespace, Policy: limit.Policy, Limit: limit.Limit}, took)
}

func (r *refills) observe(of count.Name, took time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.seen[of] = true
	r.times.WithLabelValues(of.Namespace, of.Policy, of.Limit).Observe(took.Seconds())
}

// Describe implements prometheus.Collector.
func (r *refills) Describe(out chan<- *prometheus.Desc) { r.times.Describe(out) }

// Collect implements prometheus.Collector.
func (r *refills) Collect(out chan<- prometheus.Metric) {
	inForce := make(map[count.Name]bool)
	for _, s := range r.source.Limits() {
		inForce[s.Name] = true
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for of := range r.seen {
		if !inForce[of] {
			r.times.DeleteLabelValues(of.Namespace, of.Policy, of.Limit)
			delete(r.seen, of)
		}
	}
	r.times.Collect(out)
}
