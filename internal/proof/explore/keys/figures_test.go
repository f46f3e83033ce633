package keys_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/weir-dev/weir/internal/proof/explore/pages"
)

// here is where the figures are found.
const here = pages.Source("internal/proof/explore/keys")

// TestPageShowsTheFigures compares the page with what the other tests pin.
func TestPageShowsTheFigures(t *testing.T) {
	here.Shows(t, pages.FormalModel, "figures of keys", tables())
}

func tables() string {
	var b strings.Builder
	line := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }

	line("| configuration of GaleKeyedBlocks | is of | TLC and the search find |")
	line("|---|---|---|")
	for _, f := range publishedModels() {
		line("| `%s` | %s | %s |", strings.TrimPrefix(f.config(), "GaleKeyedBlocks-"), f.what, f.expected())
	}

	line("\n| model | states | steps of the shortest history that admits all that may be |")
	line("|---|---|---|")
	for _, m := range models() {
		line("| %s | %d | %d |", m.name, m.states, m.steps)
	}

	line("\n| rule | steps of the shortest history that breaks the bound without it |")
	line("|---|---|")
	for _, w := range weakenings() {
		line("| %s | %d |", w.rule, w.steps)
	}

	line("\n| an override that is edited | states | steps of the shortest history that admits all that may be, after an edit |")
	line("|---|---|---|")
	for _, a := range amendments() {
		if !a.missing() {
			line("| %s | %d | %d |", a.name, a.states, a.steps)
		}
	}

	line("\n| rule | steps of the shortest history that breaks the bound without it |")
	line("|---|---|")
	for _, a := range amendments() {
		if a.missing() {
			line("| %s | %d |", a.name, a.steps)
		}
	}
	return b.String()
}
