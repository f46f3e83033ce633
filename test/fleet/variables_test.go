//go:build fleet

package fleet

import (
	"encoding/json"
	"path/filepath"
	"regexp"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"sigs.k8s.io/yaml"
)

var labelValues = regexp.MustCompile(`^label_values\((.+), ([a-z_]+)\)$`)

// choices returns what dashboards offer in their variables, each as a query whose series have the
// label that is chosen from.
func choices(namespace string) (all []shown) {
	GinkgoHelper()
	files, err := filepath.Glob(filepath.Join(root, "config", "monitoring", "weir-*.json"))
	Expect(err).NotTo(HaveOccurred())
	for _, file := range files {
		var d struct {
			Title      string
			Templating struct {
				List []struct{ Name, Type, Query string }
			}
		}
		Expect(json.Unmarshal(monitoring(filepath.Base(file)), &d)).To(Succeed())
		for _, v := range d.Templating.List {
			if v.Type != "query" {
				continue
			}
			m := labelValues.FindStringSubmatch(v.Query)
			Expect(m).NotTo(BeNil(), "%s: %s", d.Title, v.Query)
			all = append(all, shown{d.Title, v.Name, strings.ReplaceAll(m[1], "$namespace", namespace), "{{" + m[2] + "}}"})
		}
	}
	return all
}

// discovered returns the queries by which prometheus-adapter finds the series of metrics. Their namespace
// becomes that of the autoscaler. The metrics themselves are those of KEDA's sample.
func discovered() (all []shown) {
	GinkgoHelper()
	var values struct {
		Rules struct {
			External []struct{ SeriesQuery string }
		}
	}
	Expect(yaml.Unmarshal(sample("prometheus-adapter.yaml"), &values)).To(Succeed())
	for _, r := range values.Rules.External {
		all = append(all, shown{"prometheus-adapter", "series", r.SeriesQuery, "{{namespace}}"})
	}
	return all
}
