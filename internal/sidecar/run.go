package sidecar

import (
	"context"
	"crypto/rand"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weir-dev/weir/internal/heap"
	"github.com/weir-dev/weir/internal/sidecar/enforce"
	"github.com/weir-dev/weir/internal/sidecar/fleet"
	"github.com/weir-dev/weir/internal/sidecar/membudget"
	"github.com/weir-dev/weir/internal/sidecar/metrics"
	"github.com/weir-dev/weir/internal/sidecar/pages"
	"github.com/weir-dev/weir/internal/sidecar/pools"
	"github.com/weir-dev/weir/internal/sidecar/recent"
	"github.com/weir-dev/weir/internal/sidecar/stores"
	"github.com/weir-dev/weir/internal/sidecar/trace"
	"github.com/weir-dev/weir/internal/version"
	"github.com/weir-dev/weir/pkg/concurrency"
	"github.com/weir-dev/weir/pkg/monotonic"
	"github.com/weir-dev/weir/pkg/policy/revision"
	"github.com/weir-dev/weir/pkg/twotier"
)

const (
	// wordTimeout bounds how long the start waits for the controller.
	wordTimeout = 150 * time.Millisecond
	// leaveTimeout bounds giving credits back and saying good-bye, each.
	leaveTimeout = 2 * time.Second
)

// Run is the sidecar. It serves until ctx is done, then drains: requests in
// flight finish, credits are given back, the controller hears of it. With --help
// or --version it prints to out and returns at once. The log goes to errOut, as JSON.
func Run(ctx context.Context, args []string, getenv func(string) string, out, errOut io.Writer) error {
	cfg, err := loadConfig(args, getenv)
	switch {
	case errors.Is(err, flag.ErrHelp):
		return printUsage(out)
	case errors.Is(err, errVersion):
		_, err = fmt.Fprintln(out, version.String())
		return err
	}
	if err != nil {
		return err
	}
	log := slog.New(slog.NewJSONHandler(errOut, nil))
	if deaf, err := monotonic.Process.Listen(); err == nil {
		defer deaf()
	} else {
		log.Info("the kernel does not report resumes, so the clocks are compared all the time", "interval", monotonic.WatchInterval.String(), "reason", err)
	}
	p, err := newProcess(cfg, log)
	if err != nil {
		return err
	}
	return p.run(ctx)
}

// A process is a sidecar put together.
type process struct {
	cfg      config
	log      *slog.Logger
	metrics  *metrics.Metrics
	memory   *membudget.Budget
	freed    func(bytes int64) // notes that memory is no longer in use
	recent   recent.Ring       // of what is answered in place of the app
	stores   *stores.Pool
	pools    *pools.Enforcer
	enforcer *enforce.Enforcer
	fleet    *fleet.Client                 // nil when no controller is configured
	traces   *trace.Tracer                 // nil when no collector is
	held     atomic.Pointer[revision.Held] // the version in force; written by one at a time

	configured  chan struct{} // closed when the controller has said what to enforce
	configuring sync.Once
}

// newProcess puts the snapshot in force, so that it holds from the first request.
func newProcess(cfg config, log *slog.Logger) (*process, error) {
	p := &process{cfg: cfg, log: log, configured: make(chan struct{})}
	p.held.Store(new(revision.Held))
	p.metrics = metrics.New(p)
	p.memory = membudget.New(membudget.SizeIn(debug.SetMemoryLimit(-1)))
	p.freed = pages.NewSurplus().Freed
	p.memory.OnFreed(p.freed)
	goal := heap.NewGoal()
	p.memory.OnOpened(func(connections int) { goal.Beside(int64(connections) * membudget.SocketBytes) })
	p.metrics.Registry.MustRegister(metrics.OfMemory(p.memory))
	if err := p.trace(); err != nil {
		return nil, err
	}
	nonce := rand.Text()
	var controller stores.Controller = unconfigured{}
	var divider concurrency.Coordinator = undivided{}
	if cfg.fleetAddress != "" {
		client, err := fleet.New(fleet.Config{
			Address: cfg.fleetAddress, ServerName: cfg.fleetServerName, CABundle: []byte(cfg.caBundle),
			TokenFile: cfg.tokenFile, Log: log,
			Identity: fleet.Identity{
				Namespace: cfg.namespace, Pod: cfg.pod, PodUID: cfg.podUID, BootNonce: nonce, Version: version.String(),
				Capture: cfg.capture, Mode: string(cfg.mode),
			},
		})
		if err != nil {
			return nil, fmt.Errorf("WEIR_CA_BUNDLE: %w", err)
		}
		p.fleet, controller, divider = client, client, client.Coordinator()
	}
	p.stores = stores.NewPool(controller, divider, p.metrics, log)
	p.pools = pools.New(pools.Config{Holder: cfg.podUID + "/" + nonce, Mode: cfg.mode, Coordinators: pools.Logged(p.stores.User(), log)})
	p.enforcer = enforce.New(enforce.Config{
		Namespace: cfg.namespace, Mode: cfg.mode, Log: log,
		Stores: p.stores.User(), Memory: p.memory.ForCounts(),
		NewLimiter: func(c twotier.Config, s twotier.Store) (enforce.Limiter, error) {
			c.Memory = p.memory.ForKeys()
			return twotier.New(c, s)
		},
	})
	if err := p.begin(); err != nil {
		p.release(context.Background())
		return nil, err
	}
	return p, nil
}

// trace has requests traced when there is a collector.
func (p *process) trace() (err error) {
	if p.cfg.otlpEndpoint == "" {
		return nil
	}
	p.traces, err = trace.New(context.Background(), trace.Config{
		Endpoint: p.cfg.otlpEndpoint, Namespace: p.cfg.namespace, Pod: p.cfg.pod, PodUID: p.cfg.podUID,
		Version: version.String(), Mode: string(p.cfg.mode), Log: p.log,
	})
	return err
}

// run serves until ctx is done or a server fails, and stops in good order.
func (p *process) run(ctx context.Context) error {
	f, err := p.open(ctx)
	if err != nil {
		p.release(ctx)
		return err
	}
	streaming, hangUp := context.WithCancel(context.WithoutCancel(ctx))
	defer hangUp()
	var stream sync.WaitGroup
	if p.fleet != nil {
		stream.Go(func() { p.fleet.Run(streaming, handler{p}) })
		p.awaitWord(ctx)
	}
	if _, err := pages.Release(); err != nil {
		p.log.Info("the memory that only the start needed is kept", "reason", err)
	}
	failed := f.serve()
	f.admin.SetReady(true)
	p.freed(0) // what the start has left behind
	p.log.Info("ready", "inbound", len(p.cfg.inbound), "mode", p.cfg.mode)

	select {
	case <-ctx.Done():
		p.log.Info("stopping", "grace", p.cfg.grace.String())
	case err = <-failed:
	}
	f.admin.SetReady(false)
	if err == nil {
		err = p.linger(context.WithoutCancel(ctx), f, failed)
	}
	p.stop(context.WithoutCancel(ctx), f)
	hangUp()
	stream.Wait()
	f.close()
	return err
}

// awaitWord gives the controller a moment to say what to enforce. The snapshot is as
// old as the pod: a container that is started again with it might ask a store that
// the counters have left since. Ports are open meanwhile, so requests wait as well.
func (p *process) awaitWord(ctx context.Context) {
	select {
	case <-p.configured:
	case <-time.After(wordTimeout):
	case <-ctx.Done():
	}
}

// stop drains: first requests, then credits and the share of a pool, then the last
// reports.
func (p *process) stop(ctx context.Context, f *front) {
	draining, done := context.WithTimeout(ctx, p.cfg.grace)
	defer done()
	f.drain(draining)

	returning, done := context.WithTimeout(ctx, leaveTimeout)
	defer done()
	p.release(returning)
	if p.fleet == nil {
		return
	}
	leaving, done := context.WithTimeout(ctx, leaveTimeout)
	defer done()
	if err := p.fleet.Leave(leaving, handler{p}); err != nil {
		p.log.Warn("the session with the controller could not be ended in order", "error", err)
	}
}

// release gives back what the sidecar holds, and sends the last traces. No request is in flight any more.
func (p *process) release(ctx context.Context) {
	var all sync.WaitGroup
	all.Go(func() { p.pools.Close(ctx) })
	all.Go(func() { p.enforcer.Close(ctx) })
	all.Go(func() {
		if err := p.traces.Close(ctx); err != nil {
			p.log.Warn("the last traces are lost", "error", err)
		}
	})
	all.Wait()
}
