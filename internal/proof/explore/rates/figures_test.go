package rates_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/weir-dev/weir/internal/proof/explore/pages"
)

// here is where the figures are found.
const here = pages.Source("internal/proof/explore/rates")

// TestPageShowsTheFigures compares the page with what the other tests pin.
func TestPageShowsTheFigures(t *testing.T) {
	here.Shows(t, pages.FormalModel, "figures of rates", tables())
}

func tables() string {
	var b strings.Builder
	line := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }

	line("| model | states | steps of the shortest history that admits all of a short window | of a long window |")
	line("|---|---|---|---|")
	for _, m := range models() {
		line("| %s | %d | %d | %d |", m.name, m.states, m.steps[short], m.steps[long])
	}

	line("\n| rule | steps of the shortest history that breaks a promise without it |")
	line("|---|---|")
	for _, w := range weakenings() {
		line("| %s | %d |", w.rule, w.steps)
	}
	return b.String()
}
