package plugin

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"sync"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/listtype"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/pruning"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	"sigs.k8s.io/yaml"

	"github.com/weir-dev/weir/config/crd"
)

// A kindSchema defaults and validates objects of one kind as the API server does.
type kindSchema struct {
	structural *schema.Structural
	fields     validation.SchemaValidator
	rules      *cel.Validator
}

// kindSchemas are made when the first object of a kind is read: to compile the rules takes a
// second.
var kindSchemas = func() map[string]func() (*kindSchema, error) {
	all := make(map[string]func() (*kindSchema, error))
	for _, plural := range []string{"ratelimitpolicies", "concurrencypools", "federatedbudgets"} {
		all[plural] = sync.OnceValues(func() (*kindSchema, error) { return newKindSchema(plural) })
	}
	return all
}()

// newKindSchema returns the schema of the kind with that plural.
func newKindSchema(plural string) (*kindSchema, error) {
	text, err := crd.Bases.ReadFile("bases/weir.dev_" + plural + ".yaml")
	if err != nil {
		return nil, err
	}
	var definition apiextensionsv1.CustomResourceDefinition
	if err := yaml.Unmarshal(text, &definition); err != nil {
		return nil, err
	}
	var props apiextensions.JSONSchemaProps
	if err := apiextensionsv1.Convert_v1_JSONSchemaProps_To_apiextensions_JSONSchemaProps(
		definition.Spec.Versions[0].Schema.OpenAPIV3Schema, &props, nil); err != nil {
		return nil, err
	}
	s := &kindSchema{}
	if s.structural, err = schema.NewStructural(&props); err != nil {
		return nil, err
	}
	if s.fields, _, err = validation.NewSchemaValidator(&props); err != nil {
		return nil, err
	}
	// The API server bounds what rules cost by their worst case when a CRD is created.
	s.rules = cel.NewValidator(s.structural, true, math.MaxInt64)
	return s, nil
}

// read defaults an object, decodes and validates it. A field that the kind lacks is an
// error.
func (s *kindSchema) read(ctx context.Context, object map[string]any, into any) error {
	unknown := pruning.PruneWithOptions(object, s.structural, true, schema.UnknownFieldPathOptions{TrackUnknownFieldPaths: true})
	if len(unknown) > 0 {
		return fmt.Errorf("unknown field %q: correct or remove it", unknown[0])
	}
	defaulting.Default(object, s.structural)
	text, err := json.Marshal(object)
	if err != nil {
		return err
	}
	if err := yaml.UnmarshalStrict(text, into); err != nil {
		return err
	}
	errs := validation.ValidateCustomResource(nil, object, s.fields)
	errs = append(errs, listtype.ValidateListSetsAndMaps(nil, s.structural, object)...)
	if len(errs) == 0 { // rules may rely on the types of fields
		errs, _ = s.rules.Validate(ctx, nil, s.structural, object, nil, math.MaxInt64)
	}
	return errs.ToAggregate()
}
