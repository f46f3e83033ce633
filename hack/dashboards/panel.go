package main

// panel returns the chart as Grafana has it, without its place.
func (c chart) panel() panel {
	p := panel{
		Type: c.kind, Title: c.title, Description: c.about, Datasource: prometheus,
		FieldConfig: &fieldConfig{
			Defaults: defaults{
				Unit: c.unit, Color: map[string]any{"mode": "palette-classic"},
				Thresholds: thresholds{Mode: "absolute", Steps: c.steps},
			},
			Overrides: []any{},
		},
	}
	if c.steps == nil {
		p.FieldConfig.Defaults.Thresholds.Steps = []step{{Color: "green"}}
	}
	for i, q := range c.queries {
		p.Targets = append(p.Targets, target{RefID: string(rune('A' + i)), Expr: q.expr, LegendFormat: q.legend, Range: true})
	}
	switch field := &p.FieldConfig.Defaults; c.kind {
	case stat:
		field.Color, field.NoValue = map[string]any{"mode": "thresholds"}, "not known"
		p.Options = map[string]any{
			"colorMode": "value", "graphMode": "area", "textMode": "value",
			"reduceOptions": map[string]any{"calcs": []string{"lastNotNull"}, "fields": "", "values": false},
		}
	case bars:
		field.Color, field.Min = map[string]any{"mode": "thresholds"}, new(0)
		p.Options = map[string]any{
			"displayMode": "basic", "orientation": "horizontal", "showUnfilled": true,
			"reduceOptions": map[string]any{"calcs": []string{"lastNotNull"}, "fields": "", "values": false},
		}
		p.now("")
	case table:
		field.Links = []dataLink{{Title: "Show this namespace", URL: "/d/weir-team?var-namespace=${__data.fields.namespace}&${__url_time_range}"}}
		p.Options = map[string]any{"showHeader": true}
		p.now("table")
		p.Transformations = []transformation{{ID: "organize", Options: map[string]any{
			"excludeByName": map[string]bool{"Time": true, "Value": true},
			"indexByName":   map[string]int{"kind": 0, "namespace": 1, "name": 2, "condition": 3, "status": 4},
		}}}
	default:
		custom := map[string]any{"axisSoftMin": 0}
		if c.steps != nil {
			custom["thresholdsStyle"] = map[string]any{"mode": "dashed"}
		}
		field.Custom = custom
		p.Options = map[string]any{
			"legend":  map[string]any{"displayMode": "list", "placement": "bottom", "showLegend": true},
			"tooltip": map[string]any{"mode": "multi", "sort": "desc"},
		}
	}
	return p
}

// now has the queries ask for the present alone.
func (p *panel) now(format string) {
	for i := range p.Targets {
		p.Targets[i].Instant, p.Targets[i].Range, p.Targets[i].Format = true, false, format
	}
}
