// Package plot draws the charts of pages that programs write.
package plot

import (
	"encoding/xml"
	"fmt"
	"math"
	"slices"
	"strings"
)

// A Panel is one chart: lines over a common axis.
type Panel struct {
	Title string
	Axis  string // what the horizontal axis says
	Lines []Line
	// Linear makes the horizontal axis linear; it is logarithmic otherwise.
	Linear bool
	// Log makes the vertical axis logarithmic; it then begins at 1.
	Log bool
	// Top is where the vertical axis ends; 0 means at the largest value.
	Top float64
}

// A Line is one model's values. Lines of one name have one colour in all panels.
type Line struct {
	Name string
	X, Y []float64
}

// The measures of a plot, in pixels.
const (
	panelWidth, panelHeight = 380, 260
	left, right, top, below = 52, 12, 34, 40
	legendRow               = 18
)

// colours are distinguished by most people who see few colours (Okabe and Ito 2008).
var colours = []string{"#0072b2", "#009e73", "#56b4e9", "#d55e00", "#cc79a7", "#e69f00", "#666666"}

// Draw draws panels side by side as an SVG image.
func Draw(panels []Panel) string {
	var names []string
	colourOf := map[string]string{}
	for _, p := range panels {
		for _, l := range p.Lines {
			if colourOf[l.Name] == "" {
				colourOf[l.Name] = colours[len(names)%len(colours)]
				names = append(names, l.Name)
			}
		}
	}
	width := panelWidth * len(panels)
	perRow := max(1, width/260)
	rows := (len(names) + perRow - 1) / perRow
	d := &drawing{}
	d.addf(`<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" font-family="sans-serif" font-size="11" fill="#222">`,
		width, panelHeight+rows*legendRow+8)
	d.addf(`<rect width="100%%" height="100%%" fill="#fff"/>`)
	for i, p := range panels {
		d.addf(`<g transform="translate(%d,0)">`, i*panelWidth)
		d.panel(p, colourOf)
		d.addf(`</g>`)
	}
	for i, name := range names {
		x, y := left+260*(i%perRow), panelHeight+legendRow*(i/perRow)+8
		d.addf(`<line x1="%d" y1="%d" x2="%d" y2="%d" stroke="%s" stroke-width="2"/>`, x, y, x+22, y, colourOf[name])
		d.text(x+28, y+4, "start", name)
	}
	d.addf(`</svg>`)
	return d.String()
}

// A drawing is the text of an image.
type drawing struct{ strings.Builder }

func (d *drawing) addf(format string, args ...any) {
	fmt.Fprintf(d, format, args...)
	d.WriteByte('\n')
}

func (d *drawing) text(x, y int, anchor, text string) {
	fmt.Fprintf(d, `<text x="%d" y="%d" text-anchor="%s">`, x, y, anchor)
	_ = xml.EscapeText(d, []byte(text)) // a Builder does not fail
	d.addf(`</text>`)
}

func (d *drawing) panel(p Panel, colourOf map[string]string) {
	x, y := p.axes()
	fmt.Fprint(d, `<g font-weight="bold">`)
	d.text(left, top-14, "start", p.Title)
	d.addf(`</g>`)
	for _, tick := range y.ticks() {
		at := y.place(tick)
		d.addf(`<line x1="%d" y1="%.1f" x2="%d" y2="%.1f" stroke="#ddd"/>`, left, at, panelWidth-right, at)
		d.text(left-6, int(at)+4, "end", label(tick))
	}
	for _, n := range p.Lines[0].X {
		at := x.place(n)
		d.addf(`<line x1="%.1f" y1="%d" x2="%.1f" y2="%d" stroke="#999"/>`, at, panelHeight-below, at, panelHeight-below+4)
		d.text(int(at), panelHeight-below+16, "middle", label(n))
	}
	d.text((left+panelWidth-right)/2, panelHeight-8, "middle", p.Axis)
	for _, l := range slices.Backward(p.Lines) { // the first is on top
		var points, dots strings.Builder
		for i := range l.X {
			px, py := x.place(l.X[i]), y.place(l.Y[i])
			fmt.Fprintf(&points, "%.1f,%.1f ", px, py)
			fmt.Fprintf(&dots, `<circle cx="%.1f" cy="%.1f" r="2.5" fill="%s"/>`, px, py, colourOf[l.Name])
		}
		d.addf(`<polyline points="%s" fill="none" stroke="%s" stroke-width="1.8"/>%s`,
			strings.TrimSpace(points.String()), colourOf[l.Name], dots.String())
	}
}

// An axis places values between two pixels.
type axis struct {
	from, to float64 // values
	at, end  float64 // pixels
	log      bool
}

func (p Panel) axes() (x, y axis) {
	highest := 1.0
	for _, l := range p.Lines {
		for _, v := range l.Y {
			highest = max(highest, v)
		}
	}
	if p.Top > 0 {
		highest = p.Top
	}
	xs := p.Lines[0].X
	x = axis{from: xs[0], to: xs[len(xs)-1], at: left + 8, end: panelWidth - right - 8, log: !p.Linear}
	y = axis{to: highest, at: panelHeight - below, end: top, log: p.Log}
	if p.Log {
		y.from = 1
	}
	return x, y
}

func (a axis) place(v float64) float64 {
	from, to := a.from, a.to
	if a.log {
		v, from, to = math.Log(max(v, 1)), math.Log(from), math.Log(to)
	}
	return a.at + (v-from)/(to-from)*(a.end-a.at)
}

// ticks returns about five round values.
func (a axis) ticks() []float64 {
	var list []float64
	if a.log {
		for v := a.from; v <= a.to; v *= 10 {
			list = append(list, v)
		}
		return list
	}
	step := math.Pow(10, math.Floor(math.Log10(a.to-a.from)))
	for _, part := range []float64{0.2, 0.5, 1, 2} {
		if (a.to-a.from)/(step*part) <= 6 {
			step *= part
			break
		}
	}
	for v := a.from; v <= a.to+step/1000; v += step {
		list = append(list, v)
	}
	return list
}

func label(v float64) string {
	return strings.TrimSuffix(strings.TrimRight(fmt.Sprintf("%.2f", v), "0"), ".")
}
