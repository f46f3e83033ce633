package proxy

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httputil"
	"runtime/debug"
	"time"

	"github.com/weir-dev/weir/internal/sidecar/enforce"
	"github.com/weir-dev/weir/internal/sidecar/metrics"
	"github.com/weir-dev/weir/internal/sidecar/problem"
)

// A Decider decides requests; see enforce.Enforcer.
type Decider interface {
	Decide(ctx context.Context, r *http.Request) (enforce.Verdict, error)
}

// Config is what a Proxy is made of.
type Config struct {
	Target  string // host:port of the app
	Decider Decider
	Metrics *metrics.Metrics
	Log     *slog.Logger
}

// A Proxy is the handler of one inbound port.
type Proxy struct {
	cfg          Config
	http1, http2 *httputil.ReverseProxy
}

// New returns a proxy in front of cfg.Target.
func New(cfg Config) *Proxy {
	buffers := new(bufferPool)
	toward := func(t http.RoundTripper) *httputil.ReverseProxy {
		return &httputil.ReverseProxy{
			Rewrite:        func(pr *httputil.ProxyRequest) { rewrite(pr, cfg.Target) },
			Transport:      t,
			BufferPool:     buffers,
			ModifyResponse: settle,
			ErrorHandler:   unreachable,
			ErrorLog:       slog.NewLogLogger(cfg.Log.Handler(), slog.LevelDebug),
		}
	}
	return &Proxy{cfg: cfg, http1: toward(newTransport(false)), http2: toward(newTransport(true))}
}

// Close closes idle connections to the app.
func (p *Proxy) Close() {
	for _, side := range []*httputil.ReverseProxy{p.http1, p.http2} {
		if t, ok := side.Transport.(*http.Transport); ok {
			t.CloseIdleConnections()
		}
	}
}

// ServeHTTP lets r through to the app, when it is its turn, or refuses it. A panic
// before that is an answer of 500 and never an admission.
func (p *Proxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	sanitize(r.Header)
	verdict, err := p.judge(r)
	if verdict.Admission != nil && err == nil {
		err = verdict.Admission.Wait(r.Context())
		r = admitted(r, verdict.Admission)
	}
	switch {
	case err != nil && r.Context().Err() != nil: // nobody waits for an answer
	case err != nil:
		p.cfg.Metrics.Errors.Inc()
		p.cfg.Log.Error("a request was not decided", "error", err)
		problem.New(http.StatusInternalServerError, "the rate limiter failed").Write(w, r)
	case !verdict.Allowed:
		refuse(w, r, verdict.Refusal)
	case r.ProtoMajor == 2:
		p.http2.ServeHTTP(w, r)
	default:
		p.http1.ServeHTTP(w, r)
	}
}

func (p *Proxy) judge(r *http.Request) (v enforce.Verdict, err error) {
	defer func() {
		if reason := recover(); reason != nil {
			p.cfg.Metrics.Panics.Inc()
			p.cfg.Log.Error("a decision panicked", "panic", reason, "stack", string(debug.Stack()))
			v, err = enforce.Verdict{}, fmt.Errorf("panic: %v", reason)
		}
	}()
	start := time.Now()
	v, err = p.cfg.Decider.Decide(r.Context(), r)
	p.cfg.Metrics.Decision.Observe(time.Since(start).Seconds())
	return v, err
}

// unreachable answers a request that was let through but could not be forwarded.
func unreachable(w http.ResponseWriter, r *http.Request, err error) {
	if errors.Is(err, context.Canceled) && r.Context().Err() != nil {
		return
	}
	problem.New(http.StatusBadGateway, "the app behind the rate limiter did not answer").Write(w, r)
}
