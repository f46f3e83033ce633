package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/weir-dev/weir/internal/proof/docs"
)

func TestRewrite(t *testing.T) {
	p := &docs.Page{Path: "docs/guides/x.md", Text: strings.Join([]string{
		"[`a`](../a.md#b) [r](../../README.md) [s](../../spec/README.md) [c](../../pkg/c.go#L1) [w](https://example.com/a.md) [h](#here)",
		"![i](i.svg) `[no](../a.md)`", "```", "[no](../a.md)", "```", "[index](../README.md)", "",
	}, "\n")}
	known := map[string]bool{"docs/a.md": true, "README.md": true, "spec/README.md": true, "docs/README.md": true}
	got, images := rewrite(p, known, "v1")
	want := strings.Join([]string{
		"[`a`](./../a.md#b) [r](./../index.md) [s](./../spec/index.md) [c](" + sources + "v1/pkg/c.go#L1) [w](https://example.com/a.md) [h](#here)",
		"![i](./../guides/i.svg) `[no](../a.md)`", "```", "[no](../a.md)", "```", "[index](./../contents.md)", "",
	}, "\n")
	if got != want || !slices.Equal(images, []string{"docs/guides/i.svg"}) {
		t.Errorf("rewritten is\n%s, images %q, want\n%s", got, images, want)
	}
}

// TestStage stages the repository: the navigation leads to pages that were written.
func TestStage(t *testing.T) {
	root, out := filepath.Join("..", ".."), t.TempDir()
	if err := stage(root, out, "main"); err != nil {
		t.Fatal(err)
	}
	pages, err := docs.Pages(root)
	if err != nil {
		t.Fatal(err)
	}
	entries := 0
	for i := range pages {
		if _, err := os.Stat(filepath.Join(out, place(pages[i].Path))); err != nil {
			t.Error(err)
		}
		if pages[i].Path != docs.IndexPath {
			continue
		}
		for _, g := range navigation(&pages[i]) {
			for _, e := range g.Entries {
				entries++
				if _, err := os.Stat(filepath.Join(out, e.Path+".md")); err != nil {
					t.Errorf("%s: %v", e.Title, err)
				}
			}
		}
	}
	if entries < len(pages)-3 {
		t.Errorf("the navigation has %d entries for %d pages", entries, len(pages))
	}
}
