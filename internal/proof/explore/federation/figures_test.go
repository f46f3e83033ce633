package federation_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/weir-dev/weir/internal/proof/explore/pages"
)

// here is where the figures are found.
const here = pages.Source("internal/proof/explore/federation")

// TestPageShowsTheFigures compares the page with what the other tests pin.
func TestPageShowsTheFigures(t *testing.T) {
	here.Shows(t, pages.FormalModel, "figures of budgets", tables())
}

func tables() string {
	var b strings.Builder
	line := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }

	line("### The published models of budgets\n")
	line("| model | regions | limit | batch | block | crashes | states | most admitted | steps to it |")
	line("|---|---|---|---|---|---|---|---|---|")
	for _, p := range publishedModels {
		what := "a coordinator that is never lost"
		if p.block > 0 {
			what = "blocks, set aside before they are granted"
		}
		line("| %s | %d | %d | %d | %d | %d | %d | %d | %d |", what, p.regions, p.limit, p.batch, p.block, p.crashes, p.states, p.most, p.steps)
	}

	line("\n### The models of budgets beyond them\n")
	line("| model | steps of the shortest history that admits all that may be |")
	line("|---|---|")
	for _, m := range models() {
		line("| %s | %d |", m.name, m.steps)
	}
	for _, m := range nurseries() {
		line("| new budgets: %s | %d |", m.name, m.steps)
	}

	line("\n### The rules of budgets, each taken away\n")
	line("| rule | steps of the shortest history that breaks the bound without it |")
	line("|---|---|")
	for _, w := range weakenings() {
		line("| %s | %d |", w.rule, w.steps)
	}
	for _, w := range weakBirths() {
		line("| new budgets: %s | %d |", w.name, w.steps)
	}
	return b.String()
}

// TestSpecsExpectWhatTheSearchFinds has TLC and the search agree: a configuration
// in spec/ expects as many states as the production code reaches.
func TestSpecsExpectWhatTheSearchFinds(t *testing.T) {
	want := map[string]int{}
	for _, p := range publishedModels {
		module := "GaleFederatedLeasing-"
		if p.block > 0 {
			module = "GaleFederatedBlocks-"
		}
		want[module+p.String()] = p.states
	}
	here.Agree(t, want)
}
