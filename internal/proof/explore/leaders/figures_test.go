package leaders_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/weir-dev/weir/internal/proof/explore/pages"
)

// here is where the figures are found.
const here = pages.Source("internal/proof/explore/leaders")

// TestPageShowsTheFigures compares the page with what the other tests pin.
func TestPageShowsTheFigures(t *testing.T) {
	here.Shows(t, pages.FormalModel, "figures of leaders", tables())
}

func tables() string {
	var b strings.Builder
	line := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }

	line("### The published models of leaders\n")
	line("| model | states | steps of the shortest history that breaks the promise |")
	line("|---|---|---|")
	for _, p := range publishedModels {
		if p.states > 0 {
			line("| %s | %d | |", p.what, p.states)
		} else {
			line("| %s | | %d |", p.what, p.steps)
		}
	}

	line("\n### The models of leaders\n")
	line("| model | states | steps of the shortest history that admits all it may | ticks until somebody serves, at most |")
	line("|---|---|---|---|")
	for _, m := range models() {
		line("| %s | %d | %d | %d |", m.name, m.states, m.steps, m.serves)
	}

	line("\n### The rules of leaders, each taken away\n")
	line("| rule | steps of the shortest history that breaks the promise without it |")
	line("|---|---|")
	for _, w := range weakenings() {
		line("| %s | %d |", w.rule, w.steps)
	}
	return b.String()
}
