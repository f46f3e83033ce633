package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"text/tabwriter"
	"time"

	"github.com/weir-dev/weir/internal/testing/devcluster/traffic"
)

// A budgetRow is one window, counted by the applications and the load generators.
type budgetRow struct {
	start    time.Time
	admitted [2]int64 // in eu-west and us-east
	offered  int64
	cut      bool // the clusters did not see each other
	first    bool // of the show: nothing is granted of a window that began before
}

func (r *budgetRow) sum() int64 { return r.admitted[0] + r.admitted[1] }

// overshoot is Δ.
func (r *budgetRow) overshoot() int64 { return max(0, r.sum()-budgetLimit) }

// unused is U in percent.
func (r *budgetRow) unused() float64 {
	return 100 * float64(max(0, min(r.offered, budgetLimit)-r.sum())) / budgetLimit
}

func (d *budgetShow) observe(start time.Time) budgetRow {
	row := budgetRow{start: start}
	end := start.Add(budgetWindow)
	for i, s := range []*site{d.site, d.other} {
		for _, pod := range s.pods.sorted() {
			row.admitted[i] += s.tally.Pod(pod).Between(start, end)
		}
		row.offered += s.load.Sum(start, end, func(o *traffic.Outcomes) *traffic.Series { return &o.Offered })
	}
	return row
}

// print writes a row, and what kubectl shows in both clusters.
func (d *budgetShow) print(ctx context.Context, r budgetRow) {
	w := tabwriter.NewWriter(d.out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "window\toffered\teu-west\tus-east\ttogether\tlimit\tΔ\tU\t")
	fmt.Fprintf(w, "%s\t%d\t%d\t%d\t%d\t%d\t%d\t%.1f%%\t  %s\n", r.start.Format(time.TimeOnly),
		r.offered, r.admitted[0], r.admitted[1], r.sum(), budgetLimit, r.overshoot(), r.unused(), r.note())
	_ = w.Flush()
	for _, s := range []*site{d.site, d.other} {
		if table, err := s.table(ctx, "federatedbudgets"); err == nil {
			fmt.Fprintf(d.out, "%s $ kubectl -n shop get federatedbudgets\n%s", s.name, render(table))
		}
	}
	fmt.Fprintln(d.out)
}

func (r *budgetRow) note() string {
	switch {
	case r.cut:
		return "the clusters do not see each other: us-east goes on with its slice of 100"
	case r.first:
		return "the first window"
	default:
		return ""
	}
}

func (d *budgetShow) printHints() {
	dir := d.dir
	if wd, err := os.Getwd(); err == nil {
		if relative, err := filepath.Rel(wd, d.dir); err == nil {
			dir = relative
		}
	}
	fmt.Fprintf(d.out, "\nThe link between the clusters is cut for %d of every %d windows.\n"+
		"Try it, in another terminal in this directory:\n"+
		"  eu-west, the hub    export KUBECONFIG=$PWD/%[3]s/kubeconfig PATH=$PWD/%[3]s/bin:$PWD/bin:$PATH\n"+
		"  us-east             export KUBECONFIG=$PWD/%[3]s/us-east/kubeconfig\n"+
		"  explain the status  kubectl -n shop describe fbud world\n"+
		"  change the limit    kubectl -n shop edit fbud world      (in eu-west; us-east shows the difference)\n"+
		"  kill the hub        kill -9 %[4]d                        (at most a block of 50 is lost)\n"+
		"Ctrl-C ends it and cleans up.\n\n", cutFor, cutEvery, dir, d.cluster.Controller.PID())
}

// whole returns the windows in which the clusters saw each other and all was granted.
func whole(rows []budgetRow) (out []budgetRow) {
	for i, r := range rows {
		if !r.cut && !r.first && (i == 0 || !rows[i-1].cut) {
			out = append(out, r)
		}
	}
	return out
}

// judge says what is wrong: a window that admitted more than the limit, a whole one in which
// a cluster admitted nothing, or that fewer than the wanted number are whole. Nothing is
// wrong when none are wanted: then people may change the limit as they watch.
func judge(rows []budgetRow, wanted int) error {
	if wanted == 0 {
		return nil
	}
	for _, r := range rows {
		if r.overshoot() > 0 {
			return fmt.Errorf("the window at %s admitted %d, more than the limit of %d", r.start.Format(time.TimeOnly), r.sum(), budgetLimit)
		}
	}
	fine := whole(rows)
	for _, r := range fine {
		if r.admitted[0] == 0 || r.admitted[1] == 0 {
			return fmt.Errorf("the window at %s admitted %d in eu-west and %d in us-east, want some in each", r.start.Format(time.TimeOnly), r.admitted[0], r.admitted[1])
		}
	}
	if len(fine) < wanted {
		return fmt.Errorf("the time was over after %d of %d whole windows", len(fine), wanted)
	}
	return nil
}

func (d *budgetShow) summarize() {
	var over int
	for i := range d.rows {
		if d.rows[i].overshoot() > 0 {
			over++
		}
	}
	fine := whole(d.rows)
	var unused float64
	for i := range fine {
		unused += fine[i].unused()
	}
	fmt.Fprintf(d.out, "Windows, counted at the applications of both clusters: %d; over the limit: %d.\n", len(d.rows), over)
	if len(fine) > 0 {
		fmt.Fprintf(d.out, "Of the budget, %.2f%% was not used although it was asked for (mean of %d windows in which the clusters saw each other).\n",
			unused/float64(len(fine)), len(fine))
	}
}
