package webhook

import (
	"context"
	"net/http"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"
)

// results are the values of the label.
var results = []string{"injected", "skipped", "warned", "refused", "failed"}

var injections = counterOf(results, promauto.With(metrics.Registry).NewCounterVec(prometheus.CounterOpts{
	Name: "weir_injections_total",
	Help: "Pods that the API server asked about: injected, skipped, skipped though their author seems to have meant otherwise (warned), refused because the pod is beyond a bound, or failed, which refuses the pod, too.",
}, []string{"result"}))

// counterOf has the counter begin at 0 for each value: a series that begins with its first
// event hides that event from queries for how much it rose.
func counterOf(values []string, counter *prometheus.CounterVec) *prometheus.CounterVec {
	for _, value := range values {
		counter.WithLabelValues(value)
	}
	return counter
}

// counted counts what becomes of pods.
type counted struct{ admission.Handler }

// Handle implements admission.Handler.
func (c counted) Handle(ctx context.Context, req admission.Request) admission.Response {
	r := c.Handler.Handle(ctx, req)
	injections.WithLabelValues(resultOf(&r)).Inc()
	return r
}

func resultOf(r *admission.Response) string {
	switch {
	case !r.Allowed && r.Result.Code == http.StatusForbidden:
		return "refused"
	case !r.Allowed:
		return "failed"
	case len(r.Patches) > 0:
		return "injected"
	case len(r.Warnings) > 0:
		return "warned"
	default:
		return "skipped"
	}
}
