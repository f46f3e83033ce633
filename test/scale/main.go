package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/log"
)

// options are what a run is asked for.
type options struct {
	policies []int // how many there are, in ascending order
	sidecars []int // under one policy
	shared   []int // sidecars under many policies
	memory   int   // of each controller, in MiB
	rest     time.Duration
	stages   []string
	page     string // file of the page; empty: none is written
	remark   string // about the machine, for the page

	root, assets, dir string
}

func main() {
	klog.SetLogger(logr.Discard())
	log.SetLogger(logr.Discard())
	debug.SetGCPercent(400) // thousands of sidecars are one process here, whose garbage costs none of them a processor
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	o, err := readOptions(os.Getenv)
	if err == nil {
		err = measure(ctx, o)
	}
	if err != nil {
		fmt.Fprintf(os.Stderr, "scale: %v\n", err)
		stop()
		os.Exit(1) //nolint:gocritic // the context is done
	}
}

func readOptions(env func(string) string) (options, error) {
	o := options{
		policies: []int{1000, 3000, 10_000}, sidecars: []int{1000, 2500, 5000}, shared: []int{500, 1000, 2000},
		memory: usualMemory, rest: 30 * time.Second, page: env("SCALE_PAGE"), remark: env("SCALE_REMARK"), assets: env("KUBEBUILDER_ASSETS"),
	}
	var errs []error
	for name, into := range map[string]*[]int{"SCALE_POLICIES": &o.policies, "SCALE_SIDECARS": &o.sidecars, "SCALE_SHARED": &o.shared} {
		if text := env(name); text != "" {
			sizes, err := readSizes(text)
			if err != nil {
				errs = append(errs, fmt.Errorf("%s is %q: %w", name, text, err))
			}
			*into = sizes
		}
	}
	if text := env("SCALE_REST"); text != "" {
		d, err := time.ParseDuration(text)
		if err != nil || d < time.Second {
			errs = append(errs, fmt.Errorf("SCALE_REST is %q: write how long the controller is watched at rest, such as 30s", text))
		}
		o.rest = d
	}
	if text := env("SCALE_MEMORY"); text != "" {
		var err error
		if o.memory, err = readMemory(text); err != nil {
			errs = append(errs, fmt.Errorf("SCALE_MEMORY is %q: %w", text, err))
		}
	}
	for _, s := range stages {
		o.stages = append(o.stages, s.name)
	}
	if text := env("SCALE_STAGES"); text != "" {
		var err error
		if o.stages, err = readStages(text, o.stages); err != nil {
			errs = append(errs, fmt.Errorf("SCALE_STAGES %w", err))
		}
	}
	if o.assets == "" {
		errs = append(errs, errors.New("KUBEBUILDER_ASSETS is not set: run `make scale`"))
	}
	var err error
	if o.root, err = os.Getwd(); err != nil {
		errs = append(errs, err)
	}
	o.dir = filepath.Join(o.root, ".cache", "scale")
	return o, errors.Join(errs...)
}

// readMemory reads how many MiB a controller has.
func readMemory(text string) (int, error) {
	n, err := strconv.Atoi(text)
	if err != nil || n < 64 {
		return 0, errors.New("write the memory of each controller in MiB, at least 64, such as 1024")
	}
	return n, nil
}

// readStages reads some of the stages that are known, separated by commas.
func readStages(text string, known []string) ([]string, error) {
	some := strings.Split(text, ",")
	for _, name := range some {
		if !slices.Contains(known, name) {
			return nil, fmt.Errorf("has %q: write some of %s", name, strings.Join(known, ","))
		}
	}
	return some, nil
}

// readSizes reads ascending numbers, separated by commas.
func readSizes(text string) ([]int, error) {
	var sizes []int
	for part := range strings.SplitSeq(text, ",") {
		n, err := strconv.Atoi(part)
		if err != nil || n < 1 || len(sizes) > 0 && n <= sizes[len(sizes)-1] {
			return nil, errors.New("write ascending numbers from 1, separated by commas, such as 1000,3000,10000")
		}
		sizes = append(sizes, n)
	}
	return sizes, nil
}

// A stage measures one thing in a world of its own.
type stage struct {
	name  string
	title string // of its section
	run   func(ctx context.Context, w *world) (section, error)
}

var stages = []stage{
	{"policies", "Policies", measurePolicies},
	{"sidecars", "Sidecars under one policy", measureSidecars},
	{"shared", "Sidecars under a hundred policies", measureShared},
	{"leases", "Leases", measureLeases},
	{"stores", "Leases by store", measureStores},
	{"audit", "Audit", measureAudit},
}

// measure runs the stages and writes the page. Figures that were had are written although
// something was wrong.
func measure(ctx context.Context, o options) error {
	page, err := openPage(o.page)
	if err != nil {
		return err
	}
	var errs []error
	for _, s := range stages {
		if !slices.Contains(o.stages, s.name) {
			continue
		}
		found, err := runStage(ctx, o, s)
		if err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", s.name, err))
		}
		if len(found.rows) == 0 {
			continue
		}
		text := found.text(o)
		fmt.Println("\n" + s.title + "\n\n" + text)
		if err := page.save(s.title, text, found); err != nil {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

func runStage(ctx context.Context, o options, s stage) (section, error) {
	w, err := open(ctx, o, s.name)
	if err != nil {
		return section{}, fmt.Errorf("start: %w", err)
	}
	defer w.close()
	found, err := s.run(ctx, w)
	found.limited = w.limited
	return found, err
}
