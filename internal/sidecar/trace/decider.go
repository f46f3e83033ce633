package trace

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"go.opentelemetry.io/otel/attribute"
	api "go.opentelemetry.io/otel/trace"

	"github.com/weir-dev/weir/internal/sidecar/enforce"
	"github.com/weir-dev/weir/pkg/policy"
)

// A Decider decides requests, by the policies in force; see enforce.Enforcer.
type Decider interface {
	Decide(ctx context.Context, r *http.Request) (enforce.Verdict, error)
	Set() (set *policy.Set, version string)
}

// Decider returns a decider that adds what d decided to the span of a request.
func (t *Tracer) Decider(d Decider) Decider {
	if t == nil {
		return d
	}
	return decider{d}
}

type decider struct{ Decider }

// Decide implements Decider.
func (d decider) Decide(ctx context.Context, r *http.Request) (enforce.Verdict, error) {
	span := api.SpanFromContext(ctx)
	if !span.IsRecording() {
		return d.Decider.Decide(ctx, r)
	}
	start := time.Now()
	verdict, err := d.Decider.Decide(ctx, r)
	span.SetAttributes(
		attribute.StringSlice("weir.limits", d.limitsOf(r)),
		attribute.Float64("weir.decision.seconds", time.Since(start).Seconds()),
	)
	switch {
	case err != nil:
		span.SetAttributes(attribute.String("weir.decision", "failed"))
		span.AddEvent("exception", api.WithAttributes(
			attribute.String("exception.type", fmt.Sprintf("%T", err)),
			attribute.String("exception.message", text(err.Error())), // which may quote the request
		))
	case verdict.Refusal != nil:
		refused(span, verdict.Refusal)
	default:
		span.SetAttributes(
			attribute.String("weir.decision", "admitted"),
			attribute.Float64("weir.wait.seconds", verdict.Admission.Delay().Seconds()),
		)
	}
	return verdict, err
}

// limitsOf returns the limits that apply to r. Policies that changed since the
// decision are exported as they are now.
func (d decider) limitsOf(r *http.Request) []string {
	set, _ := d.Set()
	if set == nil {
		return nil
	}
	var names []string
	request := policy.NewRequest(r)
	for _, l := range set.Limits {
		if l.Matches(&request) {
			names = append(names, policyName(l.Policy)+"/"+l.Limit.Name)
		}
	}
	return names
}

func refused(span api.Span, why *enforce.Refusal) {
	span.SetAttributes(
		attribute.String("weir.decision", "refused"),
		attribute.String("weir.cause", causes[why.Cause]),
		attribute.String("weir.policy", policyName(why.Policy)),
		attribute.String("weir.limit", why.Limit.Name),
	)
	if d := why.Decision.RetryAfter; d > 0 {
		span.SetAttributes(attribute.Float64("weir.retry_after.seconds", d.Seconds()))
	}
}

func policyName(p *policy.Policy) string { return p.Namespace + "/" + p.Name }

var causes = map[enforce.Cause]string{
	enforce.QuotaExceeded:    "quota_exceeded",
	enforce.StoreUnavailable: "store_unavailable",
	enforce.StoreDraining:    "store_draining",
	enforce.KeyMissing:       "key_missing",
	enforce.CostTooLarge:     "cost_too_large",
}
