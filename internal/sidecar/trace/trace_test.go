package trace

import (
	"bytes"
	"context"
	"encoding/hex"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	sdk "go.opentelemetry.io/otel/sdk/trace"

	"github.com/weir-dev/weir/internal/sidecar/enforce"
	"github.com/weir-dev/weir/internal/sidecar/pools"
	"github.com/weir-dev/weir/internal/sidecar/proxy/exchange"
	"github.com/weir-dev/weir/pkg/concurrency"
	"github.com/weir-dev/weir/pkg/limiter"
	"github.com/weir-dev/weir/pkg/policy"
	"github.com/weir-dev/weir/pkg/twotier"
)

// sampled is the trace of a caller that wants to know.
const (
	traceID    = "4bf92f3577b34da6a3ce929d0e0e4736"
	callerSpan = "00f067aa0ba902b7"
	sampled    = "00-" + traceID + "-" + callerSpan + "-01"
	unsampled  = "00-" + traceID + "-" + callerSpan + "-00"
)

func newTracer(t *testing.T, endpoint string, log *slog.Logger) *Tracer {
	t.Helper()
	tracer, err := New(t.Context(), Config{
		Endpoint: endpoint, Namespace: "shop", Pod: "checkout-1", PodUID: "uid", Version: "v1", Mode: "enforce", Log: log,
	})
	if err != nil {
		t.Fatal(err)
	}
	return tracer
}

func silent() *slog.Logger { return slog.New(slog.DiscardHandler) }

func shop() *policy.Set {
	set, err := policy.Compile(policy.Snapshot{Cluster: "test", Policies: []policy.Policy{{
		Namespace: "shop", Name: "checkout", Mode: policy.Enforce, Store: policy.Store{Type: policy.ControllerStore},
		Consistency: policy.Consistency{Mode: policy.Strict}, OnStoreUnavailable: policy.Deny,
		Limits: []policy.Limit{
			{Name: "all", Rates: []limiter.Rate{{Limit: 1, Window: limiter.Second}}},
			{
				Name: "writes", Rates: []limiter.Rate{{Limit: 1, Window: limiter.Second}},
				Match: []policy.Match{{Methods: []string{http.MethodPost}}},
			},
		},
	}}})
	if err != nil {
		panic(err) // of this file
	}
	return set
}

// decides is a decider that always says the same.
type decides struct {
	verdict enforce.Verdict
	err     error
}

func (d decides) Decide(context.Context, *http.Request) (enforce.Verdict, error) {
	return d.verdict, d.err
}
func (decides) Set() (*policy.Set, string) { return shop(), "v" }

// request is one that came with a header of W3C Trace Context, unless it is empty.
func request(t *testing.T, method, traceparent string) *http.Request {
	r := httptest.NewRequestWithContext(t.Context(), method, "/orders?token=secret", nil)
	if traceparent != "" {
		r.Header.Set("Traceparent", traceparent)
	}
	return r
}

// TestASpanSaysWhatWasDecided sends one request through all parts to a collector.
func TestASpanSaysWhatWasDecided(t *testing.T) {
	set := shop()
	for name, tc := range map[string]struct {
		method  string
		decides decides
		status  int
		want    map[string]string
	}{
		"admitted": {http.MethodGet, decides{verdict: enforce.Verdict{Allowed: true}}, http.StatusOK, map[string]string{
			"weir.decision": "admitted", "weir.limits": "shop/checkout/all;", "http.request.method": "GET", "url.path": "/orders",
			"http.response.status_code": "int_value:200", "weir.wait.seconds": "double_value:0", "network.protocol.version": "1.1",
		}},
		"refused": {http.MethodPost, decides{verdict: enforce.Verdict{Refusal: &enforce.Refusal{
			Cause: enforce.QuotaExceeded, Policy: set.Limits[1].Policy, Limit: set.Limits[1].Limit,
			Decision: twotier.Decision{RetryAfter: 1500 * time.Millisecond},
		}}}, http.StatusTooManyRequests, map[string]string{
			"weir.decision": "refused", "weir.cause": "quota_exceeded", "weir.policy": "shop/checkout", "weir.limit": "writes",
			"weir.limits": "shop/checkout/all;shop/checkout/writes;", "http.response.status_code": "int_value:429",
			"weir.retry_after.seconds": "double_value:1.5",
		}},
		"failed": {http.MethodGet, decides{err: context.DeadlineExceeded}, http.StatusInternalServerError, map[string]string{
			"weir.decision": "failed", "http.response.status_code": "int_value:500",
		}},
	} {
		t.Run(name, func(t *testing.T) {
			collector := startCollector(t).prompt()
			tracer := newTracer(t, collector.address, silent())
			side := tracer.Decider(tc.decides)
			var passedOn string
			h := tracer.Handler(answers(func(w http.ResponseWriter, r *http.Request) {
				passedOn = r.Header.Get("Traceparent")
				_, _ = side.Decide(r.Context(), r)
				w.WriteHeader(tc.status)
			}))
			h.Enter(httptest.NewRecorder(), request(t, tc.method, sampled))

			spans := collector.got(t, tracer)
			if len(spans) != 1 {
				t.Fatalf("%d spans, want one", len(spans))
			}
			span := spans[0]
			if got := hex.EncodeToString(span.GetTraceId()); got != traceID {
				t.Errorf("trace %s, want the caller's", got)
			}
			if got := hex.EncodeToString(span.GetParentSpanId()); got != callerSpan {
				t.Errorf("parent %s, want the caller's span", got)
			}
			if want := "00-" + traceID + "-" + hex.EncodeToString(span.GetSpanId()) + "-01"; passedOn != want {
				t.Errorf("the app is passed %s, want %s", passedOn, want)
			}
			got := attributes(span.GetAttributes())
			for key, want := range tc.want {
				if got[key] != want {
					t.Errorf("%s is %q, want %q", key, got[key], want)
				}
			}
			for key, value := range got {
				if strings.Contains(value, "secret") {
					t.Errorf("%s gives a query away: %s", key, value)
				}
			}
			if failed := span.GetStatus().GetCode() != 0; failed != (tc.status >= 500) {
				t.Errorf("status %v", span.GetStatus())
			}
			if collector.resource["k8s.pod.name"] != "checkout-1" || collector.resource["weir.mode"] != "enforce" {
				t.Errorf("resource %v does not say whose span it is", collector.resource)
			}
		})
	}
}

// refuses is a pool that is full.
type refuses struct{}

func (refuses) Acquire(*http.Request) (pools.Slot, *pools.Refusal) {
	return pools.Slot{}, &pools.Refusal{Pool: &policy.Pool{Namespace: "shop", Name: "backend"}, Verdict: concurrency.Full}
}

func TestASpanSaysWhyAPoolRefused(t *testing.T) {
	collector := startCollector(t).prompt()
	tracer := newTracer(t, collector.address, silent())
	side := tracer.Pool(refuses{})
	h := tracer.Handler(answers(func(_ http.ResponseWriter, r *http.Request) { _, _ = side.Acquire(r) }))
	h.Enter(httptest.NewRecorder(), request(t, http.MethodGet, sampled))
	spans := collector.got(t, tracer)
	if len(spans) != 1 {
		t.Fatalf("%d spans, want one", len(spans))
	}
	got := attributes(spans[0].GetAttributes())
	for key, want := range map[string]string{"weir.decision": "refused", "weir.cause": "pool_full", "weir.pool": "shop/backend"} {
		if got[key] != want {
			t.Errorf("%s is %q, want %q", key, got[key], want)
		}
	}
}

// TestTheCallerSamples: the caller that began a trace decides, and few requests without
// one are traced.
func TestTheCallerSamples(t *testing.T) {
	collector := startCollector(t).prompt()
	tracer := newTracer(t, collector.address, silent())
	served := 0
	h := tracer.Handler(answers(func(_ http.ResponseWriter, r *http.Request) {
		served++
		if got := r.Header.Get("Traceparent"); len(got) != len(sampled) {
			t.Errorf("the app is passed %q", got)
		}
	}))
	const n = 1000
	for range n {
		h.Enter(httptest.NewRecorder(), request(t, http.MethodGet, unsampled))
	}
	if err := tracer.provider.ForceFlush(t.Context()); err != nil {
		t.Fatal(err)
	}
	collector.mu.Lock()
	if len(collector.spans) != 0 {
		t.Errorf("%d spans of traces that nobody wants", len(collector.spans))
	}
	collector.mu.Unlock()
	for range n {
		h.Enter(httptest.NewRecorder(), request(t, http.MethodGet, ""))
	}
	// More than 60 of 1,000 at 1 %, or none, come about once in 10^20 and 10^4 runs.
	if spans := collector.got(t, tracer); len(spans) == 0 || len(spans) > 60 {
		t.Errorf("%d of %d requests without a trace were traced, want about 1 %%", len(spans), n)
	}
	if served != 2*n {
		t.Errorf("%d of %d requests were served", served, 2*n)
	}
}

// TestASilentCollectorHoldsNothingUp: while no call returns, ten times what the queue
// holds is served, and closing ends when its time is over.
func TestASilentCollectorHoldsNothingUp(t *testing.T) {
	collector := startCollector(t)
	tracer := newTracer(t, collector.address, silent())
	served := 0
	h := tracer.Handler(answers(func(http.ResponseWriter, *http.Request) { served++ }))
	for range 10 * queueSpans {
		h.Enter(httptest.NewRecorder(), request(t, http.MethodGet, sampled))
	}
	if served != 10*queueSpans {
		t.Errorf("%d requests were served", served)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	start := time.Now()
	if err := tracer.Close(ctx); err == nil {
		t.Error("closing does not report that spans were lost")
	}
	if took := time.Since(start); took > 2*time.Second {
		t.Errorf("closing took %s", took)
	}
	close(collector.answered)
}

// TestAnAbsentCollectorIsReportedOnce: no collector listens, which is logged once.
func TestAnAbsentCollectorIsReportedOnce(t *testing.T) {
	var log bytes.Buffer
	r := &reporting{SpanExporter: failing{}, log: slog.New(slog.NewTextHandler(&log, nil)), endpoint: "collector:4317"}
	for range 3 {
		if err := r.ExportSpans(t.Context(), nil); err != nil {
			t.Error(err)
		}
	}
	if n := strings.Count(log.String(), "traces are lost"); n != 1 {
		t.Errorf("reported %d times:\n%s", n, log.String())
	}
	r.SpanExporter = working{}
	_ = r.ExportSpans(t.Context(), nil)
	if !strings.Contains(log.String(), "takes traces again") {
		t.Errorf("it is not reported that it works again:\n%s", log.String())
	}
}

type failing struct{ sdk.SpanExporter }

func (failing) ExportSpans(context.Context, []sdk.ReadOnlySpan) error {
	return context.DeadlineExceeded
}

type working struct{ sdk.SpanExporter }

func (working) ExportSpans(context.Context, []sdk.ReadOnlySpan) error { return nil }

// TestNoTracerCostsNothing: without a collector the parts stand as they are.
func TestNoTracerCostsNothing(t *testing.T) {
	var none *Tracer
	h, d, p := new(turnstile), decides{}, refuses{}
	if none.Handler(h) != exchange.Handler(h) || none.Decider(d) != Decider(d) || none.Pool(p) != Pool(p) {
		t.Error("something stands around the parts of a sidecar that traces nothing")
	}
	if err := none.Close(t.Context()); err != nil {
		t.Error(err)
	}
}

// TestRequestsWithoutATraceAreDecidedAsIs: the decider allocates nothing for a request that
// is not sampled.
func TestRequestsWithoutATraceAreDecidedAsIs(t *testing.T) {
	side := new(Tracer).Decider(decides{verdict: enforce.Verdict{Allowed: true}})
	r := request(t, http.MethodGet, "")
	if n := testing.AllocsPerRun(100, func() { _, _ = side.Decide(r.Context(), r) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func TestAllCausesHaveNames(t *testing.T) {
	for c := enforce.QuotaExceeded; c <= enforce.CostTooLarge; c++ {
		if causes[c] == "" {
			t.Errorf("cause %d has no name", c)
		}
	}
}
