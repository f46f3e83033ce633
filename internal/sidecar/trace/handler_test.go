package trace

import (
	"encoding/hex"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/weir-dev/weir/internal/sidecar/proxy/exchange"
)

// answers is a handler that lets nothing through.
type answers func(w http.ResponseWriter, r *http.Request)

// Enter implements exchange.Handler.
func (f answers) Enter(w http.ResponseWriter, r *http.Request) exchange.Exchange {
	f(w, r)
	return nil
}

// Trailer implements exchange.Handler.
func (answers) Trailer(*http.Request, http.Header) {}

// A turnstile is a handler that answers, or lets through.
type turnstile struct {
	refuses  int
	panics   bool
	passedOn string
	passing  turned
}

// Enter implements exchange.Handler.
func (g *turnstile) Enter(w http.ResponseWriter, r *http.Request) exchange.Exchange {
	g.passedOn = r.Header.Get("Traceparent")
	if g.panics {
		panic(http.ErrAbortHandler)
	}
	if g.refuses > 0 {
		w.WriteHeader(g.refuses)
		return nil
	}
	return &g.passing
}

// Trailer implements exchange.Handler.
func (*turnstile) Trailer(*http.Request, http.Header) {}

// A turned is an exchange that counts what is called.
type turned struct{ heads, ends int }

func (*turned) Forward(func()) bool                             { return true }
func (x *turned) Head(int, exchange.Fields)                     { x.heads++ }
func (*turned) Data([]byte)                                     {}
func (*turned) Trailer(exchange.Fields)                         {}
func (*turned) Refuse(w http.ResponseWriter, _ exchange.Ending) { w.WriteHeader(http.StatusBadGateway) }
func (x *turned) End(exchange.Ending)                           { x.ends++ }

// TestARequestHasASpan up to the end of its answer, whoever gives that.
func TestARequestHasASpan(t *testing.T) {
	for name, tc := range map[string]struct {
		way    turnstile
		ends   func(x exchange.Exchange)
		status string
		failed bool
	}{
		"answered": {ends: func(x exchange.Exchange) {
			x.Head(http.StatusTeapot, nil)
			x.End(exchange.Complete)
		}, status: "int_value:418"},
		"not answered by the app": {ends: func(x exchange.Exchange) {
			x.Refuse(httptest.NewRecorder(), exchange.NoAnswer)
			x.End(exchange.NoAnswer)
		}, status: "int_value:502", failed: true},
		"left":    {ends: func(x exchange.Exchange) { x.End(exchange.Left) }},
		"refused": {way: turnstile{refuses: http.StatusTooManyRequests}, status: "int_value:429"},
		"broken":  {way: turnstile{panics: true}},
	} {
		t.Run(name, func(t *testing.T) {
			collector := startCollector(t).prompt()
			tracer := newTracer(t, collector.address, silent())
			way := tc.way
			func() {
				defer func() { _ = recover() }()
				if x := tracer.Handler(&way).Enter(httptest.NewRecorder(), request(t, http.MethodGet, sampled)); x != nil {
					tc.ends(x)
				}
			}()
			if tc.ends != nil && way.passing.ends != 1 {
				t.Errorf("the exchange ended %d times", way.passing.ends)
			}
			spans := collector.got(t, tracer)
			if len(spans) != 1 {
				t.Fatalf("%d spans, want one", len(spans))
			}
			span := spans[0]
			if want := "00-" + traceID + "-" + hex.EncodeToString(span.GetSpanId()) + "-01"; way.passedOn != want {
				t.Errorf("the app is passed %s, want %s", way.passedOn, want)
			}
			got := attributes(span.GetAttributes())
			if got["http.response.status_code"] != tc.status || got["http.request.method"] != "GET" {
				t.Errorf("attributes %v, want status %q", got, tc.status)
			}
			if failed := span.GetStatus().GetCode() != 0; failed != tc.failed {
				t.Errorf("status %v", span.GetStatus())
			}
		})
	}
}
