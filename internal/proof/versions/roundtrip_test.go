package versions

import (
	"bytes"
	"encoding/json"
	"maps"
	"math/rand"
	"net/http"
	"net/http/httptest"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apiextensions "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/apitesting/fuzzer"
	metafuzzer "k8s.io/apimachinery/pkg/apis/meta/fuzzer"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/types"

	"github.com/weir-dev/weir/api/v1alpha1"
)

// objects are how many make the round trip, and batch how many of them the API server would send at
// a time for a list.
const (
	objects = 10_000
	batch   = 100
)

var kinds = []string{"RateLimitPolicy", "ConcurrencyPool", "FederatedBudget"}

// TestRoundTripsLoseNothing: 10,000 arbitrary objects are the same after they were converted to the
// other version and back, half of them from each version, and every field of the specs was set in some.
func TestRoundTripsLoseNothing(t *testing.T) {
	scheme, err := newScheme()
	if err != nil {
		t.Fatal(err)
	}
	webhook, err := newWebhook(scheme)
	if err != nil {
		t.Fatal(err)
	}
	fill := fuzzer.FuzzerFor(metafuzzer.Funcs, rand.NewSource(1), serializer.NewCodecFactory(scheme)).NilChance(.25).NumElements(0, 2)
	set := map[string]bool{}
	for i := 0; i < objects; i += batch {
		kind := kinds[i/batch%len(kinds)]
		from, to := v1alpha1.GroupVersion, v1beta1
		if i/batch/len(kinds)%2 == 1 {
			from, to = to, from
		}
		var before []runtime.RawExtension
		for range batch {
			object, err := scheme.New(from.WithKind(kind))
			if err != nil {
				t.Fatal(err)
			}
			fill.Fill(object)
			object.GetObjectKind().SetGroupVersionKind(from.WithKind(kind))
			before = append(before, runtime.RawExtension{Raw: marshal(t, reread(t, object))})
			fieldsOf(decoded(t, before[len(before)-1].Raw).(map[string]any)["spec"], from.WithKind(kind).String(), set)
		}
		there := convert(t, webhook, before, to)
		back := convert(t, webhook, there, from)
		for j := range before {
			if version := decoded(t, there[j].Raw).(map[string]any)["apiVersion"]; version != to.String() {
				t.Fatalf("object %d is of %v, want %s", i+j, version, to)
			}
			if diff := cmp.Diff(decoded(t, before[j].Raw), decoded(t, back[j].Raw)); diff != "" {
				t.Fatalf("%s %d changed on the way to %s and back (-before +after):\n%s", kind, i+j, to, diff)
			}
		}
	}
	for _, kind := range kinds {
		want := map[string]bool{}
		propertiesOf(schemaOf(t, kind).Properties["spec"], v1alpha1.GroupVersion.WithKind(kind).String(), want)
		for _, field := range slices.Sorted(maps.Keys(want)) {
			if !set[field] {
				t.Errorf("%s was set in no object", field)
			}
		}
	}
}

// reread returns an object as it is after it was written and read. A list without elements, which
// Go distinguishes from none, is not written, so what holds only that is not zero before, and is after.
func reread(t *testing.T, object runtime.Object) runtime.Object {
	t.Helper()
	again := reflect.New(reflect.TypeOf(object).Elem()).Interface().(runtime.Object)
	if err := json.Unmarshal(marshal(t, object), again); err != nil {
		t.Fatal(err)
	}
	return again
}

// convert has the webhook convert objects, as the API server does.
func convert(t *testing.T, webhook http.Handler, objects []runtime.RawExtension, to schema.GroupVersion) []runtime.RawExtension {
	t.Helper()
	review := &apiextensions.ConversionReview{
		TypeMeta: metav1.TypeMeta{APIVersion: apiextensions.SchemeGroupVersion.String(), Kind: "ConversionReview"},
		Request:  &apiextensions.ConversionRequest{UID: types.UID("1"), DesiredAPIVersion: to.String(), Objects: objects},
	}
	answer := httptest.NewRecorder()
	webhook.ServeHTTP(answer, httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/convert", bytes.NewReader(marshal(t, review))))
	review = &apiextensions.ConversionReview{}
	if err := json.Unmarshal(answer.Body.Bytes(), review); err != nil {
		t.Fatal(err)
	}
	if r := review.Response; r == nil || r.Result.Status != metav1.StatusSuccess || len(r.ConvertedObjects) != len(objects) {
		t.Fatalf("the webhook answers %.2000s", answer.Body)
	}
	return review.Response.ConvertedObjects
}

func marshal(t *testing.T, v any) []byte {
	t.Helper()
	data, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func decoded(t *testing.T, data []byte) (v any) {
	t.Helper()
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber() // which keeps 64 bits
	if err := d.Decode(&v); err != nil {
		t.Fatal(err)
	}
	return v
}

// fieldsOf adds the paths of the fields that v has. Elements of lists have that of the list.
func fieldsOf(v any, path string, into map[string]bool) {
	switch v := v.(type) {
	case map[string]any:
		for name, of := range v {
			into[path+"."+name] = true
			fieldsOf(of, path+"."+name, into)
		}
	case []any:
		for _, of := range v {
			fieldsOf(of, path, into)
		}
	}
}

// propertiesOf adds the paths of the fields that the schema has.
func propertiesOf(s apiextensions.JSONSchemaProps, path string, into map[string]bool) {
	if s.Items != nil && s.Items.Schema != nil {
		propertiesOf(*s.Items.Schema, path, into)
	}
	for name := range s.Properties {
		into[path+"."+name] = true
		propertiesOf(s.Properties[name], path+"."+name, into)
	}
}

// schemaOf returns the schema of a kind of v1alpha1.
func schemaOf(t *testing.T, kind string) *apiextensions.JSONSchemaProps {
	t.Helper()
	for _, c := range definitions(t) {
		if c.Spec.Names.Kind == kind {
			return c.Spec.Versions[0].Schema.OpenAPIV3Schema
		}
	}
	t.Fatalf("there is no definition of %s", kind)
	return nil
}

// TestAnUnreadableAnnotationIsRefused, rather than what it keeps is lost.
func TestAnUnreadableAnnotationIsRefused(t *testing.T) {
	in := &RateLimitPolicy{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{ofV1alpha1: "{"}}}
	if err := policyToAlpha(t.Context(), in, &v1alpha1.RateLimitPolicy{}); err == nil || !strings.Contains(err.Error(), ofV1alpha1) {
		t.Errorf("error %v does not name the annotation", err)
	}
}
