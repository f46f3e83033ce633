package main

import (
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestExponent(t *testing.T) {
	for name, test := range map[string]struct {
		of   func(n float64) float64
		want float64
	}{
		"a constant":   {func(float64) float64 { return 7 }, 0},
		"proportional": {func(n float64) float64 { return 3 * n }, 1},
		"quadratic":    {func(n float64) float64 { return n * n / 5 }, 2},
		"its root":     {math.Sqrt, 0.5},
	} {
		var s section
		for _, n := range []int{100, 700, 5000} {
			s.point("cost", n, test.of(float64(n)))
		}
		if got := s.lines[0].exponent(); math.Abs(got-test.want) > 1e-9 {
			t.Errorf("%s: the exponent is %v, want %v", name, got, test.want)
		}
	}
}

func TestExponentTakesNoCostThatIsNotPositive(t *testing.T) {
	var s section
	s.point("cost", 10, -1)
	s.point("cost", 100, 100)
	s.point("cost", 1000, 1000)
	if got := s.lines[0].exponent(); math.Abs(got-1) > 1e-9 {
		t.Errorf("the exponent is %v, want 1", got)
	}
	s = section{}
	s.point("cost", 10, 5)
	if got := s.lines[0].exponent(); !math.IsNaN(got) {
		t.Errorf("one size has the exponent %v", got)
	}
}

// TestAStageThatIsNotRunKeepsItsSection, and sections of no stage stay behind them.
func TestAStageThatIsNotRunKeepsItsSection(t *testing.T) {
	file := filepath.Join(t.TempDir(), "capacity.md")
	written := "\n## Where it ends\n\nBy people.\n\n## And why\n\nBy them, too.\n"
	if err := os.WriteFile(file, []byte(preface+written), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, title := range []string{stages[1].title, stages[0].title, stages[1].title} {
		p, err := openPage(file)
		if err != nil {
			t.Fatal(err)
		}
		if err := p.save(title, "text of "+title+"\n", section{}); err != nil {
			t.Fatal(err)
		}
	}
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	want := preface
	for _, s := range stages[:2] {
		want += "\n## " + s.title + "\n\ntext of " + s.title + "\n"
	}
	if want += written; string(text) != want {
		t.Errorf("the page is\n%s\nwant\n%s", text, want)
	}
}

func TestASectionShowsFiguresBesideGoals(t *testing.T) {
	s := section{head: []string{"n", "cost"}, last: []goal{{"cost of 20", "≤ 5", "4"}}}
	s.row("10", "2")
	s.row("20", "4")
	s.point("cost", 10, 2)
	s.point("cost", 20, 4)
	text := s.text(options{remark: "busy"})
	for _, want := range []string{"; busy.", "| cost of 20 | ≤ 5 | 4 |", "| 10 | 2 |\n| 20 | 4 |", "cost 1.00."} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is not in\n%s", want, text)
		}
	}
}
