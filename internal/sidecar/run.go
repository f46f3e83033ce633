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
	"time"

	"github.com/weir-dev/weir/internal/sidecar/enforce"
	"github.com/weir-dev/weir/internal/sidecar/fleet"
	"github.com/weir-dev/weir/internal/sidecar/metrics"
	"github.com/weir-dev/weir/internal/sidecar/stores"
	"github.com/weir-dev/weir/pkg/twotier"
)

// leaveTimeout bounds giving credits back and saying good-bye, each.
const leaveTimeout = 2 * time.Second

// Run is the sidecar. It serves until ctx is done, then drains: requests in
// flight finish, credits are given back, the controller is told. With --help it
// prints to out and returns at once. The log goes to errOut, as JSON.
func Run(ctx context.Context, args []string, getenv func(string) string, out, errOut io.Writer) error {
	cfg, err := loadConfig(args, getenv)
	if errors.Is(err, flag.ErrHelp) {
		return printUsage(out)
	}
	if err != nil {
		return err
	}
	log := slog.New(slog.NewJSONHandler(errOut, nil))
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
	stores   *stores.Pool
	enforcer *enforce.Enforcer
	fleet    *fleet.Client // nil when no controller is configured
}

// newProcess puts the snapshot in force, so that it holds from the first request.
func newProcess(cfg config, log *slog.Logger) (*process, error) {
	p := &process{cfg: cfg, log: log}
	p.metrics = metrics.New(p)
	var controller twotier.Store = unconfigured{}
	if cfg.fleetAddress != "" {
		client, err := fleet.New(fleet.Config{
			Address: cfg.fleetAddress, ServerName: cfg.fleetServerName, CABundle: []byte(cfg.caBundle),
			TokenFile: cfg.tokenFile, Log: log,
			Identity: fleet.Identity{
				Namespace: cfg.namespace, Pod: cfg.pod, PodUID: cfg.podUID, BootNonce: rand.Text(), Version: buildVersion(),
			},
		})
		if err != nil {
			return nil, fmt.Errorf("WEIR_CA_BUNDLE: %w", err)
		}
		p.fleet, controller = client, client
	}
	p.stores = stores.NewPool(controller, p.metrics, log)
	p.enforcer = enforce.New(enforce.Config{
		Namespace: cfg.namespace, Mode: cfg.mode, Log: log,
		Stores:     p.stores,
		NewLimiter: func(c twotier.Config, s twotier.Store) enforce.Limiter { return twotier.New(c, s) },
	})
	if cfg.snapshot == nil {
		return p, nil
	}
	if err := p.adopt(cfg.snapshot); err != nil {
		return nil, fmt.Errorf("WEIR_SNAPSHOT: %w", err)
	}
	return p, nil
}

// run serves until ctx is done or a server fails, and stops in good order.
func (p *process) run(ctx context.Context) error {
	f, err := p.open(ctx)
	if err != nil {
		p.enforcer.Close(ctx)
		return err
	}
	streaming, hangUp := context.WithCancel(context.WithoutCancel(ctx))
	defer hangUp()
	var stream sync.WaitGroup
	if p.fleet != nil {
		stream.Go(func() { p.fleet.Run(streaming, handler{p}) })
	}
	failed := f.serve()
	f.admin.SetReady(true)
	p.log.Info("ready", "inbound", len(p.cfg.inbound), "mode", p.cfg.mode)

	select {
	case <-ctx.Done():
		p.log.Info("stopping", "grace", p.cfg.grace.String())
	case err = <-failed:
	}
	f.admin.SetReady(false)
	p.stop(context.WithoutCancel(ctx), f)
	hangUp()
	stream.Wait()
	f.close()
	return err
}

// stop drains: first requests, then credits, then the last reports.
func (p *process) stop(ctx context.Context, f *front) {
	draining, done := context.WithTimeout(ctx, p.cfg.grace)
	defer done()
	f.drain(draining)

	returning, done := context.WithTimeout(ctx, leaveTimeout)
	defer done()
	p.enforcer.Close(returning)
	if p.fleet == nil {
		return
	}
	leaving, done := context.WithTimeout(ctx, leaveTimeout)
	defer done()
	if err := p.fleet.Leave(leaving, handler{p}); err != nil {
		p.log.Warn("left without saying good-bye", "error", err)
	}
}

func buildVersion() string {
	if info, ok := debug.ReadBuildInfo(); ok {
		return info.Main.Version
	}
	return ""
}
