package rls

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/weir-dev/weir/internal/sidecar/enforce"
)

// Results of a call.
const (
	ok            = "ok"
	overLimit     = "over_limit"
	unknownDomain = "unknown_domain" // answered with OK
	invalid       = "invalid"        // the caller's fault
	abandoned     = "abandoned"      // the caller did not wait for the answer
	failed        = "failed"         // a defect
)

// calls are the metrics of calls. The decisions of limits about them are counted with
// the limits.
type calls struct {
	results           *prometheus.CounterVec
	ok, over, unknown prometheus.Counter // of them
	overrides         prometheus.Counter
}

func newCalls(r prometheus.Registerer) *calls {
	c := &calls{
		results: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "weir_rls_calls_total", Help: "Calls of Envoy's rate limit service by result.",
		}, []string{"result"}),
		overrides: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "weir_rls_ignored_overrides_total", Help: "Calls that said what the limit is, which only policies do.",
		}),
	}
	for _, result := range []string{ok, overLimit, unknownDomain, invalid, abandoned, failed} {
		c.results.WithLabelValues(result)
	}
	c.ok, c.over, c.unknown = c.results.WithLabelValues(ok), c.results.WithLabelValues(overLimit), c.results.WithLabelValues(unknownDomain)
	r.MustRegister(c.results, c.overrides)
	return c
}

func (c *calls) count(result string) { c.results.WithLabelValues(result).Inc() }

// note counts a call that was decided.
func (c *calls) note(in *request, r enforce.Ruling) {
	if in.overrides() {
		c.overrides.Inc()
	}
	switch {
	case !r.Known:
		c.unknown.Inc()
	case r.Allowed:
		c.ok.Inc()
	default:
		c.over.Inc()
	}
}
