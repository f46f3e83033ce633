package federation_test

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "write the figures into docs/formal-model.md")

const (
	page       = "../../../docs/formal-model.md"
	figuresAre = "<!-- figures of budgets: go test ./internal/explore/federation -run TestPageTellsTheFigures -update -->\n"
	figuresEnd = "<!-- end of figures of budgets -->\n"
)

// TestPageTellsTheFigures compares the page with what the other tests pin.
func TestPageTellsTheFigures(t *testing.T) {
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, found := strings.Cut(string(text), figuresAre)
	told, after, ended := strings.Cut(rest, figuresEnd)
	if !found || !ended {
		t.Fatalf("%s has no lines %q and %q", page, figuresAre, figuresEnd)
	}
	if *update {
		if err := os.WriteFile(page, []byte(before+figuresAre+tables()+figuresEnd+after), 0o600); err != nil {
			t.Fatal(err)
		}
		return
	}
	if diff := cmp.Diff(tables(), told); diff != "" {
		t.Errorf("%s tells other figures (-want +got); run the command in its comment:\n%s", page, diff)
	}
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
	for _, p := range publishedModels {
		module := "GaleFederatedLeasing-"
		if p.block > 0 {
			module = "GaleFederatedBlocks-"
		}
		config := module + p.String() + ".cfg"
		text, err := os.ReadFile(filepath.Join("../../../spec", config))
		if err != nil {
			t.Error(err)
			continue
		}
		first, _, _ := strings.Cut(string(text), "\n")
		if expect := fmt.Sprintf(`\* expect %d states`, p.states); first != expect {
			t.Errorf("%s begins with %q, want %q", config, first, expect)
		}
	}
}
