package rls

import (
	"context"
	"io"
	"log/slog"
	"net/http"

	"github.com/weir-dev/weir/internal/sidecar/enforce"
	"github.com/weir-dev/weir/internal/sidecar/metrics"
	"github.com/weir-dev/weir/internal/sidecar/proxy/exchange"
	"github.com/weir-dev/weir/internal/sidecar/proxy/frames"
)

// method is the one that Envoy calls.
const method = "/envoy.service.ratelimit.v3.RateLimitService/ShouldRateLimit"

// Bounds of a call.
const (
	// maxMessage is more than Envoy makes of the headers of a request by its defaults,
	// so that no choice of headers makes a call fail.
	maxMessage = 1 << 20
	maxHeaders = 32 << 10
)

// A Decider decides calls; see enforce.Enforcer.
type Decider interface {
	DecideDescriptors(ctx context.Context, domain string, ds []enforce.Descriptor) (enforce.Ruling, error)
	DecideHeld(domain string, ds []enforce.Descriptor) (enforce.Ruling, error)
}

// Config is what a server is made of.
type Config struct {
	Decider Decider
	Metrics *metrics.Metrics
	Log     *slog.Logger
}

// New returns a server of the connections of HTTP/2 over which Envoy calls, which has to be closed.
// The metrics of calls are registered with cfg.Metrics.
func New(cfg Config) *frames.Server {
	answers := newService(cfg)
	return frames.NewServer(frames.Config{
		HeaderBytes: maxHeaders,
		Log:         cfg.Log,
		Calls: &frames.Calls{
			MessageBytes: maxMessage,
			Methods:      map[string]frames.Method{method: answers.shouldRateLimit},
		},
	})
}

// OnlyHTTP2 answers what comes over HTTP/1.1.
type OnlyHTTP2 struct{}

// Enter implements [exchange.Handler].
func (OnlyHTTP2) Enter(w http.ResponseWriter, _ *http.Request) exchange.Exchange {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.WriteHeader(http.StatusHTTPVersionNotSupported)
	_, _ = io.WriteString(w, "this port serves gRPC: call it by HTTP/2 with prior knowledge\n")
	return nil
}

// Trailer implements [exchange.Handler].
func (OnlyHTTP2) Trailer(*http.Request, http.Header) {}
