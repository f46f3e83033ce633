package proxy

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httputil"
	"runtime/debug"
	"time"

	"github.com/weir-dev/weir/internal/sidecar/enforce"
	"github.com/weir-dev/weir/internal/sidecar/membudget"
	"github.com/weir-dev/weir/internal/sidecar/metrics"
	"github.com/weir-dev/weir/internal/sidecar/pools"
	"github.com/weir-dev/weir/internal/sidecar/problem"
	"github.com/weir-dev/weir/internal/sidecar/proxy/framing"
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
	// Memory is what large buffers for bodies are taken from; nil: all are large.
	Memory *membudget.Budget
}

// A Proxy is the handler of one inbound port for HTTP/1.1, and its frames.Handler for HTTP/2.
type Proxy struct {
	cfg Config
	app *httputil.ReverseProxy
}

// New returns a proxy in front of cfg.Target.
func New(cfg Config) *Proxy {
	cfg.Underscores = cmp.Or(cfg.Underscores, DropUnderscores)
	return &Proxy{cfg: cfg, app: &httputil.ReverseProxy{
		Rewrite:        func(pr *httputil.ProxyRequest) { rewrite(pr, cfg.Target, cfg.Underscores) },
		Transport:      newDirect(cfg.Target),
		BufferPool:     &bufferPool{memory: cfg.Memory},
		ModifyResponse: answer,
		ErrorHandler:   unreachable,
		ErrorLog:       slog.NewLogLogger(cfg.Log.Handler(), slog.LevelDebug),
	}}
}

// Close closes idle connections to the app.
func (p *Proxy) Close() {
	if t, ok := p.app.Transport.(interface{ CloseIdleConnections() }); ok {
		t.CloseIdleConnections()
	}
}

// ServeHTTP lets r through to the app, when it has a slot of the pool and it is its
// turn, or refuses it. A panic before that is an answer of 500 and never an admission.
func (p *Proxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if wrong := malformed(r, p.cfg.Underscores); wrong != nil {
		p.cfg.Metrics.Malformed.Inc()
		w.Header().Set("Connection", "close")
		reject(w, r, *wrong)
		discard(w, r)
		return
	}
	p.clean(r)
	if len(r.TransferEncoding) > 0 && r.Trailer == nil {
		r.Trailer = http.Header{} // which net/http fills with trailers that were not announced
	}
	if !p.pass(w, r) {
		discard(w, r)
	}
}

// pass lets r through when it has a slot, which it has no more when pass returns, and
// reports whether the app answered.
func (p *Proxy) pass(w http.ResponseWriter, r *http.Request) (answered bool) {
	slot, refusal, err := p.enter(r)
	switch {
	case err != nil:
		p.fail(w, r, err)
		return false
	case refusal != nil:
		refuseEntry(w, r, refusal)
		return false
	case slot.Held():
		f := &flight{parts: parts{ResponseWriter: w, request: r}, slot: slot}
		defer f.land()
		return p.decide(f, r)
	default:
		return p.decide(w, r)
	}
}

// decide lets r through when all limits admit it, and reports whether the app answered.
func (p *Proxy) decide(w http.ResponseWriter, r *http.Request) (answered bool) {
	verdict, err := p.judge(r)
	if verdict.Admission != nil && err == nil {
		err = verdict.Admission.Wait(r.Context())
	}
	if verdict.Admission != nil || verdict.Shown != nil {
		r = admitted(r, verdict)
	}
	switch {
	case err != nil:
		p.fail(w, r, err)
		return false
	case !verdict.Allowed:
		refuse(w, r, verdict.Refusal)
		return false
	default:
		return p.forward(w, r)
	}
}

// forward reports whether the app answered.
func (p *Proxy) forward(w http.ResponseWriter, r *http.Request) (answered bool) {
	all, broken := func() {}, true
	var body *inbound
	if r.Body != nil && r.Body != http.NoBody {
		// Otherwise net/http reads the rest of the body itself once the answer begins, and
		// the app misses it.
		_ = http.NewResponseController(w).EnableFullDuplex()
		body = newInbound(r.Body, w)
		defer func() { body.finish(broken) }()
		all = func() {
			if !body.read.Load() {
				framing.Last(r.Context())
				body.last.Store(true)
			}
		}
		r = body.continues(r.WithContext(r.Context())) // net/http looks at the body of its own request
		r.Body = body
	}
	f, ok := w.(*flight)
	if !ok {
		whole := &slotless{parts{ResponseWriter: w, request: r, body: body, passing: true}}
		defer whole.end()
		p.app.ServeHTTP(whole, r) // which panics when the app breaks its answer off
		broken = false
		if !whole.refused {
			all()
		}
		return !whole.refused
	}
	f.body, f.passing = body, true
	defer f.end()
	r, done := f.takeOff(r)
	defer done()
	p.app.ServeHTTP(f, r)
	broken, f.answered = false, true
	if !f.refused {
		all()
	}
	return !f.refused
}

// fail answers a request that was not decided.
func (p *Proxy) fail(w http.ResponseWriter, r *http.Request, err error) {
	if r.Context().Err() != nil {
		breakOff()
	}
	p.cfg.Metrics.Errors.Inc()
	p.cfg.Log.Error("a request was not decided", "error", err)
	reject(w, r, problem.New(http.StatusInternalServerError, "the rate limiter failed"))
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
// broken off. From a handler that only returned net/http would make an empty answer of 200,
// and the client, which may still be waiting, would take the work for done.
func breakOff() { panic(http.ErrAbortHandler) }

// unreachable answers a request that was let through but could not be forwarded.
func unreachable(w http.ResponseWriter, r *http.Request, err error) {
	f, _ := w.(*flight)
	_, unread := errors.AsType[*bodyError](err)
	b, sent := r.Body.(*body)
	ended := r.Context().Err() != nil
	if sent && b.left.Load() { // net/http takes the end of the read for that of the client
		unread, ended = false, false
		w.Header().Set("Connection", "close")
	}
	if answer, ok := w.(interface{ refuse() }); ok {
		answer.refuse()
	}
	switch {
	case unread && !ended, ended && framing.IsMalformed(r.Context()):
		w.Header().Set("Connection", "close")
		reject(w, r, problem.New(http.StatusBadRequest, "the body of the request is malformed"))
		return
	case f != nil && errors.Is(context.Cause(r.Context()), errFenced):
		refuseEntry(w, r, f.slot.Refusal())
		return
	case ended:
		breakOff()
	case f != nil:
		f.failed = true
	}
	reject(w, r, noAnswer)
}

// noAnswer is the answer to a request that the app does not answer.
var noAnswer = problem.New(http.StatusBadGateway, "the app behind the rate limiter did not answer")
