package monitoring

import (
	"testing"

	strict "sigs.k8s.io/yaml"
)

// TestEveryAlertIsTried: the examples for promtool, which the fleet's suite runs, have series for which
// each alert fires, and series for which it does not.
func TestEveryAlertIsTried(t *testing.T) {
	var examples struct {
		Tests []struct {
			Cases []struct {
				Alert string `json:"alertname"`
				Fires []any  `json:"exp_alerts"`
			} `json:"alert_rule_test"`
		} `json:"tests"`
	}
	if err := strict.Unmarshal(read(t, "testdata/alerts.yaml"), &examples); err != nil {
		t.Fatal(err)
	}
	fires, silent := map[string]bool{}, map[string]bool{}
	for _, test := range examples.Tests {
		for _, c := range test.Cases {
			if len(c.Fires) > 0 {
				fires[c.Alert] = true
			} else {
				silent[c.Alert] = true
			}
		}
	}
	for _, r := range rules(t) {
		if !fires[r.Alert] || !silent[r.Alert] {
			t.Errorf("%s fires in an example: %t, and is silent in one: %t; add it to testdata/alerts.yaml", r.Alert, fires[r.Alert], silent[r.Alert])
		}
	}
}
