package hub

import (
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"github.com/weir-dev/weir/pkg/federation/coordinator/kubernetes"
)

// metrics have labels of a fixed set of values only.
type metrics struct {
	calls      *prometheus.CounterVec
	handshakes *prometheus.CounterVec
}

func newMetrics(r prometheus.Registerer) *metrics {
	f := promauto.With(r)
	return &metrics{
		calls: f.NewCounterVec(prometheus.CounterOpts{
			Name: "weir_hub_calls_total",
			Help: "Calls of members, by the reason why they were refused; REASON_UNSPECIFIED of those that were answered.",
		}, []string{"method", "refusal"}),
		handshakes: f.NewCounterVec(prometheus.CounterOpts{
			Name: "weir_hub_handshakes_total",
			Help: "Connections: accepted, refused for want of a good certificate, or turned away because the member connects too often.",
		}, []string{"result"}),
	}
}

// Expose exposes what the coordinator counts.
func Expose(r prometheus.Registerer, stats func() kubernetes.Stats) {
	f := promauto.With(r)
	for _, c := range []struct {
		name, help string
		value      func(kubernetes.Stats) uint64
	}{
		{"weir_hub_leases_total", "Commands that asked for units.", func(s kubernetes.Stats) uint64 { return s.Leases }},
		{"weir_hub_record_loads_total", "Readings of budgets' records from the API server.", func(s kubernetes.Stats) uint64 { return s.Loads }},
		{"weir_hub_record_writes_total", "Writings of budgets' records to the API server: about one for each half a block.", func(s kubernetes.Stats) uint64 { return s.Writes }},
		{"weir_hub_overtaken_total", "Times that another controller took over a budget.", func(s kubernetes.Stats) uint64 { return s.Conflicts }},
	} {
		f.NewCounterFunc(prometheus.CounterOpts{Name: c.name, Help: c.help}, func() float64 { return float64(c.value(stats())) })
	}
}

var _ prometheus.Collector = (*Credentials)(nil)

// Describe implements [prometheus.Collector].
func (c *Credentials) Describe(ch chan<- *prometheus.Desc) { c.authority.Describe(ch) }

// Collect implements [prometheus.Collector]: it exports when the federation's authority and
// the server's certificate end. It has nothing to say before they are there.
func (c *Credentials) Collect(ch chan<- prometheus.Metric) { c.authority.Collect(ch) }
