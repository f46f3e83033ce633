package sidecar

import (
	"context"
	"encoding/hex"
	"net"
	"net/http"
	"sync"
	"testing"
	"time"

	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	wire "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/grpc"

	"github.com/weir-dev/weir/internal/version"
	"github.com/weir-dev/weir/pkg/policy"
)

// A traceCollector keeps the spans it is sent over gRPC.
type traceCollector struct {
	collector.UnimplementedTraceServiceServer
	mu    sync.Mutex
	spans []*wire.Span
	from  map[string]string // attributes of their sender
}

func (c *traceCollector) Export(_ context.Context, r *collector.ExportTraceServiceRequest) (*collector.ExportTraceServiceResponse, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, of := range r.GetResourceSpans() {
		c.from = map[string]string{}
		for _, a := range of.GetResource().GetAttributes() {
			c.from[a.GetKey()] = a.GetValue().GetStringValue()
		}
		for _, scope := range of.GetScopeSpans() {
			c.spans = append(c.spans, scope.GetSpans()...)
		}
	}
	return new(collector.ExportTraceServiceResponse), nil
}

// TestAStoppingSidecarSendsItsTraces sends one request that is admitted and one that is
// refused, and stops at once: both spans arrive, and the app is in the same trace.
func TestAStoppingSidecarSendsItsTraces(t *testing.T) {
	const id = "4bf92f3577b34da6a3ce929d0e0e4736"
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var collected traceCollector
	server := grpc.NewServer()
	collector.RegisterTraceServiceServer(server, &collected)
	var serving sync.WaitGroup
	serving.Go(func() { _ = server.Serve(listener) })
	t.Cleanup(func() {
		server.Stop()
		serving.Wait()
	})

	var atApp string
	s := newSandbox(t, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { atApp = r.Header.Get("Traceparent") }))
	c := serveController(t, s)
	c.config.Snapshot, c.config.Version, _ = snapshotOf(t, policy.Store{Type: policy.ControllerStore}, 1)
	s.args = append(s.args, "--otlp-endpoint="+listener.Addr().String())
	s.start(t)
	c.awaitAcknowledgement(t)
	for range 2 {
		if _, _, err := get(t, s.url(15006, "/"), "Traceparent", "00-"+id+"-00f067aa0ba902b7-01"); err != nil {
			t.Fatal(err)
		}
	}
	began := time.Now()
	s.stop()
	s.wait(t)
	if took := time.Since(began); took > patience {
		t.Errorf("it took %s to stop", took)
	}

	for name, want := range map[string]string{
		"service.version": version.String(), "k8s.namespace.name": "shop", "k8s.pod.name": "checkout-1", "k8s.pod.uid": "uid", "weir.mode": "enforce",
	} {
		if got := collected.from[name]; got != want {
			t.Errorf("%s of the traces is %q, want %q", name, got, want)
		}
	}
	decisions := map[string]string{}
	for _, span := range collected.spans {
		if got := hex.EncodeToString(span.GetTraceId()); got != id {
			t.Errorf("trace %s", got)
		}
		for _, a := range span.GetAttributes() {
			if a.GetKey() == "weir.decision" {
				decisions[a.GetValue().GetStringValue()] = hex.EncodeToString(span.GetSpanId())
			}
		}
	}
	if len(decisions) != 2 || decisions["admitted"] == "" || decisions["refused"] == "" {
		t.Fatalf("decisions %v, want one admitted and one refused", decisions)
	}
	if want := "00-" + id + "-" + decisions["admitted"] + "-01"; atApp != want {
		t.Errorf("the app is sent %q, want %q", atApp, want)
	}
}
