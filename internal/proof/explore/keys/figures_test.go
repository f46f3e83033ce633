package keys_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/weir-dev/weir/internal/proof/explore/pages"
)

// TestPageShowsTheFigures compares the page with what the other tests pin.
func TestPageShowsTheFigures(t *testing.T) {
	pages.Source("internal/proof/explore/keys").Shows(t, pages.FormalModel, "figures of keys", tables())
}

func tables() string {
	var b strings.Builder
	line := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }

	line("| model | states | steps of the shortest history that admits all that may be |")
	line("|---|---|---|")
	for _, m := range models() {
		line("| %s | %d | %d |", m.name, m.states, m.steps)
	}

	line("\n| rule | steps of the shortest history that breaks the bound without it |")
	line("|---|---|")
	for _, w := range weakenings() {
		line("| %s | %d |", w.rule, w.steps)
	}
	return b.String()
}
