package docs

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestIndexListsEveryPage holds for each page once: the navigation of the site is made from
// the index.
func TestIndexListsEveryPage(t *testing.T) {
	all := pages(t)
	i := slices.IndexFunc(all, func(p Page) bool { return p.Path == IndexPath })
	listed := map[string]int{}
	for _, g := range Groups(&all[i]) {
		for _, e := range g.Entries {
			listed[e.Path]++
		}
	}
	for _, p := range all {
		want := 1
		if p.Path == IndexPath || p.Path == "README.md" {
			want = 0 // the two pages that begin the site
		}
		if p.Path == "docs/glossary.md" {
			continue // named above the groups
		}
		if listed[p.Path] != want {
			t.Errorf("%s lists %s %d times, want %d", IndexPath, p.Path, listed[p.Path], want)
		}
	}
}

func TestGroups(t *testing.T) {
	index := Page{Path: IndexPath, Text: strings.Join([]string{
		"# Docs", "[before](before.md)", "", "## One", "", "| page | says |", "|---|---|", "| [a](a.md), [b](../b.md) | [c](c.md) |",
		"", "## Packages", "", "| [p](../p/doc.go) | x |", "", "## Two", "", "| [d](reference/d.md) | x |", "",
	}, "\n")}
	want := []Group{{"One", []Entry{{"a", "docs/a.md"}, {"b", "b.md"}}}, {"Two", []Entry{{"d", "docs/reference/d.md"}}}}
	if diff := cmp.Diff(want, Groups(&index)); diff != "" {
		t.Errorf("groups (-want +got):\n%s", diff)
	}
}
