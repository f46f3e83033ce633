package metrics

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/weir-dev/weir/internal/sidecar/membudget"
)

var (
	memorySize = prometheus.NewDesc("weir_sidecar_memory_size_bytes",
		"Memory that connections, heads, requests, bodies, keys and counts of keys are admitted to.", nil, nil)
	memoryTaken = prometheus.NewDesc("weir_sidecar_memory_taken_bytes",
		"Memory that is taken, by what it is for.", []string{"class"}, nil)
	memoryRefused = prometheus.NewDesc("weir_sidecar_memory_refused_total",
		"Connections, heads, requests, bodies, keys and counts that were refused for want of memory.", []string{"class"}, nil)
	memoryClosed = prometheus.NewDesc("weir_sidecar_closed_connections_total",
		"Connections without a request that were closed to make room for others, by what they were at.", []string{"state"}, nil)
)

// OfMemory returns the metrics of a memory budget.
func OfMemory(b *membudget.Budget) prometheus.Collector { return ofMemory{b} }

type ofMemory struct{ *membudget.Budget }

// Describe implements prometheus.Collector.
func (ofMemory) Describe(out chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{memorySize, memoryTaken, memoryRefused, memoryClosed} {
		out <- d
	}
}

// Collect implements prometheus.Collector.
func (r ofMemory) Collect(out chan<- prometheus.Metric) {
	send := func(d *prometheus.Desc, kind prometheus.ValueType, n int64, labels ...string) {
		out <- prometheus.MustNewConstMetric(d, kind, float64(n), labels...)
	}
	send(memorySize, prometheus.GaugeValue, r.Size())
	for _, c := range membudget.Classes() {
		send(memoryTaken, prometheus.GaugeValue, r.Taken(c), c.String())
		send(memoryRefused, prometheus.CounterValue, r.Refused(c), c.String())
	}
	idle, head := r.Closed()
	send(memoryClosed, prometheus.CounterValue, idle, "idle")
	send(memoryClosed, prometheus.CounterValue, head, "head")
}
