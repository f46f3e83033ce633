package main

import (
	"errors"
	"io/fs"
	"os"
	"slices"
	"strings"
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
