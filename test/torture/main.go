package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strconv"
	"syscall"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/log"
)

type options struct {
	lasts        time.Duration // of the faults
	seed         uint64
	root, assets string
	dir          string // of logs
}

func main() {
	klog.SetLogger(logr.Discard())
	log.SetLogger(logr.Discard())
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	o, err := readOptions(os.Getenv)
	if err == nil {
		err = torture(ctx, o)
	}
	if err != nil {
		fmt.Fprintf(os.Stderr, "torture: %s\n", lines(err))
		stop()
		os.Exit(1) //nolint:gocritic // the context is done
	}
}

func readOptions(env func(string) string) (options, error) {
	o := options{lasts: 2 * time.Minute, seed: uint64(time.Now().UnixNano()) % 1_000_000, assets: env("KUBEBUILDER_ASSETS")}
	var errs []error
	if text := env("TORTURE"); text != "" {
		d, err := time.ParseDuration(text)
		if err != nil || d < time.Second {
			errs = append(errs, fmt.Errorf("TORTURE is %q: write how long faults are injected, such as 10m", text))
		}
		o.lasts = d
	}
	if text := env("TORTURE_SEED"); text != "" {
		n, err := strconv.ParseUint(text, 10, 64)
		if err != nil {
			errs = append(errs, fmt.Errorf("TORTURE_SEED is %q: write a number from 0 to 2^64 − 1", text))
		}
		o.seed = n
	}
	if o.assets == "" {
		errs = append(errs, errors.New("KUBEBUILDER_ASSETS is not set: run `make torture`"))
	}
	var err error
	if o.root, err = os.Getwd(); err != nil {
		errs = append(errs, err)
	}
	o.dir = filepath.Join(o.root, ".cache", "torture", strconv.FormatUint(o.seed, 10))
	return o, errors.Join(errs...)
}

// torture makes a world, breaks it, and judges. The error says all that was wrong, and
// how to have the same faults again.
func torture(ctx context.Context, o options) error {
	if err := os.RemoveAll(o.dir); err != nil {
		return err
	}
	w, err := open(ctx, o, os.Stdout)
	if err != nil {
		return fmt.Errorf("start: %w", err)
	}
	defer w.close()
	faults := schedule(o.seed, o.lasts, w.kept(), w.terms(), len(w.sites))
	w.say("everything serves; seed %d: %d faults in %s", o.seed, len(faults), o.lasts)
	before, err := w.awaitFootprints(ctx, answerTime)
	if err != nil {
		return err
	}
	problems := []error{w.run(ctx, faults)}
	w.say("the last fault has healed")
	healed := time.Now()
	err = w.awaitServing(ctx, recoveryTime)
	problems = append(problems, err)
	recovered := "all served again after "
	if err != nil {
		recovered = "not all served again in "
	}
	recovered += time.Since(healed).Round(100 * time.Millisecond).String()
	w.awaitMeasured(ctx, statusTime)
	problems = append(problems, w.awaitNoLeak(ctx, before, answerTime))
	found, err := w.judge()
	problems = append(problems, err)
	w.say("seed %d: %d faults in %s: %s; %s", o.seed, len(faults), o.lasts, found, recovered)
	if err := errors.Join(problems...); err != nil {
		return fmt.Errorf("seed %d (TORTURE=%s TORTURE_SEED=%d make torture):\n%w\nlogs are in %s", o.seed, o.lasts, o.seed, err, w.logs)
	}
	return nil
}
