package v1alpha1_test

import (
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	weirv1alpha1 "github.com/weir-dev/weir/api/v1alpha1"
)

// newPolicy returns a policy with the spec that a user wrote as YAML. It is not
// read into the Go types, so the API server sees what the user wrote.
func newPolicy(t *testing.T, spec string) *unstructured.Unstructured {
	t.Helper()
	var fields map[string]any
	if err := yaml.Unmarshal([]byte(spec), &fields); err != nil {
		t.Fatalf("the test's YAML: %v", err)
	}
	policy := &unstructured.Unstructured{Object: map[string]any{"spec": fields}}
	policy.SetGroupVersionKind(weirv1alpha1.GroupVersion.WithKind("RateLimitPolicy"))
	policy.SetNamespace("default")
	policy.SetGenerateName("policy-")
	return policy
}
