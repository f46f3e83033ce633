package main

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/weir-dev/weir/api/v1alpha1"
	"github.com/weir-dev/weir/internal/devcluster"
	"github.com/weir-dev/weir/internal/devcluster/clock"
	"github.com/weir-dev/weir/internal/devcluster/disk"
	"github.com/weir-dev/weir/internal/devcluster/link"
	"github.com/weir-dev/weir/internal/devcluster/traffic"
)

// How many nodes there are for pods and for controllers, each with a clock.
const (
	nodes       = 2
	controllers = 2
)

// A world is everything that runs.
type world struct {
	options
	random *rand.Rand // of how the world is made, not of what happens to it
	log    io.Writer

	temporary    string // removed in the end; other users can read it
	clocks, logs string
	preload      string // variable that gives programs of the C library a clock and a disk

	nodes   map[string]*clock.Clock
	cluster *devcluster.Cluster
	kube    client.Client
	fleet   *link.Link // what sidecars reach the leading controller by

	controllers []*devcluster.Controller
	turns       [controllers]sync.Mutex // of faults of controllers
	http        *http.Client
	tally       *traffic.Tally
	stores      []*store
	shops       []*shop

	leads struct {
		sync.Mutex
		term  float64 // the highest that a controller said that it leads in
		clock askedClock
	}

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
	if err := w.startStores(ctx); err != nil {
		return w, err
	}
	if err := w.startCluster(ctx); err != nil {
		return w, err
	}
	background, cancel := context.WithCancel(context.WithoutCancel(ctx))
	w.background = cancel
	for _, s := range w.shopsOf(w.stores) {
		if err := w.openShop(ctx, background, s); err != nil {
			return w, err
		}
	}
	w.running.Go(func() error { return w.follow(background) })
	for _, c := range w.controllers {
		w.running.Go(func() error { return w.ask(background, c) })
	}
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

func (w *world) startCluster(ctx context.Context) error {
	programs := map[string]string{}
	for _, name := range []string{"controller", "sidecar"} {
		w.say("building %s with a clock of its own", name)
		program, err := clock.Program(ctx, w.root, "./cmd/"+name, w.temporary, name)
		if err != nil {
			return err
		}
		programs[name] = program
	}
	scripts := map[string]string{}
	for i := range nodes + controllers {
		name, program := nodeName(i), programs["sidecar"]
		if i >= nodes {
			program = programs["controller"]
		}
		offset := time.Duration(w.random.Int64N(int64(6*time.Minute))) - 3*time.Minute
		c, err := clock.New(filepath.Join(w.clocks, name), offset, w.random.Int64N(200_000)-100_000)
		if err != nil {
			return err
		}
		w.nodes[name] = c
		if scripts[name], err = c.At(program, w.temporary, "run-on-"+name); err != nil {
			return err
		}
	}
	var err error
	if w.fleet, err = link.Open("127.0.0.1:1"); err != nil { // nothing listens there
		return err
	}
	w.say("starting a cluster")
	w.cluster, err = devcluster.Start(ctx, devcluster.Config{
		Root: w.root, Assets: w.assets, Dir: w.dir, Name: "torture",
		Controller:     scripts[nodeName(nodes)],
		ControllerArgs: append(slices.Clone(devcluster.QuickLeaderElection), "--fleet-address="+w.fleet.Address()),
		Program: func(pod *corev1.Pod, image string) (string, bool) {
			if image == devcluster.SidecarImage {
				return scripts[pod.Labels["node"]], true
			}
			return filepath.Join(w.root, "bin", "demo-app"), image == "weir.dev/demo-app:dev"
		},
		Log: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		return err
	}
	w.controllers = []*devcluster.Controller{w.cluster.Controller}
	for i := 1; i < controllers; i++ {
		added, err := w.cluster.AddController(ctx, scripts[nodeName(nodes+i)])
		if err != nil {
			return err
		}
		w.controllers = append(w.controllers, added)
	}
	scheme := runtime.NewScheme()
	if err := errors.Join(corev1.AddToScheme(scheme), v1alpha1.AddToScheme(scheme)); err != nil {
		return err
	}
	w.kube, err = client.New(w.cluster.Config, client.Options{Scheme: scheme})
	return err
}

// follow keeps the targets of the load and what the controller's store says the time is
// up to date.
func (w *world) follow(ctx context.Context) error {
	ticks := time.NewTicker(100 * time.Millisecond)
	defer ticks.Stop()
	for {
		if endpoints, err := w.cluster.Endpoints(ctx); err == nil {
			for _, s := range w.shops {
				s.aim(endpoints)
			}
		}
		for _, s := range w.shops {
			s.look(ctx, w.kube)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-ticks.C:
		}
	}
}

// ask keeps up to date whether a controller leads, as the Service in front of them
// follows the leader's label, and what time its store has.
func (w *world) ask(ctx context.Context, c *devcluster.Controller) error {
	for sleep(ctx, 50*time.Millisecond) {
		before := time.Now()
		figures, err := scrape(ctx, w.http, c.MetricsAddress())
		if err != nil {
			continue // it is away, or stands still
		}
		after := time.Now()
		term := figures["weir_coordinator_term"]
		w.leads.Lock()
		if term > 0 && term >= w.leads.term {
			w.leads.term = term
			w.fleet.SetServer(c.FleetAddress())
			if seconds := figures["weir_coordinator_clock_seconds"]; seconds > 0 && after.Sub(before) < 100*time.Millisecond {
				w.leads.clock.note(term, before, after, time.UnixMicro(int64(seconds*1e6)))
			}
		}
		w.leads.Unlock()
	}
	return nil
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
	if w.cluster != nil {
		w.cluster.Stop()
	}
	if w.fleet != nil {
		w.fleet.Close()
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
