package leaders_test

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "write the figures into docs/formal-model.md")

const (
	page       = "../../../docs/formal-model.md"
	figuresAre = "<!-- figures of leaders: go test ./internal/explore/leaders -run TestPageTellsTheFigures -update -->\n"
	figuresEnd = "<!-- end of figures of leaders -->\n"
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
		t.Errorf("%s has other figures (-want +got); run the command in its comment:\n%s", page, diff)
	}
}

func tables() string {
	var b strings.Builder
	line := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }

	line("### The models of leaders\n")
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
