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
