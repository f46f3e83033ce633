package certs

import "github.com/prometheus/client_golang/prometheus"

// Expiry returns what describes the ends of the certificates that a Secret,
// "namespace/name", holds for this process.
func Expiry(secret string) *prometheus.Desc {
	return prometheus.NewDesc(
		"weir_certificate_expiry_timestamp_seconds",
		"When the certificate that this replica uses ends, in Unix time.",
		[]string{"certificate"}, prometheus.Labels{"secret": secret},
	)
}

var _ prometheus.Collector = (*Manager)(nil)

// Describe implements [prometheus.Collector].
func (m *Manager) Describe(ch chan<- *prometheus.Desc) { ch <- m.expiry }

// Collect implements [prometheus.Collector]. It has nothing to say before the
// Manager is ready.
func (m *Manager) Collect(ch chan<- prometheus.Metric) {
	s := m.current.Load()
	if s == nil {
		return
	}
	for name, p := range map[string]*pair{"authority": s.bundle.authority, "serving": s.bundle.serving} {
		ch <- prometheus.MustNewConstMetric(m.expiry, prometheus.GaugeValue, float64(p.certificate.NotAfter.Unix()), name)
	}
}
