package docs

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const root = "../../.."

func pages(t *testing.T) []Page {
	t.Helper()
	all, err := Pages(root)
	if err != nil || len(all) < 30 {
		t.Fatalf("%d pages: %v", len(all), err)
	}
	return all
}

// TestLinks follows every link within the repository, and the fragments of those to pages.
func TestLinks(t *testing.T) {
	all := pages(t)
	anchors := map[string]map[string]bool{}
	for i := range all {
		anchors[all[i].Path] = all[i].Anchors()
	}
	for i := range all {
		for _, l := range all[i].Links() {
			file, fragment := all[i].Resolve(l.Text)
			if file == "" {
				continue
			}
			if _, err := os.Stat(filepath.Join(root, filepath.FromSlash(file))); err != nil {
				t.Errorf("%s: link to %s, which does not exist", all[i].At(l.Line), l.Text)
			} else if fragment != "" && !anchors[file][fragment] {
				t.Errorf("%s: link to %s, and %s has no such heading", all[i].At(l.Line), l.Text, file)
			}
		}
	}
}

func TestPage(t *testing.T) {
	p := Page{Path: "docs/x.md", Text: strings.Join([]string{
		"# A `page` of Δ: all", "", "See [a](a.md#b),", "[b](../c/d.go) and `[no](link)`.", "",
		"- in a list:", "", "  ```sh", "  # a comment", "  make", "  ```", "", "## Twice", "", "## Twice", "", "[me](#twice-1) [out](https://example.com/#x)", "",
	}, "\n")}
	if diff := cmp.Diff([]Block{{"sh", "# a comment\nmake\n", 9}}, p.Blocks()); diff != "" {
		t.Errorf("blocks (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]Span{{"a.md#b", 3}, {"../c/d.go", 4}, {"#twice-1", 17}, {"https://example.com/#x", 17}}, p.Links()); diff != "" {
		t.Errorf("links (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]Span{{"page", 1}, {"[no](link)", 4}}, p.Spans()); diff != "" {
		t.Errorf("spans (-want +got):\n%s", diff)
	}
	if got := slices.Sorted(maps.Keys(p.Anchors())); !slices.Equal(got, []string{"a-page-of-δ-all", "twice", "twice-1"}) {
		t.Errorf("anchors %q", got)
	}
	if p.Title() != "A page of Δ: all" {
		t.Errorf("title %q", p.Title())
	}
	for target, want := range map[string][2]string{
		"a.md#b": {"docs/a.md", "b"}, "../c/d.go": {"c/d.go", ""}, "#e": {"docs/x.md", "e"}, "https://example.com/#x": {}, "mailto:a@example.com": {},
	} {
		if file, fragment := p.Resolve(target); file != want[0] || fragment != want[1] {
			t.Errorf("%s leads to %q, %q, want %q", target, file, fragment, want)
		}
	}
}
