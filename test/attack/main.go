package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/log"
)

type options struct {
	groups       []group
	short        bool
	time         time.Duration // that rows are played for, each at least once
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
		err = attack(ctx, o)
	}
	if err != nil {
		fmt.Fprintf(os.Stderr, "attack: %v\n", err)
		stop()
		os.Exit(1) //nolint:gocritic // the context is done
	}
}

func readOptions(env func(string) string) (options, error) {
	o := options{short: env("ATTACK_SHORT") != "", assets: env("KUBEBUILDER_ASSETS")}
	var errs []error
	if text := env("ATTACK_TIME"); text != "" {
		var err error
		if o.time, err = time.ParseDuration(text); err != nil {
			errs = append(errs, fmt.Errorf("ATTACK_TIME is %q: write how long the attacks go on, such as 10m", text))
		}
	}
	all := groups()
	wanted := strings.FieldsFunc(env("ATTACK_GROUPS"), func(r rune) bool { return r == ',' || r == ' ' })
	for _, g := range all {
		if len(wanted) == 0 || slices.Contains(wanted, g.name) {
			o.groups = append(o.groups, g)
		}
	}
	for _, name := range wanted {
		if !slices.ContainsFunc(all, func(g group) bool { return g.name == name }) {
			errs = append(errs, fmt.Errorf("ATTACK_GROUPS has %q: name some of %s, or none for all", name, strings.Join(names(all), ", ")))
		}
	}
	if o.assets == "" {
		errs = append(errs, errors.New("KUBEBUILDER_ASSETS is not set: run `make attack`"))
	}
	var err error
	if o.root, err = os.Getwd(); err != nil {
		errs = append(errs, err)
	}
	o.dir = filepath.Join(o.root, ".cache", "attack")
	return o, errors.Join(errs...)
}

func names(all []group) (out []string) {
	for _, g := range all {
		out = append(out, g.name)
	}
	return out
}

// attack makes a world and plays all rows. The error says which attacks had an effect.
func attack(ctx context.Context, o options) error {
	if err := os.RemoveAll(o.dir); err != nil {
		return err
	}
	w, err := open(ctx, o)
	defer w.close()
	if err != nil {
		return fmt.Errorf("start: %w", err)
	}
	w.say("everything serves; memory is limited by %s", w.limitedBy())
	j, began := newJudge(w), time.Now()
	for again := true; again && ctx.Err() == nil; again = time.Since(began) < o.time {
		for _, g := range o.groups {
			j.play(ctx, g)
		}
	}
	j.conclude(ctx)
	if len(j.failed) > 0 {
		return fmt.Errorf("%d of %d attacks had an effect, or could not be made:\n%w\nlogs are in %s", len(j.failed), j.played, errors.Join(j.failed...), w.logs)
	}
	return ctx.Err()
}
