package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strings"
	"text/tabwriter"
)

const preface = `# Benchmarks

Written by ` + "`make bench`" + `, each section by the machine that it names. Contenders of a
table take turns in one process, so a noisy moment meets all of them; each figure is
the median over the rounds. Only ratios within a table carry over to another machine.
`

// A page is the document of all sections. A section that was not run keeps what an
// earlier run wrote.
type page struct {
	file string
	text map[string]string // by title
}

// open reads the page in a file, if there is one.
func open(file string) (*page, error) {
	p := &page{file: file, text: map[string]string{}}
	old, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return p, nil
	}
	parts := strings.Split("\n"+string(old), "\n## ")
	for _, part := range parts[1:] {
		title, text, _ := strings.Cut(part, "\n")
		p.text[title] = strings.TrimRight(text, "\n") + "\n"
	}
	return p, err
}

// set replaces a section.
func (p *page) set(title, text string) { p.text[title] = text }

// save writes the page. A section whose title is not among those given is left out.
func (p *page) save(titles []string) error {
	var b strings.Builder
	b.WriteString(preface)
	for _, title := range slices.DeleteFunc(titles, func(t string) bool { return p.text[t] == "" }) {
		b.WriteString("\n## " + title + "\n" + p.text[title])
	}
	return os.WriteFile(p.file, []byte(b.String()), 0o644)
}

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
