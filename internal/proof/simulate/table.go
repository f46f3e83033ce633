package simulate

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// A Table is a heading and rows, with text first and figures after it.
type Table struct {
	Title string
	Notes []string // sentences below the title
	Head  []string
	Rows  [][]string
}

// Markdown renders the table so that it reads well as plain text, too.
func (t Table) Markdown() string {
	widths := make([]int, len(t.Head))
	for _, row := range append([][]string{t.Head}, t.Rows...) {
		for i, cell := range row {
			widths[i] = max(widths[i], utf8.RuneCountInString(cell))
		}
	}
	var b strings.Builder
	fmt.Fprintf(&b, "## %s\n\n", t.Title)
	for _, note := range t.Notes {
		fmt.Fprintf(&b, "%s\n", note)
	}
	if len(t.Notes) > 0 {
		b.WriteByte('\n')
	}
	line := func(row []string) {
		for i, cell := range row {
			pad := strings.Repeat(" ", widths[i]-utf8.RuneCountInString(cell))
			if i == 0 {
				fmt.Fprintf(&b, "| %s%s ", cell, pad)
			} else {
				fmt.Fprintf(&b, "| %s%s ", pad, cell)
			}
		}
		b.WriteString("|\n")
	}
	line(t.Head)
	for i, w := range widths {
		dashes := strings.Repeat("-", w)
		if i == 0 {
			fmt.Fprintf(&b, "|:%s-", dashes)
		} else {
			fmt.Fprintf(&b, "|-%s:", dashes)
		}
	}
	b.WriteString("|\n")
	for _, row := range t.Rows {
		line(row)
	}
	return b.String()
}
