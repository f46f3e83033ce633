package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"slices"
	"text/tabwriter"
	"time"
)

const (
	tickEvery = 500 * time.Millisecond
	rows      = 6 // closed windows on screen
)

// showLive shows what happens until ctx is done or the time is over, and then
// sums it up: redrawn on a terminal, a line for each window elsewhere.
func (d *policyShow) showLive(ctx context.Context) {
	ctx, cancel := d.limited(ctx)
	defer cancel()
	h := &history{began: time.Now()}
	var closed []window
	terminal := isTerminal()
	if !terminal {
		fmt.Fprint(d.out, "\n", d.hints(), "\n")
	}
	tick := time.NewTicker(tickEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			d.summarize(closed)
			return
		case now := <-tick.C:
			view, err := d.readPolicy(ctx)
			if err != nil || view.gone() && len(h.windows) == 0 {
				continue // the API server is stopping, or there was no policy yet
			}
			changed := !terminal && view.gone() != h.last.gone()
			final := h.observe(now, view, d.count)
			closed = append(closed, final...)
			if terminal {
				d.draw(h, view)
				continue
			}
			if changed {
				fmt.Fprintf(d.out, "\nWeir: %s\n\n", view.title())
			}
			d.print(final, view)
		}
	}
}

func isTerminal() bool {
	info, err := os.Stdout.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}

// draw replaces the screen.
func (d *policyShow) draw(h *history, view policyView) {
	var b bytes.Buffer
	b.WriteString("\x1b[H\x1b[J")
	fmt.Fprintf(&b, "Weir: %s. Load: %d requests a second.   up %s\n\n", view.title(), overload, time.Since(d.began).Round(time.Second))
	windowTable(&b, h.windows[max(0, len(h.windows)-rows-1):])
	b.WriteString("\n")
	d.podTable(&b, &h.windows[len(h.windows)-1])
	if view.moving != "" {
		fmt.Fprintf(&b, "\n%s\n", view.moving)
	}
	fmt.Fprintf(&b, "\nadmitted is counted by the application itself and Δ (over the limit) and U (unused although asked for)\n"+
		"are computed from that. Weir's own figure, requests per round trip to the store: %s\n\n", orNone(view.perTrip))
	fmt.Fprintf(&b, "$ kubectl -n shop get ratelimitpolicies\n%s\n%s", view.table, d.hints())
	_, _ = d.out.Write(b.Bytes())
}

// print writes a line for each window that became final.
func (d *policyShow) print(final []window, view policyView) {
	for i := range final {
		windowTable(d.out, final[i:i+1])
		d.podTable(d.out, &final[i])
		fmt.Fprintf(d.out, "requests per round trip: %s\n%s%s\n", orNone(view.perTrip), view.table, view.moving)
	}
}

// windowTable prints windows, the newest first.
func windowTable(out io.Writer, windows []window) {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "window\toffered\tadmitted\trefused\tfailed\tlimit\tΔ\tU\t")
	now := time.Now()
	for _, v := range slices.Backward(windows) {
		limit, over, unused := "", "", ""
		if v.limit > 0 {
			limit = fmt.Sprint(v.limit)
		}
		if n, ok := v.overshoot(); ok {
			over = fmt.Sprint(n)
		}
		if percent, ok := v.unused(); ok && !now.Before(v.end()) {
			unused = fmt.Sprintf("%.1f%%", percent)
		}
		fmt.Fprintf(w, "%s\t%d\t%d\t%d\t%d\t%s\t%s\t%s\t  %s\n",
			v.start.Format(time.TimeOnly), v.offered, v.admitted, v.refused, v.failed, limit, over, unused, v.note(now))
	}
	_ = w.Flush()
}

// podTable prints what became of each pod's part of one window.
func (d *policyShow) podTable(out io.Writer, v *window) {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintf(w, "pod, window %s\toffered\tadmitted\trefused\tfailed\t\n", v.start.Format(time.TimeOnly))
	for _, pod := range d.pods.sorted() {
		o := d.load.Of(pod)
		offered := o.Offered.Between(v.start, v.end())
		if offered == 0 {
			continue // gone
		}
		fmt.Fprintf(w, "%s\t%d\t%d\t%d\t%d\t\n", pod, offered, d.tally.Pod(pod).Between(v.start, v.end()),
			o.Refused.Between(v.start, v.end()), o.Failed.Between(v.start, v.end()))
	}
	_ = w.Flush()
}

func orNone(s string) string {
	if s == "" {
		return "not measured yet"
	}
	return s
}
