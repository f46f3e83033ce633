// Command simulate measures a simulated fleet and writes docs/simulation.md and
// docs/simulation.svg.
package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"runtime/debug"

	"github.com/weir-dev/weir/internal/proof/simulate"
	"github.com/weir-dev/weir/internal/testing/plot"
)

func main() {
	out := flag.String("out", "docs", "`directory` for simulation.md and simulation.svg")
	windows := flag.Int("windows", 60, "windows of each run")
	seeds := flag.Int("seeds", 60, "storms for each promise")
	flag.Parse()
	debug.SetGCPercent(400) // what a run allocates dies young, and little of it lives
	if err := run(*out, simulate.Effort{Windows: *windows, Seeds: *seeds}); err != nil {
		fmt.Fprintln(os.Stderr, "simulate:", err)
		os.Exit(1)
	}
}

func run(out string, effort simulate.Effort) error {
	report := simulate.Measure(effort, func(done, total int) {
		fmt.Fprintf(os.Stderr, "\r%d of %d runs", done, total)
	})
	fmt.Fprintf(os.Stderr, "\r%40s\r", "")
	fmt.Println(report.Markdown())
	if err := os.WriteFile(filepath.Join(out, "simulation.md"), []byte(preamble+report.Markdown()), 0o644); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(out, "simulation.svg"), []byte(plot.Draw(report.Panels)), 0o644); err != nil {
		return err
	}
	fmt.Printf("%d events; the tables are in %s, the plot beside them\n", report.Events, filepath.Join(out, "simulation.md"))
	if report.Overshoot > 0 {
		return fmt.Errorf("a run admitted %d units beyond what was promised", report.Overshoot)
	}
	return nil
}

const preamble = `# Simulation

This page is written by ` + "`make simulate`" + `, which runs whole fleets in virtual time: the limiter of each holder and
the decision of the store are the production code, and a seed decides everything else, so every figure can be had again.
An auditor who sees true time, and nothing of what the limiters count, says what was admitted. Δ is what was admitted
beyond what the algorithm promises. See [the guarantees](guarantees.md) for what is promised when.

![Δ, utilization and round trips over the number of holders](simulation.svg)

`
