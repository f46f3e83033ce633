package main

// A board is a dashboard as it is written here.
type board struct {
	uid, title, description string
	variables               []variable
	rows                    []row
}

// A row has panels of one height that share the width.
type row struct {
	title  string // empty for the first
	panels []chart
}

// A chart is a panel.
type chart struct {
	kind, title, about string
	unit               string
	steps              []step
	queries            []query
}

// A query is in PromQL. Its legend names labels of its result in double braces.
type query struct{ expr, legend string }

// The kinds of panels.
const (
	stat  = "stat"
	lines = "timeseries"
	bars  = "bargauge"
	table = "table"
)

// Units as Grafana names them. Counts of units of a limit have none.
const (
	plain     = "none"
	ratio     = "percentunit"
	perSecond = "reqps"
	calls     = "ops"
	seconds   = "s"
	bytesUnit = "bytes"
	byteRate  = "Bps"
)

const (
	width      = 24 // of a dashboard
	statHeight = 4
	height     = 8
)

var prometheus = &source{Type: "prometheus", UID: "${datasource}"}

// bad is green below a value, and has a color from it on.
func bad(color string, from float64) []step { return []step{{Color: "green"}, {color, &from}} }

// share is yellow and then red as a bound comes nearer.
func share(yellow, red float64) []step {
	return []step{{Color: "green"}, {"yellow", &yellow}, {"red", &red}}
}

// least is red below a value.
func least(green float64) []step { return []step{{Color: "red"}, {"green", &green}} }

var neutral = []step{{Color: "blue"}}

func (b board) grafana() dashboard {
	d := dashboard{
		Title: b.title, UID: b.uid, Description: b.description, Tags: []string{"weir"},
		SchemaVersion: 39, Version: 1, Editable: true, Refresh: "30s", Timezone: "browser",
		Time: map[string]any{"from": "now-1h", "to": "now"},
		Links: []dashboardLink{
			{Type: "dashboards", Title: "Weir", Tags: []string{"weir"}, KeepTime: true, IncludeVars: true},
			{Type: "link", Title: "What the figures mean", Tags: []string{}, URL: "https://github.com/weir-dev/weir/blob/main/docs/operations.md#dashboards", TargetBlank: true},
		},
		Templating:  list[variable]{append([]variable{{Name: "datasource", Label: "Data source", Type: "datasource", Query: "prometheus"}}, b.variables...)},
		Annotations: list[annotation]{annotations()},
	}
	y := 0
	for _, r := range b.rows {
		if r.title != "" {
			d.Panels = append(d.Panels, panel{
				Type: "row", Title: r.title, ID: len(d.Panels) + 1, GridPos: place{H: 1, W: width, Y: y},
				Collapsed: new(bool), Panels: &[]panel{},
			})
			y++
		}
		y = d.add(r.panels, y)
	}
	return d
}

// add places the panels of a row from y on and returns where the next begins.
func (d *dashboard) add(charts []chart, y int) int {
	for i, c := range charts {
		from, to := i*width/len(charts), (i+1)*width/len(charts)
		h := height
		if c.kind == stat {
			h = statHeight
		}
		p := c.panel()
		p.ID, p.GridPos = len(d.Panels)+1, place{H: h, W: to - from, X: from, Y: y}
		d.Panels = append(d.Panels, p)
	}
	last := d.Panels[len(d.Panels)-1].GridPos
	return last.Y + last.H
}

// annotations mark edits and changes of the leader. A mark is where a value differs from
// that of a minute before, which is a step.
func annotations() []annotation {
	const edits = `max by (kind, namespace, name) (weir_generation{namespace=~"$namespace"})`
	return []annotation{
		{
			Name: "Edits", Datasource: *prometheus, Enable: true, IconColor: "blue", Step: "60s",
			Expr:        edits + ` != ` + edits[:len(edits)-1] + ` offset 1m)`,
			TitleFormat: "Edit", TextFormat: "{{kind}} {{namespace}}/{{name}} has a new generation",
		},
		{
			Name: "Leader changes", Datasource: *prometheus, Enable: true, IconColor: "orange", Step: "60s",
			Expr:        `max(weir_coordinator_term) > max(weir_coordinator_term offset 1m)`,
			TitleFormat: "Leader change", TextFormat: "Another controller leads",
		},
	}
}
