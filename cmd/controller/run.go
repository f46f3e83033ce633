package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"

	"github.com/go-logr/logr"
	"github.com/spf13/pflag"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/weir-dev/weir/pkg/monotonic"
)

// run is the whole process but for its exit code: it returns when ctx is done and
// everything has stopped, or when something failed that a restart may cure. Requested
// output goes to out, the log to errOut.
func run(ctx context.Context, args []string, env func(string) string, out, errOut io.Writer) error {
	o, err := parse(args, env, out)
	if errors.Is(err, pflag.ErrHelp) || errors.Is(err, errVersion) {
		return nil
	}
	if err != nil {
		return err
	}
	logger := logTo(newHandler(&o, errOut))
	if deaf, err := monotonic.Process.Listen(); err == nil {
		defer deaf()
	} else {
		logger.Info("the kernel does not report resumes, so the clocks are compared all the time", "interval", monotonic.WatchInterval.String(), "reason", err.Error())
	}
	if err := start(ctrl.LoggerInto(ctx, logger), &o); err != nil {
		return fmt.Errorf("stopped: %w", err)
	}
	return nil
}

// logTo has all libraries log to the handler, also net/http by the standard logger.
func logTo(h slog.Handler) logr.Logger {
	slog.SetDefault(slog.New(h))
	logger := logr.FromSlogHandler(h)
	ctrl.SetLogger(logger)
	klog.SetLogger(logger)
	return logger
}

func newHandler(o *options, out io.Writer) slog.Handler {
	options := &slog.HandlerOptions{Level: slog.Level(-o.logLevel)}
	if o.logFormat == "text" {
		return slog.NewTextHandler(out, options)
	}
	return slog.NewJSONHandler(out, options)
}

// start builds everything and runs it until ctx is done. The process does not lead any more when
// it ends what sidecars still have open.
func start(ctx context.Context, o *options) error {
	p, err := newPlatform(ctx, o)
	if err != nil {
		return err
	}
	add := []func(context.Context) error{p.addHealth}
	if o.runs(webhooksComponent) {
		add = append(add, p.addWebhooks)
	}
	if o.runs(coordinatorComponent) {
		add = append(add, p.addLeader)
	}
	for _, part := range add {
		if err := part(ctx); err != nil {
			return err
		}
	}
	defer p.close()
	return p.manager.Start(ctx)
}

// identity returns the name of this process among the replicas, for as long as it
// lives.
func (o *options) identity(host, nonce string) string { return cmp.Or(o.podName, host) + "_" + nonce }
