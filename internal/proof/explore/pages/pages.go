// Package pages compares what the searches find with the pages that show it and with the
// configurations in spec/.
package pages

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "write the figures into the pages that show them")

// FormalModel is the page that explains the figures.
const FormalModel = "docs/formal-model.md"

// A Source is the package that finds figures, by its directory below the root of the
// repository.
type Source string

// Shows fails unless the page has the figures between two comments that name them. With
// -update it writes them there.
func (s Source) Shows(t *testing.T, page, name, figures string) {
	t.Helper()
	before, shown, after := s.parts(t, page, name)
	if *update {
		if err := os.WriteFile(s.path(page), []byte(before+figures+after), 0o600); err != nil {
			t.Fatal(err)
		}
		return
	}
	if diff := cmp.Diff(figures, shown); diff != "" {
		t.Errorf("%s shows other figures (-want +got); run the command in its comment:\n%s", page, diff)
	}
}

// Updating reports whether the figures are written.
func Updating() bool { return *update }

// Shown returns the figures that the page has, for those that differ from one measurement to the
// next.
func (s Source) Shown(t *testing.T, page, name string) string {
	t.Helper()
	_, shown, _ := s.parts(t, page, name)
	return shown
}

// parts returns the figures, and the page before and after them.
func (s Source) parts(t *testing.T, page, name string) (before, shown, after string) {
	t.Helper()
	text, err := os.ReadFile(s.path(page))
	if err != nil {
		t.Fatal(err)
	}
	begin := fmt.Sprintf("<!-- %s: go test ./%s -run %s -update -->\n", name, s, t.Name())
	end := fmt.Sprintf("<!-- end of %s -->\n", name)
	before, rest, found := strings.Cut(string(text), begin)
	shown, after, ended := strings.Cut(rest, end)
	if !found || !ended {
		t.Fatalf("%s has no lines %q and %q", page, begin, end)
	}
	return before + begin, shown, end + after
}

// Agree fails unless each configuration in spec/ expects TLC to find as many states.
func (s Source) Agree(t *testing.T, states map[string]int) {
	t.Helper()
	for config, n := range states {
		if got, want := s.Expected(t, config), fmt.Sprintf("%d states", n); got != want {
			t.Errorf("%s expects %q, want %q", config, got, want)
		}
	}
}

// Expected returns what a configuration in spec/ expects TLC to find.
func (s Source) Expected(t *testing.T, config string) string {
	t.Helper()
	text, err := os.ReadFile(s.path("spec/" + config + ".cfg"))
	if err != nil {
		t.Fatal(err)
	}
	first, _, _ := strings.Cut(string(text), "\n")
	expected, found := strings.CutPrefix(first, `\* expect `)
	if !found {
		t.Fatalf("%s begins with %q", config, first)
	}
	return expected
}

// path returns where the tests of the package find a file.
func (s Source) path(file string) string {
	up := strings.Repeat("../", strings.Count(string(s), "/")+1)
	return filepath.Join(up, filepath.FromSlash(file))
}
