//go:build e2e

package e2e

import (
	"encoding/json"
	"maps"
	"regexp"
	"slices"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"
)

// A podMonitor is what those of config/monitoring consist of.
type podMonitor struct {
	Metadata metav1.ObjectMeta `json:"metadata"`
	Spec     struct {
		SampleLimit       int                  `json:"sampleLimit"`
		LabelLimit        int                  `json:"labelLimit"`
		NamespaceSelector struct{ Any bool }   `json:"namespaceSelector"`
		Selector          metav1.LabelSelector `json:"selector"`
		Endpoints         []struct {
			Port        string `json:"port"`
			HonorLabels bool   `json:"honorLabels"`
			Interval    string `json:"interval"`
			Relabelings []struct {
				Action       string   `json:"action"`
				SourceLabels []string `json:"sourceLabels"`
				Regex        string   `json:"regex"`
			} `json:"metricRelabelings"`
		} `json:"podMetricsEndpoints"`
	} `json:"spec"`
}

type rule = map[string]any

// scrapes returns the configuration that the Prometheus Operator makes of the PodMonitors of a
// manifest in the namespace of Weir. A field that this does not know fails the spec.
func scrapes(manifest string) (configs []map[string]any) {
	GinkgoHelper()
	for document := range strings.SplitSeq(manifest, "\n---\n") {
		var m podMonitor
		Expect(yaml.UnmarshalStrict([]byte(withoutKind(document)), &m)).To(Succeed())
		Expect(m.Spec.Endpoints).To(HaveLen(1))
		discovery := map[string]any{"role": "pod"}
		if !m.Spec.NamespaceSelector.Any {
			discovery["namespaces"] = map[string]any{"names": []string{system}}
		}
		configs = append(configs, map[string]any{
			"job_name": "podMonitor/" + system + "/" + m.Metadata.Name + "/0", "kubernetes_sd_configs": []any{discovery},
			"scrape_interval": m.Spec.Endpoints[0].Interval, "honor_labels": m.Spec.Endpoints[0].HonorLabels,
			"sample_limit": m.Spec.SampleLimit, "label_limit": m.Spec.LabelLimit,
			"relabel_configs": m.targets(), "metric_relabel_configs": m.series(),
		})
	}
	return configs
}

// withoutKind leaves out what all PodMonitors have.
func withoutKind(document string) string {
	return regexp.MustCompile(`(?m)^(apiVersion|kind): .*\n`).ReplaceAllString(document, "")
}

// targets are the rules that choose pods and ports, and label what they serve.
func (m *podMonitor) targets() []rule {
	var rules []rule
	keep := func(label, values string) {
		name := regexp.MustCompile(`[^a-zA-Z0-9_]`).ReplaceAllString(label, "_")
		rules = append(rules, rule{
			"action": "keep", "source_labels": []string{"__meta_kubernetes_pod_label_" + name, "__meta_kubernetes_pod_labelpresent_" + name},
			"regex": "(" + values + ");true",
		})
	}
	for _, label := range slices.Sorted(maps.Keys(m.Spec.Selector.MatchLabels)) {
		keep(label, m.Spec.Selector.MatchLabels[label])
	}
	for _, e := range m.Spec.Selector.MatchExpressions {
		Expect(e.Operator).To(Equal(metav1.LabelSelectorOpIn))
		keep(e.Key, strings.Join(e.Values, "|"))
	}
	rules = append(rules, rule{
		"action": "keep", "source_labels": []string{"__meta_kubernetes_pod_container_port_name"}, "regex": m.Spec.Endpoints[0].Port,
	}, rule{
		"action": "drop", "source_labels": []string{"__meta_kubernetes_pod_phase"}, "regex": "(Failed|Succeeded)",
	})
	for _, label := range [][2]string{{"namespace", "namespace"}, {"pod_name", "pod"}, {"pod_container_name", "container"}} {
		rules = append(rules, rule{"source_labels": []string{"__meta_kubernetes_" + label[0]}, "target_label": label[1]})
	}
	return append(rules, rule{"target_label": "job", "replacement": system + "/" + m.Metadata.Name},
		rule{"target_label": "endpoint", "replacement": m.Spec.Endpoints[0].Port})
}

// series are the rules for what a pod serves.
func (m *podMonitor) series() []rule {
	var rules []rule
	for _, r := range m.Spec.Endpoints[0].Relabelings {
		converted := rule{"action": r.Action, "regex": r.Regex}
		if len(r.SourceLabels) > 0 {
			converted["source_labels"] = r.SourceLabels
		}
		rules = append(rules, converted)
	}
	return rules
}

// alertRules are those of config/monitoring.
func alertRules() (groups []struct {
	Rules []struct{ Alert string }
}, text string,
) {
	GinkgoHelper()
	var object struct{ Spec json.RawMessage }
	Expect(yaml.Unmarshal([]byte(repositoryFile("config", "monitoring", "rules.yaml")), &object)).To(Succeed())
	Expect(json.Unmarshal(object.Spec, &struct{ Groups any }{&groups})).To(Succeed())
	return groups, string(object.Spec)
}
