package plugin

import (
	"bufio"
	"errors"
	"io"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer/json"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/yaml"

	"github.com/weir-dev/weir/internal/proof/docs"
)

// TestAManifestComesFromTheStandardInput, as `kubectl apply -f -` reads one.
func TestAManifestComesFromTheStandardInput(t *testing.T) {
	const policy = `{apiVersion: weir.dev/v1alpha1, kind: RateLimitPolicy, metadata: {name: piped},
		spec: {podSelector: {matchLabels: {app: a}}, limits: [{name: all, rates: [{limit: 1, window: 1s}]}]}}`
	m, err := readManifest(t.Context(), "-", strings.NewReader(policy))
	if err != nil || len(m.policies) != 1 || m.policies[0].Name != "piped" {
		t.Errorf("read %+v, error %v", m, err)
	}
	_, _, err = execute(t, "simulate", "-f", "-", "--log", "-")
	if err == nil || !strings.Contains(err.Error(), "name a file for one of them") {
		t.Errorf("error %v of a file and a log from one input", err)
	}
}

// TestDocumentedManifests validates the YAML of every page: objects of Weir as test does,
// without a warning; those of Kubernetes by their types; and all else as YAML. A list of
// requests is of the policies before it.
func TestDocumentedManifests(t *testing.T) {
	pages, err := docs.Pages(filepath.Join("..", ".."))
	if err != nil {
		t.Fatal(err)
	}
	objects, lists := 0, 0
	for _, p := range pages {
		policies := ""
		for _, b := range p.Blocks() {
			switch {
			case b.Language != "yaml":
			case strings.HasPrefix(b.Text, "- request:"):
				if policies == "" { // of a policy that the page does not have
					break
				}
				lists++
				if out, stderr, err := offline(t, "-f", policies, "--requests", fileOf(t, b.Text)); err != nil {
					t.Errorf("%s: %v\n%s%s", p.At(b.Line), err, out, stderr)
				}
			case strings.Contains(b.Text, "apiVersion: weir.dev/"):
				objects++
				policies = fileOf(t, b.Text)
				if _, stderr, err := offline(t, "-f", policies); err != nil || strings.Contains(stderr, "Warning: ") {
					t.Errorf("%s: %v\n%s", p.At(b.Line), err, stderr)
				}
				fallthrough
			default:
				if err := checkDocuments(b.Text); err != nil {
					t.Errorf("%s: %v", p.At(b.Line), err)
				}
			}
		}
	}
	if objects < 12 || lists < 5 {
		t.Errorf("the pages have %d blocks with objects of Weir and %d lists of requests", objects, lists)
	}
}

// checkDocuments decodes each document strictly: as the type that it names, if Kubernetes has
// that, and otherwise as YAML.
func checkDocuments(text string) error {
	strict := json.NewSerializerWithOptions(json.DefaultMetaFactory, scheme.Scheme, scheme.Scheme, json.SerializerOptions{Yaml: true, Strict: true})
	documents := utilyaml.NewYAMLReader(bufio.NewReader(strings.NewReader(text)))
	for {
		document, err := documents.Read()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if _, err := yaml.YAMLToJSONStrict(document); err != nil {
			return err
		}
		_, _, err = strict.Decode(document, nil, nil)
		if err != nil && !runtime.IsNotRegisteredError(err) && !runtime.IsMissingKind(err) {
			return err
		}
	}
}

func TestCheckDocuments(t *testing.T) {
	for text, wrong := range map[string]bool{
		"a: 1\n---\nb: 2\n": false,
		"a: 1\na: 2\n":      true,
		"apiVersion: apps/v1\nkind: Deployment\nspec: {replica: 1}\n":                               true,
		"apiVersion: example.com/v1\nkind: Deployment\nspec: {replica: 1}\n":                        false,
		"apiVersion: v1\nkind: Secret\n---\napiVersion: v1\nkind: Service\nspec: {selectors: {}}\n": true,
	} {
		if err := checkDocuments(text); (err != nil) != wrong {
			t.Errorf("%q: error %v", text, err)
		}
	}
}
