package versions

import (
	"encoding/pem"
	"fmt"
	"net/http/httptest"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apiextensions "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	"sigs.k8s.io/yaml"

	"github.com/weir-dev/weir/api/v1alpha1"
	"github.com/weir-dev/weir/config/crd"
	"github.com/weir-dev/weir/internal/testing/apiserver"
)

// definitions returns the CustomResourceDefinitions as they are.
func definitions(t *testing.T) (all []*apiextensions.CustomResourceDefinition) {
	t.Helper()
	files, err := crd.Bases.ReadDir("bases")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		data, err := crd.Bases.ReadFile(path.Join("bases", f.Name()))
		if err != nil {
			t.Fatal(err)
		}
		c := &apiextensions.CustomResourceDefinition{}
		if err := yaml.Unmarshal(data, c); err != nil {
			t.Fatal(err)
		}
		all = append(all, c)
	}
	return all
}

// A difference is what v1beta1 has otherwise in a spec.
type difference struct {
	renamed map[string]string   // fields of v1alpha1, to those of v1beta1
	moved   map[string][]string // below a new field
	gone    string
}

var differences = map[string]difference{
	"RateLimitPolicy": {map[string]string{"podSelector": "selector"}, map[string][]string{"enforcement": {"mode", "onStoreUnavailable"}}, "anyOf"},
	"ConcurrencyPool": {map[string]string{"podSelector": "selector"}, map[string][]string{"lease": {"heartbeat", "selfFence"}}, "queue"},
	"FederatedBudget": {map[string]string{"id": "budgetID"}, map[string][]string{"link": {"hub", "coordinator"}}, "batch"},
}

// names returns the fields of v1alpha1 that are elsewhere.
func (d difference) names() []string {
	names := []string{d.gone}
	for from := range d.renamed {
		names = append(names, from)
	}
	for _, fields := range d.moved {
		names = append(names, fields...)
	}
	return names
}

// serveBoth adds v1beta1 to the definition, converted by the webhook. Its schema is that of v1alpha1
// but for the difference, and for rules over several fields that name one of these.
func serveBoth(c *apiextensions.CustomResourceDefinition, webhook apiextensions.WebhookClientConfig) {
	second := c.Spec.Versions[0].DeepCopy()
	second.Name, second.Storage, second.AdditionalPrinterColumns, second.SelectableFields = v1beta1.Version, false, nil, nil
	d := differences[c.Spec.Names.Kind]
	spec := second.Schema.OpenAPIV3Schema.Properties["spec"]
	for from, to := range d.renamed {
		spec.Properties[to] = spec.Properties[from]
		delete(spec.Properties, from)
		if i := slices.Index(spec.Required, from); i >= 0 {
			spec.Required[i] = to
		}
	}
	for parent, fields := range d.moved {
		below := apiextensions.JSONSchemaProps{Type: "object", Default: &apiextensions.JSON{Raw: []byte("{}")}, Properties: map[string]apiextensions.JSONSchemaProps{}}
		for _, name := range fields {
			below.Properties[name] = spec.Properties[name]
			delete(spec.Properties, name)
		}
		spec.Properties[parent] = below
	}
	delete(spec.Properties, d.gone)
	spec.Properties["description"] = apiextensions.JSONSchemaProps{Type: "string"}
	spec.XValidations = slices.DeleteFunc(spec.XValidations, func(r apiextensions.ValidationRule) bool {
		return slices.ContainsFunc(d.names(), func(name string) bool {
			return strings.Contains(r.Rule, "elf."+name) || strings.HasPrefix(r.FieldPath, "."+name)
		})
	})
	second.Schema.OpenAPIV3Schema.Properties["spec"] = spec
	c.Spec.Versions = append(c.Spec.Versions, *second)
	c.Spec.Conversion = &apiextensions.CustomResourceConversion{Strategy: apiextensions.WebhookConverter, Webhook: &apiextensions.WebhookConversion{
		ClientConfig: &webhook, ConversionReviewVersions: []string{"v1"},
	}}
}

// A world is an API server that serves both versions.
type world struct {
	*testing.T
	client client.Client
}

func newWorld(t *testing.T) *world {
	t.Helper()
	kinds, err := newScheme()
	if err != nil {
		t.Fatal(err)
	}
	handler, err := newWebhook(kinds)
	if err != nil {
		t.Fatal(err)
	}
	webhook := httptest.NewTLSServer(handler)
	t.Cleanup(webhook.Close)
	url := webhook.URL + "/convert"
	reached := apiextensions.WebhookClientConfig{URL: &url, CABundle: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: webhook.Certificate().Raw})}
	all := definitions(t)
	for _, c := range all {
		serveBoth(c, reached)
	}
	config := apiserver.Start(t, &envtest.Environment{})
	scheme := runtime.NewScheme() // objects are read as they are, whatever types there are
	if err := apiextensions.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	config.QPS = -1
	w := &world{T: t}
	w.client, err = client.New(config, client.Options{Scheme: scheme})
	w.must(err)
	for _, c := range all { // envtest would take the webhook out
		w.must(w.client.Create(t.Context(), c))
	}
	w.must(envtest.WaitForCRDs(config, all, envtest.CRDInstallOptions{MaxTime: 30 * time.Second, PollInterval: 50 * time.Millisecond}))
	return w
}

func (w *world) must(err error) {
	w.Helper()
	if err != nil {
		w.Fatal(err)
	}
}

// read returns the object in a version.
func (w *world) read(o *unstructured.Unstructured, version schema.GroupVersion) *unstructured.Unstructured {
	w.Helper()
	out := &unstructured.Unstructured{}
	out.SetGroupVersionKind(version.WithKind(o.GetKind()))
	w.must(w.client.Get(w.Context(), client.ObjectKeyFromObject(o), out))
	return out
}

// store has the API server write all objects in another version from now on, and these now.
func (w *world) store(version schema.GroupVersion, written []*unstructured.Unstructured) {
	w.Helper()
	var list apiextensions.CustomResourceDefinitionList
	w.must(w.client.List(w.Context(), &list))
	for i := range list.Items {
		c := &list.Items[i]
		for j := range c.Spec.Versions {
			c.Spec.Versions[j].Storage = c.Spec.Versions[j].Name == version.Version
		}
		w.must(w.client.Update(w.Context(), c))
	}
	for _, o := range written {
		key := "stored-as-" + version.Version
		w.must(w.client.Patch(w.Context(), w.read(o, v1alpha1.GroupVersion),
			client.RawPatch("application/merge-patch+json", fmt.Appendf(nil, `{"metadata":{"labels":{%q:"yes"}}}`, key))))
	}
}

// samples returns the objects of config/samples, by names of their own.
func samples(t *testing.T) (all []*unstructured.Unstructured) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join("..", "..", "..", "config", "samples", "*.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		text, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		for i, part := range strings.Split("\n"+string(text), "\n---\n") {
			o := &unstructured.Unstructured{}
			if err := yaml.Unmarshal([]byte(part), &o.Object); err != nil {
				t.Fatal(err)
			}
			if o.GroupVersionKind().Group == v1beta1.Group {
				o.SetNamespace("default")
				o.SetName(fmt.Sprintf("%s-%d", strings.TrimSuffix(filepath.Base(f), ".yaml"), i))
				all = append(all, o)
			}
		}
	}
	return all
}

func spec(o *unstructured.Unstructured) any { return o.Object["spec"] }

func (w *world) same(what string, want, got any) {
	w.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		w.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

// TestBothVersionsAreServed by an API server: clients of each read and write the samples, while they are
// stored in one version and then in the other, and each finds all that it wrote.
func TestBothVersionsAreServed(t *testing.T) {
	w := newWorld(t)
	all := samples(t)
	if len(all) < 40 {
		t.Fatalf("there are %d samples", len(all))
	}
	created := map[string]any{}
	for _, o := range all {
		w.must(w.client.Create(t.Context(), o.DeepCopy()))
		created[o.GetName()] = spec(w.read(o, v1alpha1.GroupVersion))
	}
	for round, stored := range []schema.GroupVersion{v1alpha1.GroupVersion, v1beta1, v1alpha1.GroupVersion} {
		w.store(stored, all)
		for _, o := range all {
			w.check(o, created[o.GetName()], fmt.Sprintf("round %d, stored as %s", round, stored.Version))
		}
	}
}

// check has a client of each version write the object, and compares what both read.
func (w *world) check(o *unstructured.Unstructured, created any, description string) {
	w.Helper()
	name := o.GetKind() + " " + o.GetName()
	beta := w.read(o, v1beta1)
	w.same(name+": fields of v1beta1", withDifference(o.GetKind(), created), withoutDescription(spec(beta)))
	w.must(unstructured.SetNestedField(beta.Object, description, "spec", "description"))
	w.must(w.client.Update(w.Context(), beta))

	alpha := w.read(o, v1alpha1.GroupVersion)
	w.same(name+": what a client of v1alpha1 reads after one of v1beta1 wrote", created, spec(alpha))
	alpha.SetLabels(map[string]string{"written": "by-v1alpha1"})
	w.must(w.client.Update(w.Context(), alpha))
	w.must(w.client.Status().Patch(w.Context(), alpha, client.RawPatch("application/merge-patch+json", []byte(`{"status":{"observedGeneration":7}}`))))

	beta = w.read(o, v1beta1)
	got, _, _ := unstructured.NestedString(beta.Object, "spec", "description")
	w.same(name+": what a client of v1beta1 reads after one of v1alpha1 wrote", description, got)
	generation, _, _ := unstructured.NestedInt64(beta.Object, "status", "observedGeneration")
	w.same(name+": its status", int64(7), generation)

	again := beta.DeepCopy()
	again.Object["metadata"] = map[string]any{"namespace": o.GetNamespace(), "name": o.GetName() + "-again", "annotations": asAny(beta.GetAnnotations())}
	w.must(w.client.Create(w.Context(), again))
	w.same(name+": created as v1beta1", created, spec(w.read(again, v1alpha1.GroupVersion)))
	w.must(w.client.Delete(w.Context(), again))
}

func asAny(in map[string]string) map[string]any {
	out := map[string]any{}
	for key, value := range in {
		out[key] = value
	}
	return out
}

func withoutDescription(spec any) any {
	fields := spec.(map[string]any)
	delete(fields, "description")
	return fields
}

// withDifference returns a spec of v1alpha1 as v1beta1 has it.
func withDifference(kind string, of any) any {
	fields := runtime.DeepCopyJSON(of.(map[string]any))
	d := differences[kind]
	for from, to := range d.renamed {
		fields[to] = fields[from]
		delete(fields, from)
	}
	for parent, names := range d.moved {
		below := map[string]any{}
		for _, name := range names {
			if v, ok := fields[name]; ok {
				below[name] = v
				delete(fields, name)
			}
		}
		fields[parent] = below
	}
	delete(fields, d.gone)
	return fields
}
