package monitoring

import (
	"encoding/json"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// A dashboard is what is used of one.
type dashboard struct {
	UID        string
	Title      string
	Templating struct {
		List []struct{ Name, Type, Query string }
	}
	Annotations struct {
		List []struct{ Name, Expr string }
	}
	Panels []panel
}

type panel struct {
	ID          int
	Title       string
	Description string
	Type        string
	GridPos     struct{ X, Y, W, H int }
	Targets     []struct{ Expr, LegendFormat string }
}

func dashboards(t *testing.T) []dashboard {
	t.Helper()
	files, err := filepath.Glob("weir-*.json")
	if err != nil || len(files) != 3 {
		t.Fatalf("dashboards %v, %v", files, err)
	}
	var all []dashboard
	for _, file := range files {
		var d dashboard
		if err := json.Unmarshal(read(t, file), &d); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		if d.UID+".json" != file {
			t.Errorf("%s has the uid %s", file, d.UID)
		}
		if !strings.Contains(string(read(t, "kustomization.yaml")), "- "+file+"\n") {
			t.Errorf("kustomization.yaml does not install %s", file)
		}
		all = append(all, d)
	}
	return all
}

// builtin are variables of Grafana.
var builtin = []string{"__rate_interval", "datasource"}

var (
	variablePattern = regexp.MustCompile(`\$([a-z_]+)`)
	valuesPattern   = regexp.MustCompile(`^label_values\((.+), ([a-z_]+)\)$`)
)

// TestDashboards: every query asks for what is exported, by variables that the dashboard has.
func TestDashboards(t *testing.T) {
	labels := known(t)
	for _, d := range dashboards(t) {
		variables := slices.Clone(builtin)
		asks := func(where, expr string) {
			t.Helper()
			where = d.Title + ": " + where
			check(t, where, expr, labels)
			for _, m := range variablePattern.FindAllStringSubmatch(expr, -1) {
				if !slices.Contains(variables, m[1]) {
					t.Errorf("%s: %q uses the variable %s, which the dashboard does not have", where, expr, m[1])
				}
			}
		}
		for _, v := range d.Templating.List {
			if v.Type == "query" {
				m := valuesPattern.FindStringSubmatch(v.Query)
				if m == nil {
					t.Errorf("%s: the variable %s has the query %q", d.Title, v.Name, v.Query)
					continue
				}
				asks(v.Name, m[1]+" by ("+m[2]+")")
			}
			variables = append(variables, v.Name)
		}
		if len(d.Annotations.List) != 2 {
			t.Errorf("%s: annotations %v, want edits and changes of the leader", d.Title, d.Annotations.List)
		}
		for _, a := range d.Annotations.List {
			asks(a.Name, a.Expr)
		}
		for _, p := range d.Panels {
			if p.Type != "row" && (len(p.Targets) == 0 || !strings.HasSuffix(p.Description, ".")) {
				t.Errorf("%s: %s shows nothing, or does not say what", d.Title, p.Title)
			}
			for _, target := range p.Targets {
				asks(p.Title, target.Expr)
				if len(p.Targets) > 1 && target.LegendFormat == "" {
					t.Errorf("%s: %s has several queries, and no legend for %q", d.Title, p.Title, target.Expr)
				}
			}
		}
		if len(d.Panels) < 20 {
			t.Errorf("%s: only %d panels", d.Title, len(d.Panels))
		}
	}
}

// TestPanelsDoNotOverlap: each has an id of its own, and none lies over another or beyond the
// width of a dashboard.
func TestPanelsDoNotOverlap(t *testing.T) {
	for _, d := range dashboards(t) {
		ids, cells := map[int]bool{}, map[[2]int]string{}
		for _, p := range d.Panels {
			if ids[p.ID] {
				t.Errorf("%s: %s: id %d is taken", d.Title, p.Title, p.ID)
			}
			ids[p.ID] = true
			if p.GridPos.W <= 0 || p.GridPos.H <= 0 || p.GridPos.X+p.GridPos.W > 24 {
				t.Errorf("%s: %s is at %+v", d.Title, p.Title, p.GridPos)
			}
			for x := p.GridPos.X; x < p.GridPos.X+p.GridPos.W; x++ {
				for y := p.GridPos.Y; y < p.GridPos.Y+p.GridPos.H; y++ {
					if other := cells[[2]int{x, y}]; other != "" {
						t.Fatalf("%s: %s lies over %s", d.Title, p.Title, other)
					}
					cells[[2]int{x, y}] = p.Title
				}
			}
		}
	}
}
