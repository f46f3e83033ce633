package trace

import (
	"net/http"
	"slices"
	"strings"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/propagation"
	api "go.opentelemetry.io/otel/trace"
)

// methods are those that name a span. Others, which a client may make up, share a
// name.
var methods = []string{
	http.MethodConnect, http.MethodDelete, http.MethodGet, http.MethodHead, http.MethodOptions,
	http.MethodPatch, http.MethodPost, http.MethodPut, http.MethodTrace,
}

// Handler returns a handler that has a span around next.
func (t *Tracer) Handler(next http.Handler) http.Handler {
	if t == nil {
		return next
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { t.serve(next, w, r) })
}

func (t *Tracer) serve(next http.Handler, w http.ResponseWriter, r *http.Request) {
	r, span := t.start(r)
	defer span.End() // also when the proxy cuts the connection by a panic
	if !span.IsRecording() {
		next.ServeHTTP(w, r)
		return
	}
	seen := &response{ResponseWriter: w}
	defer func() { answered(span, seen.status) }() // also when the connection is cut behind the answer
	next.ServeHTTP(seen, r)
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
	if r.status < http.StatusOK { // an informational answer comes before the final one
		r.status = status
	}
	r.ResponseWriter.WriteHeader(status)
}

// Write implements http.ResponseWriter.
func (r *response) Write(p []byte) (int, error) {
	if r.status < http.StatusOK && r.status != http.StatusSwitchingProtocols {
		r.status = http.StatusOK
	}
	return r.ResponseWriter.Write(p)
}

// Unwrap returns the writer that an http.ResponseController finds the rest in.
func (r *response) Unwrap() http.ResponseWriter { return r.ResponseWriter }
