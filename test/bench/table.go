package main

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
)

// A table is what one case showed.
type table struct {
	title string
	note  string // what the figures mean, and what was to be reached
	head  []string
	rows  [][]string
}

func (t *table) add(cells ...string) { t.rows = append(t.rows, cells) }

// print writes the table for a terminal.
func (t *table) print(w io.Writer) {
	out := tabwriter.NewWriter(w, 0, 8, 2, ' ', 0)
	_, _ = fmt.Fprintf(out, "\n%s\n", strings.Join(append([]string{t.title}, t.head[1:]...), "\t"))
	for _, row := range t.rows {
		_, _ = fmt.Fprintf(out, "  %s\n", strings.Join(row, "\t"))
	}
	_ = out.Flush()
	if t.note != "" {
		_, _ = fmt.Fprintf(w, "  (%s)\n", t.note)
	}
}

// markdown writes the table for docs.
func (t *table) markdown(w io.Writer) {
	_, _ = fmt.Fprintf(w, "\n### %s\n\n", t.title)
	if t.note != "" {
		_, _ = fmt.Fprintf(w, "%s\n\n", t.note)
	}
	_, _ = fmt.Fprintf(w, "| %s |\n|%s\n", strings.Join(t.head, " | "), strings.Repeat("---|", len(t.head)))
	for _, row := range t.rows {
		_, _ = fmt.Fprintf(w, "| %s |\n", strings.Join(row, " | "))
	}
}
