package sidecar

import (
	"context"
	"net/http"
	"slices"
	"sync"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/weir-dev/weir/internal/sidecar/admin"
	"github.com/weir-dev/weir/internal/sidecar/check"
	"github.com/weir-dev/weir/internal/sidecar/probe"
	"github.com/weir-dev/weir/internal/sidecar/proxy"
	"github.com/weir-dev/weir/internal/sidecar/proxy/http1"
	"github.com/weir-dev/weir/internal/sidecar/rls"
)

// A front is everything that listens.
type front struct {
	admin    *admin.Server
	deciding []server // the proxies' and the check API's
	calls    server   // of Envoy's rate limit service; nil when none is served
	watched  server   // the admin port: it stays open while the others drain
	running  sync.WaitGroup
}

// open listens on every port; that of Envoy's rate limit service may be taken. On an
// error nothing listens.
func (p *process) open(ctx context.Context) (f *front, err error) {
	f = &front{admin: admin.New(p.metrics.Registry)}
	f.admin.Handle("GET /probe/", probe.New(p.cfg.appAddress, p.cfg.probeToken, p.cfg.probes))
	defer func() {
		if err != nil {
			f.close()
		}
	}()
	for _, in := range p.cfg.inbound {
		side := proxy.New(proxy.Config{Target: in.app, Pool: p.traces.Pool(p.pools), Decider: p.traces.Decider(p.enforcer), Metrics: p.metrics, Log: p.log, Underscores: p.cfg.underscores, Recent: &p.recent, Memory: p.memory})
		s, err := listenInbound(ctx, in.listen, side, p.traces.Handler(side), p.memory.Port(false))
		if err != nil {
			return f, err
		}
		f.deciding = append(f.deciding, s)
	}
	asked := http.NewServeMux()
	asked.Handle("/", &check.Handler{Checker: p.enforcer, Metrics: p.metrics, Log: p.log})
	asked.HandleFunc("POST "+leavePath, f.leaving)
	asked.Handle("GET "+admin.ConfigPath, &admin.Config{Mode: p.cfg.mode, Source: p})
	asked.Handle("GET "+admin.RefusalsPath, admin.Refusals{Ring: &p.recent})
	checks, err := listen(ctx, p.cfg.checkAddress, asked, p.metrics.Malformed, p.log, p.memory.Port(false))
	if err != nil {
		return f, err
	}
	f.deciding = append(f.deciding, checks)
	if p.cfg.checkSocket != "" {
		listener, err := openSocket(ctx, p.cfg.checkSocket)
		if err != nil {
			return f, err
		}
		f.deciding = append(f.deciding, serveOn(ctx, listener, asked, p.metrics.Malformed, p.log, p.memory.Port(false)))
	}
	if p.cfg.rlsAddress != "" {
		if calls := p.openRLS(ctx); calls != nil {
			f.calls = calls
		}
	}
	watched, err := listen(ctx, p.cfg.adminAddress, f.admin, p.metrics.Malformed, p.log, p.memory.Port(true))
	if err == nil {
		f.watched = watched
	}
	return f, err
}

// openRLS returns nil when it cannot listen. Every pod has the service, few have an
// Envoy that asks it, and an app that has taken its port needs all the rest.
func (p *process) openRLS(ctx context.Context) *inboundServer {
	listening := prometheus.NewGauge(prometheus.GaugeOpts{
		Name: "weir_rls_listening", Help: "1 when Envoy's rate limit service is served, 0 when its port could not be opened.",
	})
	p.metrics.Registry.MustRegister(listening)
	answers := rls.New(rls.Config{Decider: p.enforcer, Metrics: p.metrics, Log: p.log})
	requests := http1.NewServer(http1.Config{
		Handler: rls.OnlyHTTP2{}, HTTP2: answers.Serve, NoMemory: proxy.RefuseForMemory, Malformed: p.metrics.Malformed.Inc, Memory: p.memory, Log: p.log,
	})
	s, err := listenBy(ctx, p.cfg.rlsAddress, requests, answers, p.memory.Port(true))
	if err != nil {
		p.log.Error("Envoy's rate limit service is not served, the rest is: free the port, or choose another or none by --rls-address", "error", err)
		return nil
	}
	listening.Set(1)
	return s
}

// serve starts all servers. The channel holds the first failure of one.
func (f *front) serve() <-chan error {
	var all []func() error
	for _, s := range append(slices.Clip(f.deciding), f.watched) {
		all = append(all, s.serve)
	}
	if f.calls != nil {
		all = append(all, f.calls.serve)
	}
	failed := make(chan error, len(all))
	for _, serve := range all {
		f.running.Go(func() {
			if err := serve(); err != nil {
				failed <- err
			}
		})
	}
	return failed
}

// drain lets requests in flight finish until ctx is done.
func (f *front) drain(ctx context.Context) {
	var all sync.WaitGroup
	for _, s := range f.deciding {
		all.Go(func() { s.drain(ctx) })
	}
	if f.calls != nil {
		all.Go(func() { f.calls.drain(ctx) })
	}
	all.Wait()
}

// close cuts off what is left.
func (f *front) close() {
	for _, s := range f.deciding {
		s.close()
	}
	if f.calls != nil {
		f.calls.close()
	}
	if f.watched != nil {
		f.watched.close()
	}
	f.running.Wait()
}
