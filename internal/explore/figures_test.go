package explore_test

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
	page       = "../../docs/formal-model.md"
	figuresAre = "<!-- figures: go test ./internal/explore -run TestPageTellsTheFigures -update -->\n"
	figuresEnd = "<!-- end of figures -->\n"
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
	for name, states := range want {
		text, err := os.ReadFile(filepath.Join("../../spec", name))
		if err != nil {
			t.Error(err)
			continue
		}
		first, _, _ := strings.Cut(string(text), "\n")
		if expect := fmt.Sprintf(`\* expect %d states`, states); first != expect {
			t.Errorf("%s begins with %q, want %q", name, first, expect)
		}
	}
}

func config(module string, s size, kind string) string {
	return fmt.Sprintf("%s-%d-%d-%d%s.cfg", module, s.holders, s.limit, s.batch, kind)
}
