package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/weir-dev/weir/api/v1alpha1"
	"github.com/weir-dev/weir/internal/testing/cgroup"
	"github.com/weir-dev/weir/internal/testing/devcluster"
)

// replicas are the controllers of a world. One leads, the others wait.
const replicas = 2

// A world is a cluster with controllers whose cost is known.
type world struct {
	options
	cluster     *devcluster.Cluster
	kube        client.Client
	controllers [replicas]replica
	leads       *replica
	service     atomic.Pointer[replica] // what sidecars find at the address that they know
	limited     string                  // by what the controllers' memory is limited
	watch       *watch
	http        *http.Client

	stopWatch context.CancelFunc
}

// A replica is one controller.
type replica struct {
	*devcluster.Controller
	program string
	profile string        // address of its profiles
	group   *cgroup.Group // that limits its memory; nil where that is not possible
}

// open starts a cluster and its controllers.
func open(ctx context.Context, o options, stage string) (*world, error) {
	o.dir = filepath.Join(o.dir, stage)
	w := &world{options: o, http: &http.Client{Timeout: 30 * time.Second}}
	if err := w.start(ctx); err != nil {
		w.close()
		return nil, err
	}
	return w, nil
}

func (w *world) start(ctx context.Context) error {
	if err := errors.Join(os.RemoveAll(w.dir), os.MkdirAll(w.dir, 0o755)); err != nil {
		return err
	}
	for i := range w.controllers {
		if err := w.writeProgram(i); err != nil {
			return err
		}
	}
	w.say("starting a cluster")
	var err error
	w.cluster, err = devcluster.Start(ctx, devcluster.Config{
		Root: w.root, Assets: w.assets, Dir: w.dir, Controller: w.controllers[0].program, Webhooks: filepath.Join(w.root, "bin", "controller"),
		ControllerArgs: []string{"--federation-bind-address=0"}, Replicas: replicas - 1,
		Program: func(*corev1.Pod, string) (string, bool) { return "", false }, // no pod of this world runs
		Log:     slog.New(slog.DiscardHandler),
	})
	if err != nil {
		return err
	}
	w.controllers[0].Controller = w.cluster.Controller
	for i := 1; i < replicas; i++ {
		if w.controllers[i].Controller, err = w.cluster.AddController(ctx, w.controllers[i].program); err != nil {
			return err
		}
	}
	scheme := runtime.NewScheme()
	if err := errors.Join(corev1.AddToScheme(scheme), v1alpha1.AddToScheme(scheme)); err != nil {
		return err
	}
	if w.kube, err = client.New(w.cluster.Config, client.Options{Scheme: scheme}); err != nil {
		return err
	}
	watching, stop := context.WithCancel(context.WithoutCancel(ctx))
	w.stopWatch = stop
	if w.watch, err = newWatch(watching, w.cluster.Config, scheme); err != nil {
		return err
	}
	return w.awaitLeader(ctx, nil)
}

// awaitLeader finds out which replica leads, other than one; nil for any.
func (w *world) awaitLeader(ctx context.Context, other *replica) error {
	return await(ctx, time.Minute, "a leader", func() bool {
		if w.leads = w.leader(ctx, other); w.leads != nil {
			w.service.Store(w.leads) // as the Service does, whose pod is the one that was last known to lead
		}
		return w.leads != nil
	})
}

// leader returns the replica, other than one, that leads now, nil for none.
func (w *world) leader(ctx context.Context, other *replica) *replica {
	for i := range w.controllers {
		c := &w.controllers[i]
		if c == other || c.PID() == 0 {
			continue
		}
		if figures, err := w.figuresOf(ctx, c); err == nil && figures["weir_coordinator_term"] > 0 {
			return c
		}
	}
	return nil
}

// close ends everything; logs and profiles stay.
func (w *world) close() {
	if w.stopWatch != nil {
		w.stopWatch()
	}
	if w.cluster != nil {
		w.cluster.Stop()
	}
	for i := range w.controllers {
		w.controllers[i].group.Remove()
	}
}

func (*world) say(format string, args ...any) {
	fmt.Printf("%s  %s\n", time.Now().Format("15:04:05"), fmt.Sprintf(format, args...))
}

// await returns when done returns true, and an error when it does not within most.
func await(ctx context.Context, most time.Duration, what string, done func() bool) error {
	late := time.NewTimer(most)
	defer late.Stop()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for !done() {
		select {
		case <-tick.C:
		case <-late.C:
			return fmt.Errorf("%s did not come within %s", what, most)
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}
