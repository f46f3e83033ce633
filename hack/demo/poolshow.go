package main

import (
	"context"
	"time"

	"github.com/weir-dev/weir/internal/testing/devcluster/backend"
)

const (
	threads    = 12 // of the backend
	fast       = 50 * time.Millisecond
	slow       = 150 * time.Millisecond
	flood      = 400 // requests a second; fast threads bear 240, slow ones 80
	phase      = 20 * time.Second
	unbridled  = 6 * time.Second // before the pool is applied
	rowLength  = 2 * time.Second
	rowsAtOnce = 12
)

// A poolShow shows a concurrency limit in front of a backend whose capacity changes.
type poolShow struct {
	*demo
	backend *backend.Backend
	rows    []row
	pods    []podState    // what the sidecars said last
	takes   time.Duration // what the backend took then
}

func (d *poolShow) prepare(context.Context) (err error) {
	d.backend, err = backend.Start(threads, fast)
	return err
}

func (d *poolShow) stop() {
	if d.backend != nil {
		d.backend.Close()
	}
}

func (d *poolShow) play(ctx context.Context) error {
	d.step("applying hack/demo/app.yaml: 4 pods that work at one backend of %d threads", threads)
	app := application(d.tally.Address(), d.backend.Address())
	if err := d.leave("pool.yaml", poolManifest); err != nil {
		return err
	}
	if err := d.writeEdits(poolPatches()); err != nil {
		return err
	}
	if err := d.deploy(ctx, app, flood); err != nil {
		return err
	}
	d.step("4 pods are ready; sending %d requests a second to a backend that bears %d, without a pool for %s",
		flood, threads*int(time.Second/fast), unbridled)
	ctx, cancel := d.limited(ctx)
	defer cancel()
	d.show(ctx, unbridled)
	d.step("applying hack/demo/pool.yaml: one limit for what all pods have in flight, which follows from latency")
	if err := d.cluster.Apply(ctx, []byte(poolManifest)); err != nil {
		return err
	}
	d.show(ctx, 0)
	d.summarize()
	return nil
}

// show adds rows until ctx is done, or for that long if it is positive.
func (d *poolShow) show(ctx context.Context, length time.Duration) {
	if length > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, length)
		defer cancel()
	} else if !isTerminal() {
		d.printHints()
	}
	tick := time.NewTicker(rowLength)
	defer tick.Stop()
	began := time.Now()
	for {
		select {
		case <-ctx.Done():
			return
		case now := <-tick.C:
			if length == 0 {
				d.backend.SetService(serviceAt(now.Sub(began)))
			}
			d.rows = append(d.rows, d.observe(ctx, now))
			if isTerminal() {
				d.draw(ctx)
			} else {
				d.printRow()
			}
		}
	}
}

// serviceAt returns what a thread takes that long after the pool was applied.
func serviceAt(since time.Duration) time.Duration {
	if since/phase%2 == 1 {
		return slow
	}
	return fast
}
