package trace

import (
	"net/http"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	api "go.opentelemetry.io/otel/trace"

	"github.com/weir-dev/weir/internal/sidecar/proxy/frames"
)

// HTTP2 returns a handler that has a span around each request of next.
func (t *Tracer) HTTP2(next frames.Handler) frames.Handler {
	if t == nil {
		return next
	}
	return streams{next, t}
}

type streams struct {
	frames.Handler
	tracer *Tracer
}

// Enter implements frames.Handler.
func (s streams) Enter(w http.ResponseWriter, r *http.Request) (x frames.Exchange) {
	traced, span := s.tracer.start(r)
	defer func() {
		if x == nil { // also when the stream is reset by a panic
			span.End()
		}
	}()
	if !span.IsRecording() {
		if x = s.Handler.Enter(w, traced); x != nil {
			x = &exchange{Exchange: x, span: span}
		}
		return x
	}
	seen := &response{ResponseWriter: w}
	defer func() {
		if x == nil {
			answered(span, seen.status)
		}
	}()
	if x = s.Handler.Enter(seen, traced); x != nil {
		x = &exchange{Exchange: x, span: span}
	}
	return x
}

// An exchange has a span up to its end.
type exchange struct {
	frames.Exchange
	span   api.Span
	status int // 0 before the answer
}

// Head implements frames.Exchange.
func (e *exchange) Head(status int, fields *frames.Fields) {
	e.status = status
	e.Exchange.Head(status, fields)
}

// Refuse implements frames.Exchange.
func (e *exchange) Refuse(w http.ResponseWriter, why frames.Ending) {
	seen := &response{ResponseWriter: w}
	e.Exchange.Refuse(seen, why)
	e.status = seen.status
}

// End implements frames.Exchange.
func (e *exchange) End(why frames.Ending) {
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
