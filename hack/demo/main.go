// Command demo runs Weir on this machine, without a cluster, root or Docker, and
// shows what it does to an application under load.
package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/klog/v2"
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
	d := &demo{site: newSite(opts, "eu-west"), out: out, began: time.Now()}
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
	*site
	out   io.Writer
	began time.Time
	scene scene
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
	switch d.options.scene {
	case poolScene:
		return &poolShow{demo: d}
	case budgetScene:
		return &budgetShow{demo: d}
	default:
		return &policyShow{demo: d}
	}
}

// boot starts all parts but the application, a line each.
func (d *demo) boot(ctx context.Context) error {
	d.step("starting etcd, the API server, a scheduler and the controller")
	if err := d.site.boot(ctx); err != nil {
		return err
	}
	return d.scene.prepare(ctx)
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

// cleanUp stops everything. Logs stay.
func (d *demo) cleanUp() {
	d.site.close()
	d.scene.stop()
	d.step("stopped; logs are in %s", filepath.Join(d.dir, "logs"))
}

func (d *demo) step(format string, args ...any) {
	fmt.Fprintf(d.out, "%6.1fs  %s\n", time.Since(d.began).Seconds(), fmt.Sprintf(format, args...))
}
