package metrics

import (
	"errors"
	"time"

	"github.com/prometheus/client_golang/prometheus"

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
