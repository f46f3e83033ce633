// Command demo runs Weir on this machine, without a cluster, root or Docker, and
// shows what it does to an application under load.
package main

import (
	"context"
	_ "embed"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/klog/v2"

	"github.com/weir-dev/weir/internal/devcluster"
	"github.com/weir-dev/weir/internal/devcluster/traffic"
)

// overload is how many requests a second are offered; shop.yaml admits 25.
const overload = 100

//go:embed shop.yaml
var shop string

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
	defer d.cleanUp()
	if err := d.boot(ctx); err != nil {
		if ctx.Err() != nil {
			return nil // Ctrl-C while booting
		}
		return err
	}
	d.showLive(ctx)
	return nil
}

// demo is everything that runs.
type demo struct {
	options
	out   io.Writer
	began time.Time

	tally   *traffic.Tally
	load    *traffic.Load
	cluster *devcluster.Cluster
	stores  stores
	pods    *roster

	stop       context.CancelFunc
	background sync.WaitGroup
}

// boot starts all parts, a line each.
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
	if err := d.stores.start(ctx, filepath.Join(d.dir, "logs"), d.options.store); err != nil {
		return err
	}
	if err := d.writeEdits(); err != nil {
		return err
	}
	d.step("applying hack/demo/shop.yaml: a policy of 500 requests per 20s, counted in %s, and an application of 4 pods", d.stores.name(d.options.store))
	if err := d.applyShop(ctx); err != nil {
		return err
	}
	d.startBackground()
	if err := d.awaitPods(ctx, 4); err != nil {
		return err
	}
	d.step("4 pods are ready, each with an injected sidecar; sending %d requests a second", overload)
	return nil
}

// applyShop applies shop.yaml as this demo needs it, and leaves it in the
// directory to be applied again by hand.
func (d *demo) applyShop(ctx context.Context) error {
	manifest := []byte(strings.NewReplacer("${TALLY}", d.tally.Address(), "${STORE}", d.stores.spec(d.options.store)).Replace(shop))
	if err := os.WriteFile(filepath.Join(d.dir, "shop.yaml"), manifest, 0o644); err != nil {
		return err
	}
	return d.cluster.Apply(ctx, manifest)
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
func (d *demo) startBackground() {
	ctx, stop := context.WithCancel(context.Background())
	d.stop = stop
	d.load = traffic.NewLoad(overload)
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
	d.stores.stop()
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
