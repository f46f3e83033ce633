package monitoring

import (
	"strings"
	"testing"

	strict "sigs.k8s.io/yaml"
)

// TestAutoscaling: autoscalers ask for what is exported. The tests of config/autoscaling
// compare KEDA's queries with these.
func TestAutoscaling(t *testing.T) {
	var values struct {
		Rules struct {
			External []struct {
				SeriesQuery  string `json:"seriesQuery"`
				MetricsQuery string `json:"metricsQuery"`
			} `json:"external"`
		} `json:"rules"`
	}
	if err := strict.Unmarshal(read(t, "../autoscaling/prometheus-adapter.yaml"), &values); err != nil {
		t.Fatal(err)
	}
	labels := known(t)
	for _, rule := range values.Rules.External {
		check(t, "a series", rule.SeriesQuery, labels)
		check(t, "a metric", strings.ReplaceAll(rule.MetricsQuery, "<<.LabelMatchers>>", `namespace="shop"`), labels)
	}
	if len(values.Rules.External) == 0 {
		t.Error("there are no rules")
	}
}
