package trace

import (
	"net/http"
	"strings"
	"time"

	"go.opentelemetry.io/otel/attribute"
	api "go.opentelemetry.io/otel/trace"

	"github.com/weir-dev/weir/internal/sidecar/pools"
)

// A Pool gives requests slots; see pools.Enforcer.
type Pool interface {
	Acquire(r *http.Request) (pools.Slot, *pools.Refusal)
}

// Pool returns a pool that adds to the span of a request how long it waited for a slot,
// and why it got none.
func (t *Tracer) Pool(p Pool) Pool {
	if t == nil {
		return p
	}
	return pool{p}
}

type pool struct{ Pool }

// Acquire implements Pool.
func (p pool) Acquire(r *http.Request) (pools.Slot, *pools.Refusal) {
	span := api.SpanFromContext(r.Context())
	if !span.IsRecording() {
		return p.Pool.Acquire(r)
	}
	start := time.Now()
	slot, refusal := p.Pool.Acquire(r)
	switch {
	case refusal != nil:
		cause := "pool_" + strings.ToLower(refusal.Verdict.String())
		if refusal.Missing != nil {
			cause = "pool_key_missing"
		}
		span.SetAttributes(
			attribute.String("weir.decision", "refused"),
			attribute.String("weir.cause", cause),
			attribute.String("weir.pool", refusal.Pool.Namespace+"/"+refusal.Pool.Name),
			attribute.Float64("weir.pool.wait.seconds", time.Since(start).Seconds()),
		)
	case slot.Held():
		span.SetAttributes(attribute.Float64("weir.pool.wait.seconds", time.Since(start).Seconds()))
	}
	return slot, refusal
}
