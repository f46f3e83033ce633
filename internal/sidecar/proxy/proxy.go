package proxy

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"runtime/debug"
	"time"

	"github.com/weir-dev/weir/internal/sidecar/enforce"
	"github.com/weir-dev/weir/internal/sidecar/membudget"
	"github.com/weir-dev/weir/internal/sidecar/metrics"
	"github.com/weir-dev/weir/internal/sidecar/pools"
	"github.com/weir-dev/weir/internal/sidecar/problem"
	"github.com/weir-dev/weir/internal/sidecar/proxy/exchange"
	"github.com/weir-dev/weir/internal/sidecar/proxy/frames"
	"github.com/weir-dev/weir/internal/sidecar/proxy/http1"
	"github.com/weir-dev/weir/internal/sidecar/recent"
)

// A Decider decides requests; see enforce.Enforcer.
type Decider interface {
	Decide(ctx context.Context, r *http.Request) (enforce.Verdict, error)
}

// A Pool gives requests slots; see pools.Enforcer.
type Pool interface {
	Acquire(r *http.Request) (pools.Slot, *pools.Refusal)
}

// Config is what a Proxy is made of.
type Config struct {
	Target  string // host:port of the app
	Pool    Pool
	Decider Decider
	Metrics *metrics.Metrics
	Log     *slog.Logger
	// Underscores is what becomes of header fields with underscores in their names; empty:
	// DropUnderscores.
	Underscores Underscores
	// Recent keeps the requests that are answered in place of the app; nil: nothing does.
	Recent *recent.Ring
	// Memory is what large buffers for bodies are taken from; nil: all are large.
	Memory *membudget.Budget
}

// A Proxy decides about the requests of one inbound port, whatever their protocol.
type Proxy struct{ cfg Config }

// New returns a proxy in front of cfg.Target.
func New(cfg Config) *Proxy {
	cfg.Underscores = cmp.Or(cfg.Underscores, DropUnderscores)
	return &Proxy{cfg: cfg}
}

// NewServer returns what serves connections in front of the app of p. It asks h, which is p or stands
// in front of it. Those of HTTP/2 go to streams.
func NewServer(p *Proxy, h exchange.Handler, streams *frames.Server) *http1.Server {
	return http1.NewServer(http1.Config{
		Handler:   h,
		Dial:      p.dial,
		DialRoomy: p.dialRoomy,
		Host:      p.cfg.Target,
		HTTP2:     streams.Serve,
		NoMemory:  p.refuseForMemory,
		Malformed: p.cfg.Metrics.Malformed.Inc,
		Memory:    p.cfg.Memory,
		Log:       p.cfg.Log,
	})
}

// NewHTTP2 returns what serves connections of HTTP/2 in front of the app of p, as NewServer does.
func NewHTTP2(p *Proxy, h exchange.Handler) *frames.Server {
	return frames.NewServer(frames.Config{
		Handler:           h,
		Dial:              p.dial,
		NoMemory:          p.refuseForMemory,
		HeaderBytes:       maxStreamHead,
		AnswerHeaderBytes: maxAnswerHead,
		Log:               p.cfg.Log,
	})
}

const (
	// maxStreamHead bounds the header of a request over HTTP/2: 32 KiB, and what the protocol adds to
	// that for ten fields, as net/http has it.
	maxStreamHead = 32<<10 + 10*32
	// maxAnswerHead bounds the header of an answer, as an http.Transport does.
	maxAnswerHead = 10 << 20
)

var (
	toApp     = net.Dialer{Timeout: 5 * time.Second, KeepAlive: 30 * time.Second, Control: membudget.BoundApp}
	toAppWide = net.Dialer{Timeout: 5 * time.Second, KeepAlive: 30 * time.Second, Control: membudget.BoundRoomyApp}
)

func (p *Proxy) dial(ctx context.Context) (net.Conn, error) {
	return toApp.DialContext(ctx, "tcp", p.cfg.Target)
}

func (p *Proxy) dialRoomy(ctx context.Context) (net.Conn, error) {
	return toAppWide.DialContext(ctx, "tcp", p.cfg.Target)
}

// fail answers a request that was not decided.
func (p *Proxy) fail(w http.ResponseWriter, r *http.Request, err error) {
	if r.Context().Err() != nil {
		breakOff()
	}
	p.cfg.Metrics.Errors.Inc()
	p.cfg.Log.Error("a request was not decided", "error", err)
	p.answer(w, r, &failed, "")
}

func (p *Proxy) enter(r *http.Request) (s pools.Slot, refusal *pools.Refusal, err error) {
	defer p.survive(&err)
	s, refusal = p.cfg.Pool.Acquire(r)
	return s, refusal, nil
}

func (p *Proxy) judge(r *http.Request) (v enforce.Verdict, err error) {
	defer p.survive(&err)
	start := time.Now()
	v, err = p.cfg.Decider.Decide(r.Context(), r)
	p.cfg.Metrics.Decision.Observe(time.Since(start).Seconds())
	return v, err
}

// survive makes a panic of a decision its error. It is deferred.
func (p *Proxy) survive(err *error) {
	if reason := recover(); reason != nil {
		p.cfg.Metrics.Panics.Inc()
		p.cfg.Log.Error("a decision panicked", "panic", reason, "stack", string(debug.Stack()))
		*err = fmt.Errorf("panic: %v", reason)
	}
}

// breakOff ends a request without an answer: its connection, or its stream of HTTP/2, is
// broken off. The client, which may still be waiting, would take any other for the end of the work.
func breakOff() { panic(http.ErrAbortHandler) }

// Answers to requests that nothing refused.
var (
	failed   = problem.New(http.StatusInternalServerError, "the rate limiter failed")
	noAnswer = problem.New(http.StatusBadGateway, "the app behind the rate limiter did not answer")
	badBody  = problem.New(http.StatusBadRequest, "the body of the request is malformed")
)
