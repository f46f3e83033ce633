package conformance

import (
	"encoding/json"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/prometheus/prometheus/promql/parser"
	"sigs.k8s.io/yaml"
)

// grafana has the variables of a dashboard that are not inside of a string.
var grafana = strings.NewReplacer("$__rate_interval", "1m")

// TestQueries has the parser of Prometheus read every query of config.
func TestQueries(t *testing.T) {
	promql := parser.NewParser(parser.Options{})
	queries := map[string]int{}
	parses := func(where, query string) {
		t.Helper()
		queries[where]++
		if _, err := promql.ParseExpr(grafana.Replace(query)); err != nil {
			t.Errorf("%s: %q: %v", where, query, err)
		}
	}
	for where, fields := range map[string]string{
		"monitoring/rules.yaml":               "expr",
		"autoscaling/prometheus-adapter.yaml": "seriesQuery|metricsQuery",
		"autoscaling/keda.yaml":               "query",
	} {
		var document any
		if err := yaml.Unmarshal(read(t, "../../config/"+where), &document); err != nil {
			t.Fatal(err)
		}
		walk(document, regexp.MustCompile("^("+fields+")$"), func(query string) {
			parses(where, strings.ReplaceAll(query, "<<.LabelMatchers>>", `namespace="shop"`))
		})
	}
	boards, err := filepath.Glob("../../config/monitoring/weir-*.json")
	if err != nil {
		t.Fatal(err)
	}
	values := regexp.MustCompile(`^label_values\((.*), [a-z_]+\)$`)
	for _, path := range boards {
		var document any
		if err := json.Unmarshal(read(t, path), &document); err != nil {
			t.Fatal(err)
		}
		walk(document, regexp.MustCompile("^expr$"), func(query string) { parses(filepath.Base(path), query) })
		walk(document, regexp.MustCompile("^query$"), func(query string) {
			if m := values.FindStringSubmatch(query); m != nil { // the data source is a variable, too
				parses("variables", m[1])
			}
		})
	}
	for where, least := range map[string]int{
		"monitoring/rules.yaml": 20, "autoscaling/prometheus-adapter.yaml": 4, "autoscaling/keda.yaml": 2,
		"weir-platform.json": 30, "weir-team.json": 30, "weir-capacity.json": 30, "variables": 5,
	} {
		if queries[where] < least {
			t.Errorf("%s has %d queries, want %d at least", where, queries[where], least)
		}
	}
}

// walk calls visit with each text that is in a field of one of these names.
func walk(document any, name *regexp.Regexp, visit func(string)) {
	switch node := document.(type) {
	case map[string]any:
		for field, value := range node {
			if text, ok := value.(string); ok && name.MatchString(field) {
				visit(text)
			}
			walk(value, name, visit)
		}
	case []any:
		for _, value := range node {
			walk(value, name, visit)
		}
	}
}
