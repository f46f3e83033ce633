package v1alpha1_test

import (
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	weirv1alpha1 "github.com/weir-dev/weir/api/v1alpha1"
)

func newPolicy(t *testing.T, spec string) *unstructured.Unstructured {
	t.Helper()
	return newObject(t, "RateLimitPolicy", spec)
}

func newPool(t *testing.T, spec string) *unstructured.Unstructured {
	t.Helper()
	return newObject(t, "ConcurrencyPool", spec)
}

func newBudget(t *testing.T, spec string) *unstructured.Unstructured {
	t.Helper()
	return newObject(t, "FederatedBudget", spec)
}

// newObject returns an object with the spec that a user wrote as YAML. It is not
// read into the Go types, so the API server sees what the user wrote.
func newObject(t *testing.T, kind, spec string) *unstructured.Unstructured {
	t.Helper()
	var fields map[string]any
	if err := yaml.Unmarshal([]byte(spec), &fields); err != nil {
		t.Fatalf("the test's YAML: %v", err)
	}
	object := &unstructured.Unstructured{Object: map[string]any{"spec": fields}}
	object.SetGroupVersionKind(weirv1alpha1.GroupVersion.WithKind(kind))
	object.SetNamespace("default")
	object.SetGenerateName("test-")
	return object
}
