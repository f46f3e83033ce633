package region

import (
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/weir-dev/weir/internal/controlplane/certs"
)

// Certificates export when the certificates end with which this cluster authenticates to
// hubs, while a Set runs. The zero value exports nothing.
type Certificates struct{ set atomic.Pointer[Set] }

var _ prometheus.Collector = (*Certificates)(nil)

// Describe implements [prometheus.Collector]. It is not known before which Secrets there
// will be.
func (*Certificates) Describe(chan<- *prometheus.Desc) {}

// Collect implements [prometheus.Collector].
func (c *Certificates) Collect(ch chan<- prometheus.Metric) {
	s := c.set.Load()
	if s == nil {
		return
	}
	for secret, ends := range s.connections.certificates() {
		ch <- prometheus.MustNewConstMetric(certs.Expiry(secret), prometheus.GaugeValue, float64(ends.Unix()), "member")
	}
}

// of has the certificates be those of s, until it is ended.
func (c *Certificates) of(s *Set) (end func()) {
	if c == nil {
		return func() {}
	}
	c.set.Store(s)
	return func() { c.set.CompareAndSwap(s, nil) }
}

// certificates returns when those of each Secret end, the later while one is replaced.
func (cs *connections) certificates() map[string]time.Time {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	out := map[string]time.Time{}
	for p, c := range cs.open {
		if c.hub == nil {
			continue
		}
		if _, ends := c.hub.Renewable(); ends.After(out[p.hub.Secret]) {
			out[p.hub.Secret] = ends
		}
	}
	return out
}
