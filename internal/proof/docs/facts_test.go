package docs

import (
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"
)

// A fact is a pattern of code in the text of the pages, and what has to be so of its group.
type fact struct {
	name    string
	pattern *regexp.Regexp
	holds   func(of string) bool
	least   int // how often the pages have it
}

// foreign are fields, flags and keys of others than Weir, each with what has it.
var foreign = map[string]string{
	"spec.os": "a pod", "spec.resources": "a pod", "spec.overhead.cpu": "a pod", "spec.containers[0].resources.limits.cpu": "a pod",
	"spec.containers": "a pod", "spec.initContainers": "a pod", "spec.volumes": "a pod", "status.weir.dev": "the prefix of an annotation",
	"spec.version": "a plugin of krew",
	"server-side":  "kubectl apply", "delete-emptydir-data": "kubectl drain", "type": "kubectl patch", "for": "kubectl wait", "context": "kubectl",
	"manifest":       "kubectl krew",
	"archive":        "kubectl krew",
	"take-ownership": "helm", "set": "helm",
	"admission-control-config-file": "an API server",
	"weir.dev/v1alpha1":             "a version",
	"weir.dev/leader":               "a label of controllers", "weir.dev/store-clock": "an annotation of the lease of controllers",
}

// TestFacts: fields of objects, flags, labels, annotations and values of the chart that the pages
// name exist.
func TestFacts(t *testing.T) {
	flags := regexp.MustCompile(`--([a-z][a-z0-9-]+)`).FindAllStringSubmatch(string(read(t, filepath.Join(root, "docs", "reference", "flags.md"))), -1)
	keys := spansIn(t, "docs/reference/labels.md")
	var values map[string]any
	if err := yaml.Unmarshal(read(t, filepath.Join(root, "charts", "weir", "values.yaml")), &values); err != nil {
		t.Fatal(err)
	}
	kinds := definitions(t)
	anyKind := func(has func(*apiextensionsv1.JSONSchemaProps, []string) bool, path string) bool {
		return slices.ContainsFunc(kinds, func(kind apiextensionsv1.CustomResourceDefinition) bool {
			return has(kind.Spec.Versions[0].Schema.OpenAPIV3Schema, strings.Split(path, "."))
		})
	}
	facts := []fact{
		{"field", regexp.MustCompile(`^((?:spec|status)(?:\.[a-zA-Z]+(?:\[[^\]]*\])?)+)`), func(path string) bool {
			return anyKind(hasField, path)
		}, 50},
		{"flag", regexp.MustCompile(`(?:^| )--([a-z][a-z0-9-]+)`), func(name string) bool {
			return slices.ContainsFunc(flags, func(m []string) bool { return m[1] == name })
		}, 50},
		{"label or annotation", regexp.MustCompile(`(?:^|[^a-z/])((?:config\.|status\.)?weir\.dev/[a-z0-9-]+)`), func(key string) bool { return slices.Contains(keys, key) }, 50},
		{"value of the chart", regexp.MustCompile(`^((?:` + strings.Join(slices.Sorted(maps.Keys(values)), "|") + `)(?:\.[a-zA-Z]+)+)(?:$|\.?[^.a-zA-Z0-9])`), func(path string) bool {
			return hasValue(values, strings.Split(path, ".")) || anyKind(hasFieldBelow, path)
		}, 30},
	}
	for _, f := range facts {
		found := 0
		for _, p := range pages(t) {
			if p.Path == "CHANGELOG.md" {
				continue // is about other versions, too
			}
			for _, s := range p.Spans() {
				for _, m := range f.pattern.FindAllStringSubmatch(s.Text, -1) {
					found++
					if foreign[m[1]] == "" && !f.holds(m[1]) {
						t.Errorf("%s: `%s`: there is no %s %s", p.At(s.Line), s.Text, f.name, m[1])
					}
				}
			}
		}
		if found < f.least {
			t.Errorf("the pages have %d times a %s, want %d or more", found, f.name, f.least)
		}
	}
}

// spansIn returns the codes of a page.
func spansIn(t *testing.T, path string) (texts []string) {
	t.Helper()
	p := Page{Path: path, Text: string(read(t, filepath.Join(root, filepath.FromSlash(path))))}
	for _, s := range p.Spans() {
		texts = append(texts, s.Text)
	}
	return texts
}

// hasField reports whether a schema has a field. An element of a list is written with brackets.
func hasField(schema *apiextensionsv1.JSONSchemaProps, path []string) bool {
	if len(path) == 0 {
		return true
	}
	name, _, element := strings.Cut(path[0], "[")
	below, ok := schema.Properties[name]
	if !ok {
		return schema.AdditionalProperties != nil
	}
	if below.Type != "array" {
		return hasField(&below, path[1:])
	}
	return len(path) == 1 || element && hasField(below.Items.Schema, path[1:])
}

// hasFieldBelow reports whether a schema has a field somewhere, such as hub.endpoint.
func hasFieldBelow(schema *apiextensionsv1.JSONSchemaProps, path []string) bool {
	if _, here := schema.Properties[path[0]]; here && hasField(schema, path) {
		return true // and not any name, as a map has it
	}
	if schema.Type == "array" {
		return hasFieldBelow(schema.Items.Schema, path)
	}
	for _, below := range schema.Properties {
		if hasFieldBelow(&below, path) {
			return true
		}
	}
	return false
}

func hasValue(values map[string]any, path []string) bool {
	value, ok := values[path[0]]
	below, inner := value.(map[string]any)
	return ok && (len(path) == 1 || inner && hasValue(below, path[1:]))
}
