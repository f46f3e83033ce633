package explore_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/weir-dev/weir/internal/proof/explore/pages"
)

// here is where the figures are found.
const here = pages.Source("internal/proof/explore")

// TestPageShowsTheFigures compares the page with what the other tests pin.
func TestPageShowsTheFigures(t *testing.T) {
	here.Shows(t, pages.FormalModel, "figures", tables())
}

func tables() string {
	var b strings.Builder
	line := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }

	line("### The published models\n")
	line("| model | holders | limit | batch | states | most admitted | steps to it |")
	line("|---|---|---|---|---|---|---|")
	row := func(model string, s size, f figures) {
		line("| %s | %d | %d | %d | %d | %d | %d |", model, s.holders, s.limit, s.batch, f.states, f.most, f.steps)
	}
	for _, p := range published {
		row("carry-over", p.size, p.carried)
	}
	for _, p := range published {
		row("coupled", p.size, p.coupled)
	}
	for _, r := range returning {
		row("coupled, with returns", r.size, r.figures)
	}

	line("\n### The models beyond them\n")
	line("| model | steps of the shortest history that admits all it may |")
	line("|---|---|")
	for _, m := range append(windowModels(), rateModels()...) {
		line("| %s | %d |", m.name, m.steps)
	}

	line("\n### The rules, each taken away\n")
	line("| rule | steps of the shortest history that breaks the promise without it |")
	line("|---|---|")
	for _, w := range weakenings() {
		line("| %s | %d |", w.rule, w.steps)
	}
	return b.String()
}

// TestSpecsExpectWhatTheSearchFinds has TLC and the search agree: a configuration
// in spec/ expects as many states as the production code reaches.
func TestSpecsExpectWhatTheSearchFinds(t *testing.T) {
	want := map[string]int{}
	for _, p := range published {
		want[config("DistributedLeasing", p.size, "")] = p.carried.states
		want[config("GaleWindowCoupledLeasing", p.size, "")] = p.coupled.states
	}
	for _, r := range returning {
		want[config("GaleWindowCoupledLeasing", r.size, "-returns")] = r.states
	}
	here.Agree(t, want)
}

func config(module string, s size, kind string) string {
	return fmt.Sprintf("%s-%d-%d-%d%s", module, s.holders, s.limit, s.batch, kind)
}
