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

// structuralSchema is the schema of the CRD as the API server defaults by it.
var structuralSchema = sync.OnceValues(func() (*schema.Structural, error) {
	file, err := os.ReadFile(filepath.Join("..", "..", "config", "crd", "bases", "weir.dev_ratelimitpolicies.yaml"))
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
})

// defaulted reads a policy as a user wrote it and fills in the CRD's defaults.
// Fields that the API does not have fail the test.
func defaulted(t *testing.T, in []byte) *v1alpha1.RateLimitPolicy {
	t.Helper()
	structural, err := structuralSchema()
	if err != nil {
		t.Fatal(err)
	}
	var fields map[string]any
	if err := yaml.Unmarshal(in, &fields); err != nil {
		t.Fatal(err)
	}
	defaulting.Default(fields, structural)
	var p v1alpha1.RateLimitPolicy
	if err := yaml.UnmarshalStrict(marshal(t, fields), &p); err != nil {
		t.Fatal(err)
	}
	return &p
}
