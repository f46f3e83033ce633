package failuremodes_test

import (
	"flag"
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "rewrite docs/failure-modes.md")

const page = "../../../docs/failure-modes.md"

// TestThePageIsTheTable compares the page with the rows.
func TestThePageIsTheTable(t *testing.T) {
	if *update {
		if err := os.WriteFile(page, []byte(render()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(render(), string(text)); diff != "" {
		t.Errorf("%s says something else than the rows (-rows +page); run go test ./internal/proof/failuremodes -update:\n%s", page, diff)
	}
}

var braces = regexp.MustCompile(`\{(\w+)\}`)

// TestRowsNameTheirFigures finds figures that no words name, words that name none of the
// row's, digits that are not measured, and names that are used twice.
func TestRowsNameTheirFigures(t *testing.T) {
	ids := map[string]bool{}
	for _, s := range sections {
		for _, r := range s.rows {
			named := map[string]bool{}
			for _, found := range braces.FindAllStringSubmatch(r.words(), -1) {
				named[found[1]] = true
			}
			want := slices.Sorted(maps.Keys(r.figures))
			if got := slices.Sorted(maps.Keys(named)); !slices.Equal(got, want) {
				t.Errorf("%s names %v, and measures %v", r.id, got, want)
			}
			if words := r.does + r.lost + r.heals; strings.ContainsAny(braces.ReplaceAllString(words, ""), "0123456789") {
				t.Errorf("%s names a figure that is not measured: %s", r.id, words)
			}
			if ids[r.id] {
				t.Errorf("%s is two rows", r.id)
			}
			ids[r.id] = true
		}
	}
}

const introduction = `# What goes wrong, and what follows

This page is rendered from the tables in ` + "`internal/proof/failuremodes`" + `; do not edit it, run
` + "`go test ./internal/proof/failuremodes -update`" + `.

## Policies and pools

Each fault is injected by the tests in its last column; what they do not show is in italics. ` + "`make torture`" + ` injects those
marked so into the real processes, stores and clocks, several at a time, and holds every window against its limit.
`

// render returns the page.
func render() string {
	var b strings.Builder
	b.WriteString(introduction)
	b.WriteString(renderFaults())
	b.WriteString("\n" + preface())
	for _, s := range sections {
		fmt.Fprintf(&b, "\n### %s\n\n", s.title)
		if s.about != "" {
			fmt.Fprintf(&b, "%s\n\n", s.about)
		}
		b.WriteString("| what happens | meanwhile | what is lost | how it recovers | Δ | test |\n|---|---|---|---|---|---|\n")
		for _, r := range s.rows {
			mark := ""
			if r.runs != virtual {
				mark = " (" + r.runs.String() + ")"
			}
			fmt.Fprintf(&b, "| %s | %s | %s | %s | 0 | `%s`%s |\n", r.fault, r.filled(r.does), r.filled(r.lost), r.filled(r.heals), r.id, mark)
		}
	}
	return b.String()
}
