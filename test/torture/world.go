package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/weir-dev/weir/internal/testing/devcluster/clock"
	"github.com/weir-dev/weir/internal/testing/devcluster/disk"
	"github.com/weir-dev/weir/internal/testing/devcluster/traffic"
)

// How many nodes there are for pods and for controllers, each with a clock.
const (
	nodes       = 2
	controllers = 2
)

// A world is everything that runs.
type world struct {
	options
	random *rand.Rand // for the making of the world, not for its faults
	log    io.Writer

	temporary    string // removed in the end; other users can read it
	clocks, logs string
	preload      string // variable that gives programs of the C library a clock and a disk

	federated bool              // two clusters share a budget
	programs  map[string]string // with the clock of their node
	nodes     map[string]*clock.Clock
	sites     []*site

	http   *http.Client
	tally  *traffic.Tally
	stores []*store
	shops  []*shop

	background context.CancelFunc
	running    errgroup.Group
}

// open starts everything and returns when all pods are ready and load is on them.
func open(ctx context.Context, o options, log io.Writer) (w *world, err error) {
	w = &world{
		options: o, random: rand.New(rand.NewPCG(o.seed, 1)), log: log,
		logs: filepath.Join(o.dir, "logs"), nodes: map[string]*clock.Clock{}, http: &http.Client{Timeout: time.Second},
	}
	defer func() {
		if err != nil {
			w.close()
		}
	}()
	if w.temporary, err = os.MkdirTemp("", "weir-torture-"); err != nil {
		return w, err
	}
	w.clocks = filepath.Join(w.temporary, "clocks")
	if err := errors.Join(os.Chmod(w.temporary, 0o755), os.Mkdir(w.clocks, 0o755)); err != nil {
		return w, err
	}
	if w.preload, err = clock.Library(ctx, w.temporary); err != nil {
		return w, err
	}
	diskLibrary, err := disk.Library(ctx, w.temporary)
	if err != nil {
		return w, err
	}
	w.preload += ":" + diskLibrary
	if w.tally, err = traffic.NewTally(); err != nil {
		return w, err
	}
	w.tally.OnArrival = w.arrived
	w.federated = w.random.IntN(3) == 0
	if err := w.buildPrograms(ctx); err != nil {
		return w, err
	}
	if err := w.startSites(ctx); err != nil {
		return w, err
	}
	if err := w.startStores(ctx); err != nil {
		return w, err
	}
	background, cancel := context.WithCancel(context.WithoutCancel(ctx))
	w.background = cancel
	w.askControllers(background)
	if err := w.openShops(ctx, background); err != nil {
		return w, err
	}
	w.running.Go(func() error { return w.follow(background) })
	return w, w.awaitServing(ctx, startTime)
}

// kept returns what the servers are that keep counters, without the controllers.
func (w *world) kept() (all []server) {
	for _, s := range w.stores[:len(w.stores)-1] {
		all = append(all, s.server)
	}
	return all
}

// terms returns what the shops are.
func (w *world) terms() (all []terms) {
	for _, s := range w.shops {
		all = append(all, s.terms)
	}
	return all
}

// follow keeps the targets of the load and what the controller's store says the time is
// up to date.
func (w *world) follow(ctx context.Context) error {
	ticks := time.NewTicker(100 * time.Millisecond)
	defer ticks.Stop()
	for {
		for _, at := range w.sites {
			if endpoints, err := at.cluster.Endpoints(ctx); err == nil {
				for _, s := range w.shops {
					if s.site == at {
						s.aim(endpoints)
					}
				}
			}
		}
		for _, s := range w.shops {
			s.look(ctx, s.site.kube)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-ticks.C:
		}
	}
}

// close ends everything; logs stay.
func (w *world) close() {
	if w.background != nil {
		w.background()
	}
	for _, s := range w.shops {
		s.stop()
	}
	_ = w.running.Wait() // they end by the context
	for _, s := range w.sites {
		s.close()
	}
	for _, s := range w.stores {
		s.close()
	}
	for _, c := range w.nodes {
		c.Close()
	}
	if w.tally != nil {
		w.tally.Close()
	}
	_ = os.RemoveAll(w.temporary)
}

func (w *world) say(format string, args ...any) {
	fmt.Fprintf(w.log, "%s  %s\n", time.Now().Format("15:04:05.000"), fmt.Sprintf(format, args...))
}
