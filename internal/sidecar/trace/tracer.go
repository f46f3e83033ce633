package trace

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracegrpc"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/sdk/resource"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	api "go.opentelemetry.io/otel/trace"
)

const (
	queueSpans    = 2048 // that wait for the collector; a full queue is about 4 MiB
	batchSpans    = 512  // that one call carries at most
	batchInterval = 2 * time.Second
	callTimeout   = 5 * time.Second

	// rootRatio is the part of requests without a trace of their own that are traced
	// when the environment does not say otherwise: the service that began a trace has decided for
	// all that follows.
	rootRatio = 0.01
	// samplerVariable is what the environment says otherwise by; see the specification
	// of the OpenTelemetry SDK, which is read for it.
	samplerVariable = "OTEL_TRACES_SAMPLER"
)

// Config is what a Tracer is made of.
type Config struct {
	Endpoint string // host:port of a collector that takes OTLP over gRPC without TLS

	Namespace, Pod, PodUID string
	Version                string // of the sidecar
	Mode                   string // of the sidecar: enforce, shadow or bypass

	Log *slog.Logger
}

// A Tracer sends spans to a collector. Its methods may be called concurrently, and on
// nil.
type Tracer struct {
	provider  *sdk.TracerProvider
	exporter  sdk.SpanExporter
	tracer    api.Tracer
	propagate propagation.TraceContext
}

// New returns a Tracer, which has to be closed. It does not wait for the collector:
// one that is not there yet is found when it is.
func New(ctx context.Context, c Config) (*Tracer, error) {
	exporter, err := otlptracegrpc.New(ctx,
		otlptracegrpc.WithEndpoint(c.Endpoint), otlptracegrpc.WithInsecure(), otlptracegrpc.WithTimeout(callTimeout))
	if err != nil {
		return nil, fmt.Errorf("export of traces to %s: %w", c.Endpoint, err)
	}
	options := []sdk.TracerProviderOption{
		sdk.WithResource(resource.NewSchemaless(
			attribute.String("service.name", "weir-sidecar"),
			attribute.String("service.version", c.Version),
			attribute.String("k8s.namespace.name", c.Namespace),
			attribute.String("k8s.pod.name", c.Pod),
			attribute.String("k8s.pod.uid", c.PodUID),
			attribute.String("weir.mode", c.Mode),
		)),
		sdk.WithBatcher(&reporting{SpanExporter: exporter, log: c.Log, endpoint: c.Endpoint},
			sdk.WithMaxQueueSize(queueSpans), sdk.WithMaxExportBatchSize(batchSpans),
			sdk.WithBatchTimeout(batchInterval), sdk.WithExportTimeout(callTimeout)),
	}
	if _, chosen := os.LookupEnv(samplerVariable); !chosen {
		options = append(options, sdk.WithSampler(sdk.ParentBased(sdk.TraceIDRatioBased(rootRatio))))
	}
	provider := sdk.NewTracerProvider(options...)
	return &Tracer{
		provider: provider, exporter: exporter, tracer: provider.Tracer("github.com/weir-dev/weir/internal/sidecar/trace"),
	}, nil
}

// Close sends the spans that wait, until ctx is done at the latest. Spans that end
// later are lost.
func (t *Tracer) Close(ctx context.Context) error {
	if t == nil {
		return nil
	}
	err := t.provider.Shutdown(ctx)
	if err == nil {
		return nil
	}
	// The provider goes on trying behind our back; this ends the call that it waits for.
	return fmt.Errorf("send the last traces: %w", errors.Join(err, t.exporter.Shutdown(ctx)))
}
