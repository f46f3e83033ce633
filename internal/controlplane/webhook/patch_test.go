package webhook

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	jsonpatch "github.com/evanphx/json-patch/v5"
	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"github.com/weir-dev/weir/internal/controlplane/inject"
)

// TestThePatchMakesTheInjectedPod of every pod that package inject is tested with, in every
// capture and form.
func TestThePatchMakesTheInjectedPod(t *testing.T) {
	inputs, err := filepath.Glob("../inject/testdata/*.in.yaml")
	if err != nil || len(inputs) < 100 {
		t.Fatalf("%d inputs (%v), want those of package inject", len(inputs), err)
	}
	for _, input := range inputs {
		data, err := os.ReadFile(input)
		if err != nil {
			t.Fatal(err)
		}
		var ns corev1.Namespace
		pod := &corev1.Pod{}
		for i, into := range []any{&ns, pod} {
			if err := yaml.Unmarshal(bytes.Split(data, []byte("\n---\n"))[i], into); err != nil {
				t.Fatalf("%s: %v", input, err)
			}
		}
		facts := inject.NamespaceFacts{Labels: ns.Labels, Annotations: ns.Annotations}
		for _, capture := range inject.Captures {
			for _, minor := range []int{28, 29, 34} {
				cfg := inject.Config{Image: "i", Capture: capture, KubernetesMinor: minor, ProbeToken: "T", ImagePullSecrets: []string{"a", "b"}}
				out, _ := inject.Inject(pod, facts, cfg)
				requirePatches(t, input, pod, out)
			}
		}
	}
}

// requirePatches applies the patch as the API server does.
func requirePatches(t *testing.T, what string, before, after *corev1.Pod) {
	t.Helper()
	operations := patch(before, after)
	document := encode(t, before)
	if len(operations) > 0 {
		decoded, err := jsonpatch.DecodePatch(encode(t, operations))
		if err != nil {
			t.Fatal(err)
		}
		if document, err = decoded.Apply(document); err != nil {
			t.Fatalf("%s: %v", what, err)
		}
	}
	var got, want any
	for text, into := range map[*any][]byte{&got: document, &want: encode(t, after)} {
		if err := json.Unmarshal(into, text); err != nil {
			t.Fatal(err)
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s: the patch makes another pod (-want +got):\n%s", what, diff)
	}
}

// TestPatchesOfAnyDifference: what injection changes today is a part of it.
func TestPatchesOfAnyDifference(t *testing.T) {
	for name, texts := range map[string][2]string{
		"nothing":                 {`{}`, `{}`},
		"a key with signs":        {`{"metadata":{"labels":{"a":"1","b":"1"}}}`, `{"metadata":{"labels":{"weir.dev/x~y":"1","b":"2"}}}`},
		"the last key":            {`{"metadata":{"labels":{"a":"1"}}}`, `{"metadata":{}}`},
		"an optional text":        {`{"spec":{"hostname":"a","nodeName":"b"}}`, `{"spec":{"nodeName":"c","subdomain":"d"}}`},
		"a pointer":               {`{"spec":{"os":{"name":"linux"},"hostUsers":true}}`, `{"spec":{"hostUsers":false,"activeDeadlineSeconds":3}}`},
		"a shorter list":          {`{"spec":{"containers":[{"name":"a"},{"name":"b"}]}}`, `{"spec":{"containers":[{"name":"b","image":"x"}]}}`},
		"a list that goes":        {`{"spec":{"volumes":[{"name":"a"}],"containers":[{"name":"a"}]}}`, `{"spec":{"containers":null}}`},
		"two of a name":           {`{"spec":{"volumes":[{"name":"a"},{"name":"a"}]}}`, `{"spec":{"volumes":[{"name":"a"},{"name":"a"},{"name":"a","emptyDir":{}},{"name":"b"}]}}`},
		"texts":                   {`{"spec":{"containers":[{"name":"a","args":["a","b"]}]}}`, `{"spec":{"containers":[{"name":"a","args":["a","c","d"]}]}}`},
		"a handler of a probe":    {`{"spec":{"containers":[{"name":"a","livenessProbe":{"tcpSocket":{"port":1}}}]}}`, `{"spec":{"containers":[{"name":"a","livenessProbe":{"httpGet":{"port":"x"}}}]}}`},
		"a quantity":              {`{"spec":{"containers":[{"name":"a","resources":{"limits":{"cpu":"1"}}}]}}`, `{"spec":{"containers":[{"name":"a","resources":{"limits":{"cpu":"2"}}}]}}`},
		"an element in the midst": {`{"spec":{"initContainers":[{"name":"a"},{"name":"c","image":"x"}]}}`, `{"spec":{"initContainers":[{"name":"a"},{"name":"b"},{"name":"c","image":"y"}]}}`},
	} {
		var pods [2]corev1.Pod
		for i := range pods {
			if err := json.Unmarshal([]byte(texts[i]), &pods[i]); err != nil {
				t.Fatal(err)
			}
		}
		requirePatches(t, name, &pods[0], &pods[1])
		requirePatches(t, name+", backwards", &pods[1], &pods[0])
	}
}
