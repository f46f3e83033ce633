package trace

import (
	"context"
	"net"
	"sync"
	"testing"
	"time"

	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	common "go.opentelemetry.io/proto/otlp/common/v1"
	wire "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/grpc"
)

// A fakeCollector takes spans over gRPC as any OpenTelemetry collector does.
type fakeCollector struct {
	collector.UnimplementedTraceServiceServer
	address  string
	answered chan struct{} // calls are held up until it is closed

	mu       sync.Mutex
	spans    []*wire.Span
	resource map[string]string
}

func startCollector(t *testing.T) *fakeCollector {
	t.Helper()
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	c := &fakeCollector{address: listener.Addr().String(), answered: make(chan struct{})}
	server := grpc.NewServer()
	collector.RegisterTraceServiceServer(server, c)
	var serving sync.WaitGroup
	serving.Go(func() { _ = server.Serve(listener) })
	t.Cleanup(func() {
		server.Stop()
		serving.Wait()
	})
	return c
}

// prompt has the collector answer at once.
func (c *fakeCollector) prompt() *fakeCollector {
	close(c.answered)
	return c
}

func (c *fakeCollector) Export(ctx context.Context, r *collector.ExportTraceServiceRequest) (*collector.ExportTraceServiceResponse, error) {
	select {
	case <-c.answered:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, of := range r.GetResourceSpans() {
		c.resource = attributes(of.GetResource().GetAttributes())
		for _, scope := range of.GetScopeSpans() {
			c.spans = append(c.spans, scope.GetSpans()...)
		}
	}
	return &collector.ExportTraceServiceResponse{}, nil
}

// got closes the tracer and returns what the collector was sent.
func (c *fakeCollector) got(t *testing.T, of *Tracer) []*wire.Span {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	if err := of.Close(ctx); err != nil {
		t.Fatal(err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.spans
}

// attributes returns values as text: that of a list is its items.
func attributes(in []*common.KeyValue) map[string]string {
	out := make(map[string]string, len(in))
	for _, kv := range in {
		switch v := kv.GetValue().GetValue().(type) {
		case *common.AnyValue_StringValue:
			out[kv.GetKey()] = v.StringValue
		case *common.AnyValue_ArrayValue:
			for _, item := range v.ArrayValue.GetValues() {
				out[kv.GetKey()] += item.GetStringValue() + ";"
			}
		default:
			out[kv.GetKey()] = kv.GetValue().String()
		}
	}
	return out
}
