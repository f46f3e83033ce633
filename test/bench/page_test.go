package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestAPageKeepsSectionsThatWereNotRun runs sections one by one, in another order.
func TestAPageKeepsSectionsThatWereNotRun(t *testing.T) {
	file := filepath.Join(t.TempDir(), "page.md")
	titles := []string{"First", "Second", "Third"}
	write := func(title, text string) {
		t.Helper()
		p, err := open(file)
		if err != nil {
			t.Fatal(err)
		}
		p.set(title, text)
		if err := p.save(append([]string(nil), titles...)); err != nil {
			t.Fatal(err)
		}
	}
	write("Third", "\nmachine\n\n### Table\n\n| 3 |\n")
	write("First", "\nmachine\n\n| 1 |\n")
	write("Removed", "\nmachine\n\n| 0 |\n")
	write("First", "\nmachine\n\n| 1 again |\n")
	got, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	want := preface + "\n## First\n\nmachine\n\n| 1 again |\n\n## Third\n\nmachine\n\n### Table\n\n| 3 |\n"
	if string(got) != want {
		t.Errorf("the page is\n%s\nwant\n%s", got, want)
	}
	if strings.Count(string(got), "# Benchmarks") != 1 {
		t.Error("the preface is not there once")
	}
}

// TestATableHasItsRowsInBothForms.
func TestATableHasItsRowsInBothForms(t *testing.T) {
	for note, want := range map[string][2]string{
		"":       {"\nTitle  ns\n  one  1\n  two  22\n", "\n### Title\n\n|  | ns |\n|---|---|\n| one | 1 |\n| two | 22 |\n"},
		"A note": {"\nTitle  ns\n  one  1\n  two  22\n  (A note)\n", "\n### Title\n\nA note\n\n|  | ns |\n|---|---|\n| one | 1 |\n| two | 22 |\n"},
	} {
		one := &table{title: "Title", note: note, head: []string{"", "ns"}}
		one.add("one", "1")
		one.add("two", "22")
		var terminal, docs strings.Builder
		one.print(&terminal)
		one.markdown(&docs)
		if terminal.String() != want[0] || docs.String() != want[1] {
			t.Errorf("written %q and %q, want %q", terminal.String(), docs.String(), want)
		}
	}
}
