// Command demo runs Weir on this machine, without a cluster, root or Docker, and
// shows what it does to an application under load.
package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/klog/v2"

	"github.com/weir-dev/weir/internal/devcluster"
	"github.com/weir-dev/weir/internal/devcluster/traffic"
)

func main() {
	klog.SetLogger(logr.Discard()) // client-go logs the requests that the end of the demo cuts off
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	if err := run(ctx, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "demo:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, out io.Writer) error {
	opts, err := readOptions()
	if err != nil {
		return err
	}
	lock, err := claim(opts.dir)
	if err != nil {
		return err
	}
	defer lock.Close() // the last, when nothing of the demo is left
	d := &demo{options: opts, out: out, began: time.Now(), pods: newRoster()}
	d.scene = d.newScene()
	defer d.cleanUp()
	err = d.boot(ctx)
	if err == nil {
		err = d.scene.play(ctx)
	}
	if ctx.Err() != nil {
		return nil // Ctrl-C
	}
	return err
}

// demo is everything that runs.
type demo struct {
	options
	out   io.Writer
	began time.Time

	tally   *traffic.Tally
	load    *traffic.Load
	cluster *devcluster.Cluster
	pods    *roster
	scene   scene

	stop       context.CancelFunc
	background sync.WaitGroup
}

// A scene is what the demo shows.
type scene interface {
	// prepare starts what the scene needs.
	prepare(ctx context.Context) error
	// play applies what the scene shows and shows what happens, until ctx is done.
	play(ctx context.Context) error
	// stop ends what was started.
	stop()
}

func (d *demo) newScene() scene {
	if d.options.scene == poolScene {
		return &poolShow{demo: d}
	}
	return &policyShow{demo: d}
}

// boot starts all parts but the application, a line each.
func (d *demo) boot(ctx context.Context) (err error) {
	if d.tally, err = traffic.NewTally(); err != nil {
		return err
	}
	d.step("starting etcd, the API server, a scheduler and the controller")
	d.cluster, err = devcluster.Start(ctx, devcluster.Config{
		Root: d.root, Assets: d.assets, Dir: d.dir,
		Controller:     filepath.Join(d.root, "bin", "controller"),
		ControllerArgs: devcluster.QuickLeaderElection,
		Program:        d.program,
		Log:            slog.New(slog.DiscardHandler),
	})
	if err != nil {
		return err
	}
	if err := d.linkKubectl(); err != nil {
		return err
	}
	return d.scene.prepare(ctx)
}

// deploy applies the application and what comes with it, sends it so many requests a
// second and returns when its pods are ready.
func (d *demo) deploy(ctx context.Context, manifest string, perSecond float64) error {
	if err := d.cluster.Apply(ctx, []byte(manifest)); err != nil {
		return err
	}
	d.startBackground(perSecond)
	return d.awaitPods(ctx, 4)
}

// leave writes a file for the user into the demo's directory.
func (d *demo) leave(name, content string) error {
	return os.WriteFile(filepath.Join(d.dir, name), []byte(content), 0o644)
}

// limited returns a context that also ends when the demo is over.
func (d *demo) limited(ctx context.Context) (context.Context, context.CancelFunc) {
	if d.duration > 0 {
		return context.WithTimeout(ctx, d.duration)
	}
	return context.WithCancel(ctx)
}

// program says which local program stands for an image.
func (d *demo) program(_ *corev1.Pod, image string) (string, bool) {
	programs := map[string]string{devcluster.SidecarImage: "sidecar", "weir.dev/demo-app:dev": "demo-app"}
	name, ok := programs[image]
	return filepath.Join(d.root, "bin", name), ok
}

func (d *demo) linkKubectl() error {
	bin := filepath.Join(d.dir, "bin")
	if err := os.MkdirAll(bin, 0o755); err != nil {
		return err
	}
	return os.Symlink(filepath.Join(d.assets, "kubectl"), filepath.Join(bin, "kubectl"))
}

// startBackground starts the load and what keeps its targets current.
func (d *demo) startBackground(perSecond float64) {
	ctx, stop := context.WithCancel(context.Background())
	d.stop = stop
	d.load = traffic.NewLoad(perSecond)
	d.background.Go(func() { d.load.Run(ctx) })
	d.background.Go(func() { d.followEndpoints(ctx) })
}

func (d *demo) awaitPods(ctx context.Context, n int) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	for {
		endpoints, err := d.cluster.Endpoints(ctx)
		if err == nil && len(endpoints) >= n {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%d of %d pods are ready; their logs are in %s", len(endpoints), n, filepath.Join(d.dir, "logs"))
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// cleanUp stops everything. Logs stay.
func (d *demo) cleanUp() {
	if d.stop != nil {
		d.stop()
		d.background.Wait()
	}
	if d.cluster != nil {
		d.cluster.Stop()
	}
	d.scene.stop()
	if d.tally != nil {
		d.tally.Close()
	}
	_ = os.Remove(d.endpointsFile())
	_ = os.RemoveAll(filepath.Join(d.dir, "pods"))
	d.step("stopped; logs are in %s", filepath.Join(d.dir, "logs"))
}

func (d *demo) step(format string, args ...any) {
	fmt.Fprintf(d.out, "%6.1fs  %s\n", time.Since(d.began).Seconds(), fmt.Sprintf(format, args...))
}
