package main

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"
)

const things = `
spec:
  group: example.com
  names: {kind: Thing, singular: thing, shortNames: [th]}
  versions:
  - name: v1
    schema:
      openAPIV3Schema:
        description: Thing is a thing.
        properties:
          spec:
            description: spec says <what>.
            required: [size]
            x-kubernetes-validations: [{message: "choose a or b", fieldPath: .size}]
            properties:
              size: {type: integer, minimum: 1, maximum: 9, description: "size of\nit"}
              kind: {type: string, enum: [A, B], default: A}
              first: {type: array, maxItems: 3, items: {type: object, properties: {name: {type: string}}}}
              second: {type: object, properties: {name: {type: string}}}
              names: {type: array, items: {type: string, x-kubernetes-validations: [{message: not a name}]}}
          status: {properties: {ok: {type: boolean}}}
`

func TestRenderKind(t *testing.T) {
	var definition apiextensionsv1.CustomResourceDefinition
	if err := yaml.Unmarshal([]byte(things), &definition); err != nil {
		t.Fatal(err)
	}
	want := strings.Join([]string{
		"# Thing", "", "`apiVersion: example.com/v1`, short name `th`. Thing is a thing.",
		"", "## spec", "", `spec says \<what>.`, "", "| field | type | default | |", "|---|---|---|---|",
		"| `first` | [list of object, at most 3](#specfirst) |  |  |",
		"| `kind` | `A`, `B` | `\"A\"` |  |",
		"| `names` | list of string |  |  |",
		"| `second` | [object](#specfirst) |  |  |",
		"| `size` | integer, 1 to 9, required |  | size of it |",
		"", "The API server refuses what breaks one of these rules:", "", "- `size`: choose a or b", "- `names[]`: not a name",
		"", "## spec.first[]", "", "| field | type | default | |", "|---|---|---|---|", "| `name` | string |  |  |",
		"", "## status", "", "| field | type | default | |", "|---|---|---|---|", "| `ok` | boolean |  |  |", "",
	}, "\n")
	if diff := cmp.Diff(want, renderKind(&definition)); diff != "" {
		t.Errorf("page (-want +got):\n%s", diff)
	}
}

// TestEveryFieldIsThere renders the kinds of the repository.
func TestEveryFieldIsThere(t *testing.T) {
	pages, err := render("../..")
	if err != nil || len(pages) != 4 {
		t.Fatalf("%d pages: %v", len(pages), err)
	}
	for page, wants := range map[string][]string{
		"ratelimitpolicy.md": {"## spec.limits[]\n", "| `podSelector` |", "hottestKeys", "burst is read only with algorithm TokenBucket"},
		"concurrencypool.md": {"## spec.selfFence\n", "`Gradient2`"},
		"federatedbudget.md": {"## spec.members[]\n"},
		"labels.md":          {"| `weir.dev/injection` | on a namespace opts its pods in (`enabled`)", "| `config.weir.dev/sidecar-memory-limit` | The sidecar's resources"},
	} {
		for _, want := range wants {
			if !strings.Contains(pages[page], want) {
				t.Errorf("%s lacks %q", page, want)
			}
		}
	}
}
