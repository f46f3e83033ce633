package simulate

import (
	"encoding/xml"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/weir-dev/weir/internal/testing/plot"
)

// TestReport measures with little effort: every table is there and no promise broken.
func TestReport(t *testing.T) {
	var last, of int
	r := Measure(Effort{Windows: 2, Seeds: 1}, func(done, total int) { last, of = done, total })
	if last != of || of == 0 {
		t.Errorf("progress ended with %d of %d", last, of)
	}
	if r.Overshoot > 0 {
		t.Errorf("admitted %d beyond a promise", r.Overshoot)
	}
	for _, table := range r.Tables {
		for _, row := range table.Rows {
			if len(row) != len(table.Head) {
				t.Errorf("%s: a row of %d cells below a head of %d", table.Title, len(row), len(table.Head))
			}
		}
	}
	if got := strings.Count(r.Markdown(), "\n## ") + 1; got != len(r.Tables) || got < 8 {
		t.Errorf("%d sections for %d tables", got, len(r.Tables))
	}
	d := xml.NewDecoder(strings.NewReader(plot.Draw(r.Panels)))
	lines := 0
	for {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatalf("the plot is not XML: %v", err)
		}
		if e, ok := token.(xml.StartElement); ok && e.Name.Local == "polyline" {
			lines++
		}
	}
	if want := 4 + 4 + 5; lines != want {
		t.Errorf("%d lines in the plot, want %d", lines, want)
	}
}
