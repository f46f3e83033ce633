package inject

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// minGolden keeps the collection from shrinking unseen.
const minGolden = 130

var testConfig = Config{
	Version:         "v0.0.0-test",
	Image:           "registry.example/weir-sidecar@sha256:0000",
	FleetAddress:    "weir-fleet.weir-system.svc:15030",
	FleetServerName: "weir-fleet.weir-system.svc",
	CABundle:        "-----BEGIN CERTIFICATE-----\n-----END CERTIFICATE-----\n",
	Snapshot:        "H4sI",
	ProbeToken:      "T0KEN",
	KubernetesMinor: 34,
}

// TestGolden injects every testdata/*.in.yaml and compares report and pod with
// the *.out.yaml beside it. An output whose input is gone is an error.
func TestGolden(t *testing.T) {
	inputs := goldenInputs(t)
	if len(inputs) < minGolden {
		t.Errorf("%d golden files, want at least %d", len(inputs), minGolden)
	}
	var want []string
	for _, input := range inputs {
		output := strings.TrimSuffix(input, ".in.yaml") + ".out.yaml"
		want = append(want, output)
		t.Run(filepath.Base(strings.TrimSuffix(input, ".in.yaml")), func(t *testing.T) {
			in := readInput(t, input)
			out, report := Inject(in.pod, in.namespace, in.config)
			compareGolden(t, output, render(t, in.pod, out, report))
		})
	}
	outputs, err := filepath.Glob("testdata/*.out.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for _, output := range outputs {
		if slices.Contains(want, output) {
			continue
		}
		if !*update {
			t.Errorf("%s is stale: its input is gone; remove it with -update", output)
		} else if err := os.Remove(output); err != nil {
			t.Error(err)
		}
	}
}

func goldenInputs(t *testing.T) []string {
	t.Helper()
	inputs, err := filepath.Glob("testdata/*.in.yaml")
	if err != nil {
		t.Fatal(err)
	}
	return inputs
}

// An input is a golden input: documents of YAML for the namespace, the pod and, if
// there is a third, what differs from testConfig.
type input struct {
	namespace NamespaceFacts
	pod       *corev1.Pod
	config    Config
}

func readInput(t *testing.T, path string) input {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	documents := bytes.Split(data, []byte("\n---\n"))
	if len(documents) < 2 {
		t.Fatalf("%s: want a Namespace, a line of ---, and a Pod", path)
	}
	var ns corev1.Namespace
	in := input{pod: &corev1.Pod{}, config: testConfig}
	for i, into := range []any{&ns, in.pod, &in.config}[:len(documents)] {
		if err := yaml.UnmarshalStrict(documents[i], into); err != nil {
			t.Fatalf("%s: document %d: %v", path, i+1, err)
		}
	}
	in.namespace = NamespaceFacts{Labels: ns.Labels, Annotations: ns.Annotations}
	return in
}

// render writes the report, and the pod when it is no longer the input.
func render(t *testing.T, in, out *corev1.Pod, report Report) string {
	t.Helper()
	text := asYAML(t, report)
	if asYAML(t, in) != asYAML(t, out) {
		text += "---\n" + asYAML(t, out)
	}
	return text
}

func compareGolden(t *testing.T, path, got string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o600); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatalf("%v: write it with -update", err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s differs (-want +got); if that is right, write it with -update:\n%s", path, diff)
	}
}

func asYAML(t *testing.T, v any) string {
	t.Helper()
	data, err := yaml.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}
