package trace

import (
	"net/http"
	"slices"
	"strings"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	api "go.opentelemetry.io/otel/trace"

	"github.com/weir-dev/weir/internal/sidecar/proxy/exchange"
)

// methods are those that name a span. Others, which a client may make up, share a
// name.
var methods = []string{
	http.MethodConnect, http.MethodDelete, http.MethodGet, http.MethodHead, http.MethodOptions,
	http.MethodPatch, http.MethodPost, http.MethodPut, http.MethodTrace,
}

// Handler returns a handler that has a span around each request of next.
func (t *Tracer) Handler(next exchange.Handler) exchange.Handler {
	if t == nil {
		return next
	}
	return handler{next, t}
}

type handler struct {
	exchange.Handler
	tracer *Tracer
}

// Enter implements exchange.Handler.
func (h handler) Enter(w http.ResponseWriter, r *http.Request) (x exchange.Exchange) {
	traced, span := h.tracer.start(r)
	defer func() {
		if x == nil { // also when the request is broken off by a panic
			span.End()
		}
	}()
	if !span.IsRecording() {
		if x = h.Handler.Enter(w, traced); x != nil {
			x = &spanned{Exchange: x, span: span}
		}
		return x
	}
	seen := &response{ResponseWriter: w}
	defer func() {
		if x == nil {
			answered(span, seen.status)
		}
	}()
	if x = h.Handler.Enter(seen, traced); x != nil {
		x = &spanned{Exchange: x, span: span}
	}
	return x
}

// start begins the span of a request, which carries it to the app.
func (t *Tracer) start(r *http.Request) (*http.Request, api.Span) {
	header := propagation.HeaderCarrier(r.Header)
	name := r.Method
	if !slices.Contains(methods, name) {
		name = "HTTP"
	}
	caller := withoutLongState(t.propagate.Extract(r.Context(), header))
	ctx, span := t.tracer.Start(caller, name, api.WithSpanKind(api.SpanKindServer))
	t.propagate.Inject(ctx, header)
	if span.IsRecording() {
		span.SetAttributes(
			attribute.String("http.request.method", text(r.Method)),
			attribute.String("url.path", text(r.URL.EscapedPath())),
			attribute.String("network.protocol.name", "http"),
			attribute.String("network.protocol.version", text(strings.TrimPrefix(r.Proto, "HTTP/"))),
		)
	}
	return r.WithContext(ctx), span
}

// A response sees which status it is answered with.
type response struct {
	http.ResponseWriter
	status int // 0 before the answer
}

// WriteHeader implements http.ResponseWriter.
func (r *response) WriteHeader(status int) {
	if r.status == 0 {
		r.status = status
	}
	r.ResponseWriter.WriteHeader(status)
}

// Write implements http.ResponseWriter.
func (r *response) Write(p []byte) (int, error) {
	if r.status == 0 {
		r.status = http.StatusOK
	}
	return r.ResponseWriter.Write(p)
}

// A spanned is an exchange that has a span up to its end.
type spanned struct {
	exchange.Exchange
	span   api.Span
	status int // 0 before the answer
}

// Head implements exchange.Exchange.
func (e *spanned) Head(status int, fields exchange.Fields) {
	e.status = status
	e.Exchange.Head(status, fields)
}

// Refuse implements exchange.Exchange.
func (e *spanned) Refuse(w http.ResponseWriter, why exchange.Ending) {
	seen := &response{ResponseWriter: w}
	e.Exchange.Refuse(seen, why)
	e.status = seen.status
}

// End implements exchange.Exchange.
func (e *spanned) End(why exchange.Ending) {
	e.Exchange.End(why)
	answered(e.span, e.status)
	e.span.End()
}

// answered adds to a span the status of the answer, which is 0 where there is none.
func answered(span api.Span, status int) {
	if status != 0 {
		span.SetAttributes(attribute.Int("http.response.status_code", status))
	}
	if status >= http.StatusInternalServerError {
		span.SetStatus(codes.Error, "")
	}
}
