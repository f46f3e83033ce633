package translate_test

import (
	"os"
	"path/filepath"
	"sync"
	"testing"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	"sigs.k8s.io/yaml"

	"github.com/weir-dev/weir/api/v1alpha1"
)

// The schemas of the CRDs as the API server defaults by them.
var (
	policySchema = sync.OnceValues(func() (*schema.Structural, error) { return structural("weir.dev_ratelimitpolicies.yaml") })
	poolSchema   = sync.OnceValues(func() (*schema.Structural, error) { return structural("weir.dev_concurrencypools.yaml") })
	budgetSchema = sync.OnceValues(func() (*schema.Structural, error) { return structural("weir.dev_federatedbudgets.yaml") })
)

func structural(crdFile string) (*schema.Structural, error) {
	file, err := os.ReadFile(filepath.Join("..", "..", "..", "config", "crd", "bases", crdFile))
	if err != nil {
		return nil, err
	}
	var crd apiextensionsv1.CustomResourceDefinition
	if err := yaml.Unmarshal(file, &crd); err != nil {
		return nil, err
	}
	var props apiextensions.JSONSchemaProps
	if err := apiextensionsv1.Convert_v1_JSONSchemaProps_To_apiextensions_JSONSchemaProps(
		crd.Spec.Versions[0].Schema.OpenAPIV3Schema, &props, nil); err != nil {
		return nil, err
	}
	return schema.NewStructural(&props)
}

// defaulted reads a policy as a user wrote it and fills in the CRD's defaults.
func defaulted(t *testing.T, in []byte) *v1alpha1.RateLimitPolicy {
	t.Helper()
	var p v1alpha1.RateLimitPolicy
	fillIn(t, policySchema, in, &p)
	return &p
}

// defaultedPool does the same for a pool.
func defaultedPool(t *testing.T, in []byte) *v1alpha1.ConcurrencyPool {
	t.Helper()
	var p v1alpha1.ConcurrencyPool
	fillIn(t, poolSchema, in, &p)
	return &p
}

// defaultedBudget does the same for a budget.
func defaultedBudget(t *testing.T, in []byte) *v1alpha1.FederatedBudget {
	t.Helper()
	var b v1alpha1.FederatedBudget
	fillIn(t, budgetSchema, in, &b)
	return &b
}

// fillIn reads an object with the defaults of its schema. Fields that the API does not
// have fail the test.
func fillIn(t *testing.T, by func() (*schema.Structural, error), in []byte, into any) {
	t.Helper()
	structural, err := by()
	if err != nil {
		t.Fatal(err)
	}
	var fields map[string]any
	if err := yaml.Unmarshal(in, &fields); err != nil {
		t.Fatal(err)
	}
	defaulting.Default(fields, structural)
	if err := yaml.UnmarshalStrict(marshal(t, fields), into); err != nil {
		t.Fatal(err)
	}
}
