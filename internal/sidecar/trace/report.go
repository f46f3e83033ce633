package trace

import (
	"context"
	"log/slog"

	sdk "go.opentelemetry.io/otel/sdk/trace"
)

// reporting is an exporter that logs when the collector stops answering and when it
// answers again, rather than every batch that is lost meanwhile.
type reporting struct {
	sdk.SpanExporter
	log      *slog.Logger
	endpoint string
	failing  bool // of the one goroutine that exports
}

// ExportSpans implements sdk.SpanExporter.
func (r *reporting) ExportSpans(ctx context.Context, spans []sdk.ReadOnlySpan) error {
	err := r.SpanExporter.ExportSpans(ctx, spans)
	switch {
	case err != nil && !r.failing:
		r.log.Warn("traces are lost, the collector does not take them; requests go on", "endpoint", r.endpoint, "error", err)
	case err == nil && r.failing:
		r.log.Info("the collector takes traces again", "endpoint", r.endpoint)
	}
	r.failing = err != nil
	return nil // it has been reported
}
