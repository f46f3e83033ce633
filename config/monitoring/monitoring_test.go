// Package monitoring checks the rules and the dashboards against what the programs
// export.
package monitoring

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/yaml"
	_ "sigs.k8s.io/controller-runtime/pkg/controller" // registers its metrics
	"sigs.k8s.io/controller-runtime/pkg/metrics"
	strict "sigs.k8s.io/yaml"

	"github.com/weir-dev/weir/api/v1alpha1"
	"github.com/weir-dev/weir/internal/controlplane/inject"
	"github.com/weir-dev/weir/internal/sidecar/membudget"
	sidecar "github.com/weir-dev/weir/internal/sidecar/metrics"
)

var descPattern = regexp.MustCompile(`fqName: "([^"]+)".*variableLabels: \{([^}]*)\}`)

// known returns the labels of every metric that is exported, by its name.
func known(t *testing.T) map[string][]string {
	t.Helper()
	ofController, ofSidecars := ofPrograms(t)
	labels := map[string][]string{
		// The API server's, from k8s.io/apiserver/pkg/admission/metrics.
		"apiserver_admission_webhook_rejection_count": {"name", "type", "operation", "error_type", "rejection_code"},
		"apiserver_admission_webhook_fail_open_count": {"name", "type"},
		// Those of a sidecar that listens for Envoy, which the tests of one that does scrape.
		"weir_rls_calls_total": {"result"}, "weir_rls_listening": {""}, "weir_rls_ignored_overrides_total": {""},
		// Prometheus' own, of each scrape.
		"scrape_samples_scraped": {""},
	}
	// Those of controller-runtime and of the Go process, which controllers export, too.
	maps.Copy(labels, described(metrics.Registry.(prometheus.Collector)))
	maps.Copy(labels, ofController)
	maps.Copy(labels, ofSidecars)
	if len(labels["weir_overshoot"]) != 3 || labels["weir_requests_total"] == nil || labels["weir_injections_total"] == nil {
		t.Fatalf("the registries hold %d metrics and not those one knows", len(labels))
	}
	return labels
}

// ofPrograms returns what the controller exports, which a test that runs one proves, and
// what sidecars do.
func ofPrograms(t *testing.T) (ofController, ofSidecars map[string][]string) {
	t.Helper()
	ofController = make(map[string][]string)
	for line := range strings.Lines(string(read(t, "controller-metrics.txt"))) {
		name, labels, _ := strings.Cut(strings.TrimSpace(line), " ")
		ofController[name] = strings.Split(labels, ",")
	}
	registry := sidecar.New(nil).Registry
	registry.MustRegister(sidecar.OfMemory(membudget.New(1))) // as the sidecar does, which its own tests scrape
	return ofController, described(registry)
}

func described(registry prometheus.Collector) map[string][]string {
	labels := make(map[string][]string)
	descs := make(chan *prometheus.Desc)
	go func() {
		defer close(descs)
		registry.Describe(descs)
	}()
	for d := range descs {
		if m := descPattern.FindStringSubmatch(d.String()); m != nil {
			labels[m[1]] = strings.Split(m[2], ",")
		}
	}
	return labels
}

// A rule is an alert.
type rule struct {
	Alert       string            `json:"alert"`
	Expr        string            `json:"expr"`
	For         string            `json:"for"`
	Labels      map[string]string `json:"labels"`
	Annotations map[string]string `json:"annotations"`
}

type object struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Metadata   struct {
		Name string `json:"name"`
	} `json:"metadata"`
	Spec json.RawMessage `json:"spec"`
}

func read(t *testing.T, path string) []byte {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func objects(t *testing.T, path string) []object {
	t.Helper()
	documents := yaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(read(t, path))))
	var all []object
	for {
		document, err := documents.Read()
		if errors.Is(err, io.EOF) {
			return all
		}
		var o object
		if err := errors.Join(err, strict.UnmarshalStrict(document, &o)); err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		all = append(all, o)
	}
}

func rules(t *testing.T) []rule {
	t.Helper()
	var spec struct {
		Groups []struct {
			Name  string `json:"name"`
			Rules []rule `json:"rules"`
		} `json:"groups"`
	}
	all := objects(t, "rules.yaml")
	if len(all) != 1 || all[0].APIVersion != "monitoring.coreos.com/v1" || all[0].Kind != "PrometheusRule" {
		t.Fatalf("objects %v, want one PrometheusRule", all)
	}
	if err := strict.UnmarshalStrict(all[0].Spec, &spec); err != nil {
		t.Fatal(err)
	}
	var out []rule
	for _, g := range spec.Groups {
		out = append(out, g.Rules...)
	}
	return out
}

var (
	metricPattern  = regexp.MustCompile(`\b((?:weir|apiserver|controller_runtime|workqueue|rest_client|process|go|scrape)_[a-z0-9_]+)(?:\{([^}]*)\})?`)
	matcherPattern = regexp.MustCompile(`([a-z_]+)\s*(?:=~|!~|!=|=)\s*"`)
	groupPattern   = regexp.MustCompile(`\b(?:by|on) \(([^)]*)\)`)
	suffixes       = []string{"_bucket", "_sum", "_count"}
)

// check finds metrics and labels that nobody exports, and brackets without a partner.
// Prometheus itself reads the queries in test/conformance.
func check(t *testing.T, where, expr string, labels map[string][]string) {
	t.Helper()
	found := metricPattern.FindAllStringSubmatch(expr, -1)
	all := append([]string{"le"}, ofTarget...)
	if len(found) == 0 {
		t.Errorf("%s: %q asks for nothing of ours", where, expr)
	}
	for _, m := range found {
		name := m[1]
		for _, s := range suffixes {
			if base := strings.TrimSuffix(name, s); labels[base] != nil {
				name = base
			}
		}
		if labels[name] == nil {
			t.Errorf("%s: nobody exports %s", where, name)
			continue
		}
		for _, matcher := range matcherPattern.FindAllStringSubmatch(m[2], -1) {
			if !slices.Contains(labels[name], matcher[1]) && !slices.Contains(ofTarget, matcher[1]) {
				t.Errorf("%s: %s has no label %s", where, name, matcher[1])
			}
		}
		all = append(all, labels[name]...)
	}
	for _, group := range groupPattern.FindAllStringSubmatch(expr, -1) {
		for label := range strings.SplitSeq(group[1], ", ") {
			if !slices.Contains(all, label) {
				t.Errorf("%s: no metric of %q has a label %s", where, expr, label)
			}
		}
	}
	bare := regexp.MustCompile(`"[^"]*"`).ReplaceAllString(expr, "")
	if strings.Contains(bare, `"`) {
		t.Errorf("%s: %q has a quote too many", where, expr)
	}
	for _, pair := range []string{"()", "{}", "[]"} {
		if strings.Count(bare, pair[:1]) != strings.Count(bare, pair[1:]) {
			t.Errorf("%s: %q has a %s without its partner", where, expr, pair)
		}
	}
}

// TestRules: every alert asks for what is exported, and says what to do.
func TestRules(t *testing.T) {
	labels := known(t)
	names := map[string]bool{}
	for _, r := range rules(t) {
		check(t, r.Alert, r.Expr, labels)
		if names[r.Alert] {
			t.Errorf("%s is there twice", r.Alert)
		}
		names[r.Alert] = true
		if s := r.Labels["severity"]; s != "warning" && s != "critical" {
			t.Errorf("%s: severity %q", r.Alert, s)
		}
		if text := r.Annotations["summary"]; text == "" || strings.Contains(text, ". ") || strings.HasSuffix(text, ".") {
			t.Errorf("%s: the summary %q is not one sentence without a period, which says what is wrong", r.Alert, text)
		}
		if text := r.Annotations["description"]; !strings.HasSuffix(text, ".") {
			t.Errorf("%s: the description %q does not say what to do", r.Alert, text)
		}
		guide := string(read(t, "../../docs/operations.md"))
		if _, of, _ := strings.Cut(guide, "\n## Alerts\n"); !strings.Contains(of, r.Alert) || !strings.HasSuffix(r.Annotations["runbook_url"], "/docs/operations.md#alerts") {
			t.Errorf("%s: its runbook is %q, want the section Alerts of docs/operations.md, which speaks of it", r.Alert, r.Annotations["runbook_url"])
		}
	}
	for _, must := range []string{
		"WeirOvershootBeyondBound", "WeirNotWithinBound", "WeirStoreUnreachable", "WeirNotProgrammed", "WeirPodsUninjected",
		"WeirCertificateNearExpiry", "WeirWebhooksUnreachable", "WeirNoLeader", "WeirPoolSaturated", "WeirSidecarPanics",
	} {
		if !names[must] {
			t.Errorf("there is no alert %s", must)
		}
	}
}

// TestMetricsAreExplained: readers find every metric in the guide.
func TestMetricsAreExplained(t *testing.T) {
	guide := string(read(t, "../../docs/operations.md"))
	for name := range known(t) {
		if explained := regexp.MustCompile("`" + name + "[`{]"); strings.HasPrefix(name, "weir_") && !explained.MatchString(guide) {
			t.Errorf("docs/operations.md does not speak of %s", name)
		}
	}
}

// constant are labels with one value for the life of a process, which descriptions of metrics leave out.
var constant = map[string][]string{
	"weir_build_info": {"version", "goversion"}, "weir_certificate_expiry_timestamp_seconds": {"secret"},
}

// TestTheGuideSpeaksOfWhatIsExported: nobody looks for a metric or a label that is not there.
func TestTheGuideSpeaksOfWhatIsExported(t *testing.T) {
	labels := known(t)
	pages, err := filepath.Glob("../../docs/*.md")
	if err != nil || len(pages) < 10 {
		t.Fatalf("pages %v, %v", pages, err)
	}
	for _, page := range pages {
		for _, m := range regexp.MustCompile("`(weir_[a-z0-9_]+)[`{](?:([^}`]+)}`)?").FindAllStringSubmatch(string(read(t, page)), -1) {
			if labels[m[1]] == nil {
				t.Errorf("%s speaks of %s, which nobody exports", filepath.Base(page), m[1])
			}
			has := slices.Concat(labels[m[1]], constant[m[1]])
			for label := range strings.SplitSeq(m[2], ",") {
				if name, _, _ := strings.Cut(label, "="); name != "" && !slices.Contains(has, name) {
					t.Errorf("%s speaks of %s of %s, which has the labels %q", filepath.Base(page), name, m[1], has)
				}
			}
		}
	}
}

// A podMonitor is what is used of one.
type podMonitor struct {
	NamespaceSelector struct {
		Any bool `json:"any"`
	} `json:"namespaceSelector"`
	Selector struct {
		MatchLabels      map[string]string                 `json:"matchLabels"`
		MatchExpressions []metav1.LabelSelectorRequirement `json:"matchExpressions"`
	} `json:"selector"`
	PodMetricsEndpoints []endpoint `json:"podMetricsEndpoints"`
	SampleLimit         int        `json:"sampleLimit"`
	LabelLimit          int        `json:"labelLimit"`
}

type endpoint struct {
	Port              string       `json:"port"`
	HonorLabels       bool         `json:"honorLabels"`
	Interval          string       `json:"interval"`
	MetricRelabelings []relabeling `json:"metricRelabelings"`
}

type relabeling struct {
	Action       string   `json:"action"`
	SourceLabels []string `json:"sourceLabels"`
	Regex        string   `json:"regex"`
}

// monitor returns a PodMonitor, which has one endpoint.
func monitor(t *testing.T, name string) podMonitor {
	t.Helper()
	for _, o := range objects(t, "podmonitors.yaml") {
		var m podMonitor
		if err := strict.UnmarshalStrict(o.Spec, &m); err != nil || o.Kind != "PodMonitor" || len(m.PodMetricsEndpoints) != 1 {
			t.Fatalf("%s: %v, %+v", o.Metadata.Name, err, m)
		}
		if o.Metadata.Name == name {
			return m
		}
	}
	t.Fatalf("there is no PodMonitor %s", name)
	return podMonitor{}
}

// TestTheControllerIsMonitored: its monitor names a port and labels that the manifest
// has, and lets an object's namespace win over the pod's.
func TestTheControllerIsMonitored(t *testing.T) {
	deployment, m := string(read(t, "../manager/deployment.yaml")), monitor(t, "weir-controller")
	endpoint := m.PodMetricsEndpoints[0]
	if !endpoint.HonorLabels || m.NamespaceSelector.Any {
		t.Errorf("the label namespace is the pod's, or that of a pod of anybody: %+v", m)
	}
	if !strings.Contains(deployment, "name: "+endpoint.Port+",") {
		t.Errorf("the controller has no port %s", endpoint.Port)
	}
	for key, value := range m.Selector.MatchLabels {
		if !strings.Contains(deployment, key+": "+value) {
			t.Errorf("the controller has no label %s=%s", key, value)
		}
	}
	for _, r := range m.Selector.MatchExpressions {
		if r.Operator != metav1.LabelSelectorOpIn || !slices.Equal(r.Values, []string{"controller", "webhook"}) {
			t.Errorf("not both components are read: %v", r)
		}
		for _, value := range r.Values {
			if !strings.Contains(deployment, r.Key+": "+value) {
				t.Errorf("no component has the label %s=%s", r.Key, value)
			}
		}
	}
}

// TestSidecarsReportOnThemselvesAlone: they are found by the label that the injector writes,
// all that they export is taken, and a pod that bears the label without being one can
// speak neither for another namespace nor for the controller.
func TestSidecarsReportOnThemselvesAlone(t *testing.T) {
	m := monitor(t, "weir-sidecars")
	endpoint := m.PodMetricsEndpoints[0]
	if endpoint.Port != inject.AdminPortName || m.Selector.MatchLabels[v1alpha1.EnforcerLabel] != "true" || !m.NamespaceSelector.Any {
		t.Errorf("injected pods are not found: %+v", m)
	}
	if endpoint.HonorLabels {
		t.Error("a pod may claim any namespace")
	}
	keep, drop := endpoint.MetricRelabelings[0], endpoint.MetricRelabelings[1]
	if keep.Action != "keep" || !slices.Equal(keep.SourceLabels, []string{"__name__"}) || drop.Action != "labeldrop" {
		t.Fatalf("rules %+v", endpoint.MetricRelabelings)
	}
	kept := regexp.MustCompile("^(?:" + keep.Regex + ")$")
	ofController, ofSidecars := ofPrograms(t)
	for name := range ofSidecars {
		for _, suffix := range append(suffixes, "") {
			if !kept.MatchString(name + suffix) {
				t.Errorf("%s is not taken", name+suffix)
			}
		}
	}
	for name := range ofController {
		if ofSidecars[name] == nil && strings.HasPrefix(name, "weir_") && kept.MatchString(name) {
			t.Errorf("%s is taken from sidecars, which do not have it", name)
		}
	}
}
