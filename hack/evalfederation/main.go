// Command evalfederation measures how three regions share one budget, each a process of
// its own, over every kind of coordinator, and writes docs/federation-evaluation.md with
// its plot.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"sync"
	"syscall"
	"time"

	"github.com/go-logr/logr"
	"golang.org/x/sync/errgroup"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/log"
)

func main() {
	klog.SetLogger(logr.Discard())
	log.SetLogger(logr.Discard())
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	var err error
	switch {
	case slices.Equal(os.Args[1:], []string{"region"}):
		err = playRegion(ctx, os.Stdin, os.Stdout)
	case slices.Equal(os.Args[1:], []string{"values"}): // leaves the other tables as they are
		err = evaluate(ctx, func(kind string) [][]run { return [][]run{ofValues(kind)} }, func(dir string, _ *network, results []result) error { return writeValues(dir, results) })
	default:
		err = evaluate(ctx, plan, write)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "evalfederation:", err)
		os.Exit(1)
	}
}

func evaluate(ctx context.Context, plan func(kind string) [][]run, write func(dir string, n *network, results []result) error) (err error) {
	root, err := os.Getwd()
	if err != nil {
		return err
	}
	e := &evaluation{secrets: map[string]map[string][]byte{}}
	var why error
	if e.network, why = openNetwork(ctx); why != nil {
		fmt.Printf("the regions are not apart, only at a distance, because network namespaces are not to be had: %v\n", why)
	}
	defer e.close()
	fmt.Println("starting Redis, Postgres, a control plane and two hubs")
	if err := e.open(ctx, root, filepath.Join(root, ".cache", "evalfederation")); err != nil {
		return err
	}
	results, err := e.runAll(ctx, plan)
	if err != nil {
		return err
	}
	if err := write(filepath.Join(root, "docs"), e.network, results); err != nil {
		return err
	}
	for i := range results {
		if results[i].over > 0 {
			err = errors.Join(err, fmt.Errorf("%s, keyed %v, skew %v, latency %v: a window admitted %d beyond the limit",
				results[i].Kind, results[i].Keyed, results[i].Skew, results[i].Latency, results[i].over))
		}
	}
	return err
}

// runAll measures all rows at once. The load is small, so they disturb each other
// little.
func (e *evaluation) runAll(ctx context.Context, plan func(kind string) [][]run) ([]result, error) {
	var total, done int
	var mu sync.Mutex
	var rows [][]run
	for _, kind := range kinds {
		rows = append(rows, plan(kind)...)
	}
	measuredIn := make([][]result, len(rows))
	all, ctx := errgroup.WithContext(ctx)
	for i, row := range rows {
		total += len(row)
		all.Go(func() error {
			for n, r := range row {
				kind := r.Kind
				id, err := e.announce(ctx, r, i*100+n)
				if err != nil {
					return fmt.Errorf("%s: %w", kind, err)
				}
				measured, err := e.measure(ctx, r, id)
				if err != nil {
					return fmt.Errorf("%s: %w", kind, err)
				}
				measuredIn[i] = append(measuredIn[i], measured)
				mu.Lock()
				done++
				fmt.Printf("%3d of %d  %s\n", done, total, measured.line())
				mu.Unlock()
			}
			return nil
		})
	}
	err := all.Wait()
	return slices.Concat(measuredIn...), err
}

func (r *result) line() string {
	return fmt.Sprintf("%-10s skew %.2f, %v: admitted %d of %d, Δ %d, %d commands, p99 %v",
		r.Kind, r.Skew, r.Latency, r.admitted, r.could, r.over, r.commands, r.wait(0.99).Round(100*time.Microsecond))
}
