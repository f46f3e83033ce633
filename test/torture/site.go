package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/weir-dev/weir/api/v1alpha1"
	"github.com/weir-dev/weir/internal/testing/devcluster"
	"github.com/weir-dev/weir/internal/testing/devcluster/clock"
	"github.com/weir-dev/weir/internal/testing/devcluster/link"
)

// A site is one cluster, each of whose nodes has a clock.
type site struct {
	number      int
	cluster     *devcluster.Cluster
	kube        client.Client
	fleet       *link.Link // what sidecars reach the leading controller by
	hub         *link.Link // what other clusters reach it by
	controllers []*devcluster.Controller
	turns       [controllers]sync.Mutex // of faults of controllers

	leads struct {
		sync.Mutex
		term   float64 // the highest that a controller said that it leads in
		clock  askedClock
		spells []spell
	}
}

// A spell is a time in which one controller said that it leads.
type spell struct {
	controller  int
	term        float64
	first, last time.Time
}

// perSite is how many nodes a cluster has.
const perSite = nodes + controllers

// name returns what the cluster is called among the members of a budget.
func (s *site) name() string { return []string{"eu-west", "us-east"}[s.number] }

// node returns the name of one of its nodes; the controllers' are the last.
func (s *site) node(i int) string {
	name := fmt.Sprintf("node-%d", i)
	if i >= nodes {
		name = fmt.Sprintf("control-plane-%d", i-nodes)
	}
	if s.number > 0 {
		name += "." + s.name()
	}
	return name
}

// buildPrograms builds those that have the clock of their node.
func (w *world) buildPrograms(ctx context.Context) error {
	w.programs = map[string]string{}
	for _, name := range []string{"controller", "sidecar"} {
		w.say("building %s with a clock of its own", name)
		program, err := clock.Program(ctx, w.root, "./cmd/"+name, w.temporary, name)
		if err != nil {
			return err
		}
		w.programs[name] = program
	}
	return nil
}

// startSites starts the clusters of the layout.
func (w *world) startSites(ctx context.Context) error {
	n := 1
	if w.federated {
		n = 2
	}
	for range n {
		if err := w.startSite(ctx); err != nil {
			return err
		}
	}
	return nil
}

// askControllers begins to ask all controllers.
func (w *world) askControllers(background context.Context) {
	for _, s := range w.sites {
		for i := range s.controllers {
			w.running.Go(func() error { return s.ask(background, w, i) })
		}
	}
}

// startSite starts a cluster.
func (w *world) startSite(ctx context.Context) error {
	s := &site{number: len(w.sites)}
	w.sites = append(w.sites, s)
	scripts := map[string]string{}
	for i := range perSite {
		name, program := s.node(i), w.programs["sidecar"]
		if i >= nodes {
			program = w.programs["controller"]
		}
		c, err := clock.New(filepath.Join(w.clocks, name), w.offset(), w.random.Int64N(200_000)-100_000)
		if err != nil {
			return err
		}
		w.nodes[name] = c
		if scripts[name], err = c.At(program, w.temporary, "run-on-"+name); err != nil {
			return err
		}
	}
	var err error
	if s.fleet, err = link.Open("127.0.0.1:1"); err != nil { // nothing listens there
		return err
	}
	if s.hub, err = link.Open("127.0.0.1:1"); err != nil {
		return err
	}
	w.say("starting a cluster")
	s.cluster, err = devcluster.Start(ctx, devcluster.Config{
		Root: w.root, Assets: w.assets, Dir: filepath.Join(w.dir, s.name()), Name: s.name(),
		Controller:     scripts[s.node(nodes)],
		ControllerArgs: append(slices.Clone(devcluster.QuickLeaderElection), "--fleet-address="+s.fleet.Address(), "--federation-ids=*=acme/*"),
		Replicas:       w.replicas(),
		Program: func(pod *corev1.Pod, image string) (string, bool) {
			if image == devcluster.SidecarImage {
				return scripts[s.node(slices.Index(nodeLabels, pod.Labels["node"]))], true
			}
			return filepath.Join(w.root, "bin", "demo-app"), image == "weir.dev/demo-app:dev"
		},
		Log: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		return err
	}
	s.controllers = []*devcluster.Controller{s.cluster.Controller}
	for i := 1; i < controllers; i++ {
		added, err := s.cluster.AddController(ctx, scripts[s.node(nodes+i)])
		if err != nil {
			return err
		}
		s.controllers = append(s.controllers, added)
	}
	scheme := runtime.NewScheme()
	if err := errors.Join(corev1.AddToScheme(scheme), rbacv1.AddToScheme(scheme), v1alpha1.AddToScheme(scheme)); err != nil {
		return err
	}
	s.kube, err = client.New(s.cluster.Config, client.Options{Scheme: scheme})
	return err
}

// replicas returns at how many controllers sidecars wait until these lead: none with odd
// seeds, since a sidecar that waited cannot be cut off from its leader, as no link is between.
func (w *world) replicas() int {
	return int(w.seed+1) % 2 * (controllers - 1)
}

// nodeLabels are what pods say that they run on.
var nodeLabels = []string{"node-0", "node-1"}

// offset draws what the clock of a node is off by at first. The hub of a budget grants by
// that of the controller that leads, and nothing until it has caught up with the one
// before: there they differ by seconds.
func (w *world) offset() time.Duration {
	most := 3 * time.Minute
	if w.federated {
		most = 3 * time.Second
	}
	return time.Duration(w.random.Int64N(int64(2*most))) - most
}

// ask keeps up to date whether a controller leads, as the Services in front of them
// follow the leader's label, and what time its store has.
func (s *site) ask(ctx context.Context, w *world, i int) error {
	c := s.controllers[i]
	for sleep(ctx, 50*time.Millisecond) {
		before := time.Now()
		figures, err := scrape(ctx, w.http, c.MetricsAddress())
		if err != nil {
			continue // it is away, or stands still
		}
		after := time.Now()
		term := figures["weir_coordinator_term"]
		s.leads.Lock()
		if term > 0 && term >= s.leads.term {
			if n := len(s.leads.spells); n == 0 || term > s.leads.term {
				s.leads.spells = append(s.leads.spells, spell{controller: i, term: term, first: before})
			}
			s.leads.term = term
			s.leads.spells[len(s.leads.spells)-1].last = after
			s.fleet.SetServer(c.FleetAddress())
			s.hub.SetServer(c.FederationAddress())
			if seconds := figures["weir_coordinator_clock_seconds"]; seconds > 0 && after.Sub(before) < 100*time.Millisecond {
				s.leads.clock.note(term, before, after, time.UnixMicro(int64(seconds*1e6)))
			}
		}
		s.leads.Unlock()
	}
	return nil
}

func (s *site) close() {
	if s.cluster != nil {
		s.cluster.Stop()
	}
	for _, l := range []*link.Link{s.fleet, s.hub} {
		if l != nil {
			l.Close()
		}
	}
}
