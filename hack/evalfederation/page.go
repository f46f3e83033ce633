package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/weir-dev/weir/internal/testing/plot"
)

// published are the figures of the system that the idea comes from: a coordinator in
// Redis, batches of 8 and 2 ms in the table of skews, of 16 in that of latencies.
var published = struct {
	federated, static []float64 // by skew
	commands          []int     // by skew, in two windows
	slow              []string  // by latency: p95 and p99 in ms
}{
	federated: []float64{0.973, 0.977, 0.990, 0.957, 1.000},
	static:    []float64{1.000, 0.833, 0.667, 0.500, 0.333},
	commands:  []int{92, 90, 83, 102, 76},
	slow:      []string{"7.4 / 16.2", "12.0 / 20.2", "53.5 / 65.0", "102.6 / 113.3"},
}

const preamble = `# One budget over three regions, measured

This page is written by ` + "`make eval-federation`" + `. Three regions, each a process of its own with the engine that a
controller runs, draw on one budget of %d units a window over each kind of coordinator: a hub in memory, a hub that sets blocks
aside in the API server (the controller itself), Redis and Postgres, all real. %s Each region reaches the coordinator over a link that
delays every byte by half the latency. Together the regions are offered exactly the limit, evenly over the window; with skew *s* the
hot one gets 1/3 + *s*·2/3 of it. The regions count admissions by the window of the coordinator's clock;
%d windows count, after %d in which sizes are learned. Δ is the most that any window, counted or not, admitted beyond the limit.

![Utilization and commands by skew](federation-evaluation.svg)

`

// write writes the page and its plot.
func write(dir string, n *network, results []result) error {
	where := "They share the loopback address."
	if n.apart {
		where = "Each is in a network namespace of its own."
	}
	var b strings.Builder
	fmt.Fprintf(&b, preamble, budgetLimit, where, 2, warmUp)
	b.WriteString(skewTable(results))
	b.WriteString(latencyTable(results))
	b.WriteString(valuesTable(results))
	image := plot.Draw(panels(results))
	if err := os.WriteFile(filepath.Join(dir, "federation-evaluation.svg"), []byte(image), 0o644); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, "federation-evaluation.md"), []byte(b.String()), 0o644)
}

// find returns the result of a run, whatever its number of windows.
func find(results []result, like run) result {
	for i := range results {
		r := results[i].run
		r.Windows = 0
		if r == like {
			return results[i]
		}
	}
	return result{}
}

func skewRun(kind string, skew float64, batch int64, static bool) run {
	return run{Kind: kind, Skew: skew, Batch: batch, Static: static, Latency: 2 * time.Millisecond, Window: 5 * time.Second}
}

func skewTable(results []result) string {
	var b strings.Builder
	b.WriteString("## Skew\n\nUtilization: admitted over offered. Windows of 5 s, 2 ms. In brackets the commands to the coordinator in a window, of all regions.\n\n")
	b.WriteString("| skew | static, published | static | batch 8, published |")
	for _, kind := range kinds {
		fmt.Fprintf(&b, " batch 8, %s | adaptive, %s |", kind, kind)
	}
	b.WriteString(" Δ |\n|---|---|---|---|" + strings.Repeat("---|---|", len(kinds)) + "---|\n")
	for i, skew := range skews {
		static := find(results, skewRun(redisKind, skew, 0, true))
		over := static.over
		fmt.Fprintf(&b, "| %.2f | %.3f | %.3f | %.3f (%d) |", skew, published.static[i], static.used(), published.federated[i], published.commands[i]/2)
		for _, kind := range kinds {
			for _, batch := range []int64{8, 0} {
				r := find(results, skewRun(kind, skew, batch, false))
				over = max(over, r.over)
				fmt.Fprintf(&b, " %.3f (%d) |", r.used(), r.perWindow())
			}
		}
		fmt.Fprintf(&b, " %d |\n", over)
	}
	return b.String()
}

func latencyTable(results []result) string {
	var b strings.Builder
	b.WriteString("\n## Latency\n\nOne region is offered everything. Windows of 10 s. Utilization, and how long a decision took: p50, p95 and p99 in ms.\n" +
		"The published system used 1.000 in all cases, with a p50 of 0.0.\n\n")
	b.WriteString("| latency | batch 16, published p95 / p99 |")
	for _, kind := range kinds {
		fmt.Fprintf(&b, " batch 16, %s | adaptive, %s |", kind, kind)
	}
	b.WriteString(" Δ |\n|---|---|" + strings.Repeat("---|---|", len(kinds)) + "---|\n")
	for i, latency := range latencies {
		fmt.Fprintf(&b, "| %d ms | %s |", latency.Milliseconds(), published.slow[i])
		var over int64
		for _, kind := range kinds {
			for _, batch := range []int64{16, 0} {
				r := find(results, run{Kind: kind, Skew: 1, Batch: batch, Latency: latency, Window: 10 * time.Second})
				over = max(over, r.over)
				fmt.Fprintf(&b, " %.3f: %s |", r.used(), r.quantiles())
			}
		}
		fmt.Fprintf(&b, " %d |\n", over)
	}
	return b.String()
}

// perWindow returns the commands of one window.
func (r *result) perWindow() int64 { return r.commands / int64(warmUp+max(1, r.Windows)) }

func (r *result) quantiles() string {
	var parts []string
	for _, q := range []float64{0.5, 0.95, 0.99} {
		parts = append(parts, fmt.Sprintf("%.1f", float64(r.wait(q).Microseconds())/1000))
	}
	return strings.Join(parts, " / ")
}

func panels(results []result) []plot.Panel {
	used := plot.Panel{Title: "Utilization, offered = limit", Axis: "skew", Linear: true, Top: 1}
	commands := plot.Panel{Title: "Commands to the coordinator per window", Axis: "skew", Linear: true}
	used.Lines = append(used.Lines,
		plot.Line{Name: "batch 8, published", X: skews, Y: published.federated},
		plot.Line{Name: "static", X: skews, Y: published.static})
	for _, kind := range kinds {
		line, cost := plot.Line{Name: "adaptive, " + kind, X: skews}, plot.Line{Name: "adaptive, " + kind, X: skews}
		for _, skew := range skews {
			r := find(results, skewRun(kind, skew, 0, false))
			line.Y, cost.Y = append(line.Y, r.used()), append(cost.Y, float64(r.perWindow()))
		}
		used.Lines, commands.Lines = append(used.Lines, line), append(commands.Lines, cost)
	}
	return []plot.Panel{used, commands}
}
