package main

import (
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/weir-dev/weir/internal/testing/plot"
)

// A section is what a stage found.
type section struct {
	limited string // by what the memory of each controller is limited
	head    []string
	rows    [][]string
	last    []goal   // figures at the largest size, with what they should be
	lines   []line   // costs over sizes
	notes   []string // sentences below the table
}

// A goal is a figure beside what it should be.
type goal struct{ figure, want, measured string }

// A line is a cost over sizes.
type line struct {
	cost string
	n, y []float64
}

func (s *section) row(cells ...string) { s.rows = append(s.rows, cells) }

// point adds a cost at a size.
func (s *section) point(cost string, n int, y float64) {
	i := slices.IndexFunc(s.lines, func(l line) bool { return l.cost == cost })
	if i < 0 {
		i = len(s.lines)
		s.lines = append(s.lines, line{cost: cost})
	}
	s.lines[i].n, s.lines[i].y = append(s.lines[i].n, float64(n)), append(s.lines[i].y, y)
}

// exponent fits y = c·n^e by least squares of the logarithms. It is NaN without two sizes
// whose cost is positive.
func (l line) exponent() float64 {
	var x, y []float64
	for i := range l.n {
		if l.y[i] > 0 {
			x, y = append(x, math.Log(l.n[i])), append(y, math.Log(l.y[i]))
		}
	}
	var mx, my, sxx, sxy float64
	for i := range x {
		mx, my = mx+x[i]/float64(len(x)), my+y[i]/float64(len(x))
	}
	for i := range x {
		sxx, sxy = sxx+(x[i]-mx)*(x[i]-mx), sxy+(x[i]-mx)*(y[i]-my)
	}
	return sxy / sxx
}

// text is the section in Markdown.
func (s section) text(o options) string {
	var b strings.Builder
	fmt.Fprintf(&b, "Measured on %s. Each controller has %s.\n\n", machine(o), s.limited)
	table(&b, []string{"figure", "goal on 2 cores", "measured"}, len(s.last), func(i int) []string {
		g := s.last[i]
		return []string{g.figure, g.want, g.measured}
	})
	b.WriteString("\n")
	table(&b, s.head, len(s.rows), func(i int) []string { return s.rows[i] })
	if len(s.lines) > 0 {
		b.WriteString("\nExponents (cost of the whole against the number; the goal is ≤ 1.05):")
		for i, l := range s.lines {
			if i > 0 {
				b.WriteString(",")
			}
			fmt.Fprintf(&b, " %s %.2f", l.cost, l.exponent())
		}
		b.WriteString(".\n")
	}
	for _, n := range s.notes {
		b.WriteString("\n" + n + "\n")
	}
	return b.String()
}

func table(b *strings.Builder, head []string, n int, row func(i int) []string) {
	fmt.Fprintf(b, "| %s |\n|%s\n", strings.Join(head, " | "), strings.Repeat("---|", len(head)))
	for i := range n {
		fmt.Fprintf(b, "| %s |\n", strings.Join(row(i), " | "))
	}
}

// A page is the document of all sections. A section that was not run stays as it is, and so do those
// of no stage, which people write: they follow the others.
type page struct {
	file   string
	text   map[string]string // by title
	others []string          // titles of sections of no stage, in their order
}

func openPage(file string) (*page, error) {
	p := &page{file: file, text: map[string]string{}}
	if file == "" {
		return p, nil
	}
	old, err := os.ReadFile(file)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	for _, part := range strings.Split("\n"+string(old), "\n## ")[1:] {
		title, text, _ := strings.Cut(part, "\n")
		p.text[title] = strings.Trim(text, "\n") + "\n"
		if !slices.ContainsFunc(stages, func(of stage) bool { return of.title == title }) {
			p.others = append(p.others, title)
		}
	}
	return p, nil
}

// save replaces a section and its plot, and writes the page.
func (p *page) save(title, text string, s section) error {
	if p.file == "" {
		return nil
	}
	image := strings.TrimSuffix(p.file, ".md") + "-" + slug(title) + ".svg"
	if panels := s.panels(); len(panels) > 0 {
		if err := os.WriteFile(image, []byte(plot.Draw(panels)), 0o644); err != nil {
			return err
		}
		text += fmt.Sprintf("\n![Costs over sizes](%s)\n", image[strings.LastIndexByte(image, '/')+1:])
	}
	p.text[title] = text
	var b strings.Builder
	b.WriteString(preface)
	for _, of := range stages {
		if text := p.text[of.title]; text != "" {
			b.WriteString("\n## " + of.title + "\n\n" + text)
		}
	}
	for _, title := range p.others {
		b.WriteString("\n## " + title + "\n\n" + p.text[title])
	}
	return os.WriteFile(p.file, []byte(b.String()), 0o644)
}

// panels draws each cost that was had at two sizes.
func (s section) panels() (all []plot.Panel) {
	for _, l := range s.lines {
		if len(l.n) > 1 {
			all = append(all, plot.Panel{Title: l.cost, Axis: s.head[0], Linear: true, Lines: []plot.Line{{Name: "measured", X: l.n, Y: l.y}}})
		}
	}
	return all
}

func mib(v float64) string           { return fmt.Sprintf("%.0f", v) }
func percent(part float64) string    { return fmt.Sprintf("%.1f %%", 100*part) }
func decimal(v float64) string       { return fmt.Sprintf("%.2f", v) }
func seconds(d time.Duration) string { return fmt.Sprintf("%.2f s", d.Seconds()) }
