package main

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// draw replaces the screen.
func (d *poolShow) draw(ctx context.Context) {
	var b bytes.Buffer
	b.WriteString("\x1b[H\x1b[J")
	fmt.Fprintf(&b, "Weir: one limit for what all pods of shop/checkout have in flight. Backend: %d threads. Load: %d requests a second.   up %s\n\n",
		threads, flood, time.Since(d.began).Round(time.Second))
	rowTable(&b, d.rows[max(0, len(d.rows)-rowsAtOnce):])
	b.WriteString("\n")
	podStates(&b, d.pods)
	b.WriteString("\nin flight and p99 are measured by the backend itself; served: reached the backend and was finished soon\n\n")
	if table, err := d.table(ctx, "concurrencypools"); err == nil {
		fmt.Fprintf(&b, "$ kubectl -n shop get concurrencypools\n%s\n", render(table))
	}
	b.WriteString(d.hints())
	_, _ = d.out.Write(b.Bytes())
}

// printRow writes the latest row, below a header now and then.
func (d *poolShow) printRow() {
	latest := len(d.rows) - 1
	var b bytes.Buffer
	rowTable(&b, d.rows[latest:])
	if latest%10 != 0 {
		_, _ = b.ReadBytes('\n')
	}
	_, _ = d.out.Write(b.Bytes())
}

func (d *poolShow) printHints() { fmt.Fprint(d.out, "\n", d.hints(), "\n") }

// hints are what to try next.
func (d *poolShow) hints() string {
	dir := d.dir
	if relative, err := filepath.Rel(d.root, d.dir); err == nil {
		dir = relative
	}
	return fmt.Sprintf("Try it, in another terminal in this directory:\n"+
		"  export KUBECONFIG=$PWD/%[1]s/kubeconfig PATH=$PWD/%[1]s/bin:$PWD/bin:$PATH\n"+
		"  explain the limit   kubectl -n shop describe cpool checkout\n"+
		"  change the range    kubectl -n shop edit cpool checkout\n"+
		"  add pods            kubectl -n shop scale deploy checkout --replicas=8\n"+
		"  change its ways     kubectl -n shop patch cpool checkout --type merge --patch-file %[1]s/edits/FILE\n"+
		"                      with %[2]s\n"+
		"  do without          kubectl -n shop delete cpool checkout     (kubectl create -f %[1]s/pool.yaml brings it back)\n"+
		"  kill a sidecar      kill -9 $(cat %[1]s/pods/shop_checkout-*/weir-sidecar.pid | head -1)\n"+
		"  suspend one         kill -STOP ..., and 5 s later kill -CONT ...\n"+
		"  kill the controller kill -9 %[3]d     (another process from then on, see the log)\n"+
		"Ctrl-C ends it and cleans up.\n", dir, strings.Join(slices.Sorted(maps.Keys(poolPatches())), ", "), d.cluster.Controller.PID())
}

// summarize compares what the backend saw without the pool and with it, once what had
// piled up before was worked off.
func (d *poolShow) summarize() {
	var without, with int64
	var slowest time.Duration
	var settled, over int
	for i := range d.rows {
		r := &d.rows[i]
		switch {
		case r.limit == 0:
			without = max(without, r.peak)
		case settled > 0 || r.peak <= r.limit:
			settled++
			with, slowest = max(with, r.peak), max(slowest, r.p99)
			if r.peak > max(r.limit, d.rows[i-1].limit) {
				over++
			}
		}
	}
	fmt.Fprintln(d.out)
	if settled == 0 {
		fmt.Fprintln(d.out, "The pool did not run long enough; let the demo run a little longer.")
		return
	}
	fmt.Fprintf(d.out, "In flight at the backend at most: %d without the pool, %d with it (edits of it included); p99 with it at most %d ms.\n",
		without, with, slowest.Milliseconds())
	fmt.Fprintf(d.out, "Rows of %s with more in flight than the limit had been: %d of %d.\n", rowLength, over, settled)
}
