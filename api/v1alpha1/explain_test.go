package v1alpha1_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"
)

// explained is how many columns kubectl explain has for a description. It keeps its line ends,
// and wraps longer lines.
const explained = 76

// foreign are the fields, by the ends of their paths, whose types are Kubernetes' own.
var foreign = []string{".apiVersion", ".kind", "odSelector", ".conditions"}

// TestKubectlExplainWrapsNoLine of a description that is ours.
func TestKubectlExplainWrapsNoLine(t *testing.T) {
	files, err := filepath.Glob("../../config/crd/bases/*.yaml")
	if err != nil || len(files) != 3 {
		t.Fatalf("there are %d files, %v", len(files), err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var crd apiextensionsv1.CustomResourceDefinition
		if err := yaml.UnmarshalStrict(text, &crd); err != nil {
			t.Fatal(err)
		}
		for _, version := range crd.Spec.Versions {
			explain(t, crd.Spec.Names.Kind, version.Schema.OpenAPIV3Schema)
		}
	}
}

func explain(t *testing.T, path string, s *apiextensionsv1.JSONSchemaProps) {
	t.Helper()
	if slices.ContainsFunc(foreign, func(end string) bool { return strings.HasSuffix(path, end) }) {
		return
	}
	for line := range strings.Lines(s.Description) {
		if n := len([]rune(strings.TrimSpace(line))); n > explained {
			t.Errorf("%s: a line of the description has %d characters, want at most %d: %s", path, n, explained, line)
		}
	}
	for name, property := range s.Properties {
		explain(t, path+"."+name, &property)
	}
	if s.Items != nil && s.Items.Schema != nil {
		explain(t, path+"[]", s.Items.Schema)
	}
	if s.AdditionalProperties != nil && s.AdditionalProperties.Schema != nil {
		explain(t, path+"{}", s.AdditionalProperties.Schema)
	}
}
