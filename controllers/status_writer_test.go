package controllers_test

import (
	"context"
	"errors"
	"maps"
	"path/filepath"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/events"
	clocktesting "k8s.io/utils/clock/testing"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache/informertest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/weir-dev/weir/api/v1alpha1"
	"github.com/weir-dev/weir/controllers"
	"github.com/weir-dev/weir/internal/controlplane/objectcache"
	"github.com/weir-dev/weir/internal/testing/apiserver"
)

// An API server with older CustomResourceDefinitions drops fields of every status. Each is
// written once all the same, and again when it is wiped.
func TestStatusOfOlderDefinitionsIsWrittenOnce(t *testing.T) {
	g := NewWithT(t)
	config, scheme := serverWith(t, dropFigures)
	var written atomic.Int64
	older, err := counting(&written)(config, client.Options{Scheme: scheme})
	g.Expect(err).NotTo(HaveOccurred())

	now := clocktesting.NewFakePassiveClock(time.Date(2026, 11, 20, 10, 15, 0, 0, time.UTC))
	for kind, of := range ofEachKind(older, now) {
		t.Run(kind, func(t *testing.T) {
			g := NewWithT(t)
			g.Expect(older.Create(t.Context(), of.object)).To(Succeed())
			g.Expect(writesOf(t, of.by, of.object, now, &written)).To(BeEquivalentTo(1), "writes of a status that does not change")
			wipe := client.RawPatch(types.MergePatchType, []byte(`{"status":null}`))
			g.Expect(older.Status().Patch(t.Context(), of.object, wipe)).To(Succeed())
			g.Expect(writesOf(t, of.by, of.object, now, &written)).To(BeEquivalentTo(1), "writes after somebody wiped the status")
		})
	}
}

// The first status is sent whole and the next as a patch. Neither changes anything but what
// this version knows of the status, and neither is written over an object that was edited
// after it was read.
func TestAStatusChangesNothingElse(t *testing.T) {
	g := NewWithT(t)
	config, scheme := serverWith(t, addLater)
	other, err := client.New(config, client.Options{Scheme: scheme, FieldOwner: "another"})
	g.Expect(err).NotTo(HaveOccurred())
	var whole, patches int
	var meanwhile func() // the status is on its way
	base, err := client.NewWithWatch(config, client.Options{Scheme: scheme})
	g.Expect(err).NotTo(HaveOccurred())
	controller := interceptor.NewClient(base, interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, object client.Object, options ...client.GetOption) error {
			err := c.Get(ctx, key, object, options...)
			_, trimmed := objectcache.Options().DefaultTransform(object)
			return errors.Join(err, trimmed)
		},
		SubResourceUpdate: func(ctx context.Context, c client.Client, resource string, object client.Object, options ...client.SubResourceUpdateOption) error {
			meanwhile()
			whole++
			return c.SubResource(resource).Update(ctx, object, options...)
		},
		SubResourcePatch: func(ctx context.Context, c client.Client, resource string, object client.Object, patch client.Patch, options ...client.SubResourcePatchOption) error {
			meanwhile()
			patches++
			return c.SubResource(resource).Patch(ctx, object, patch, options...)
		},
	})

	now := clocktesting.NewFakePassiveClock(time.Date(2026, 11, 20, 10, 15, 0, 0, time.UTC))
	for kind, of := range ofEachKind(controller, now) {
		t.Run(kind, func(t *testing.T) {
			g := NewWithT(t)
			of.object.SetAnnotations(map[string]string{corev1.LastAppliedConfigAnnotation: "{}", "team": "shop"})
			g.Expect(other.Create(t.Context(), of.object)).To(Succeed())
			read := func() *unstructured.Unstructured {
				u := &unstructured.Unstructured{}
				u.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind(kind))
				g.Expect(other.Get(t.Context(), client.ObjectKeyFromObject(of.object), u)).To(Succeed())
				return u
			}
			// reconcile returns the generation that the status speaks of then.
			reconcile := func() int64 {
				_, err := of.by.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(of.object)})
				g.Expect(err).NotTo(HaveOccurred())
				now.SetTime(now.Now().Add(20 * time.Second))
				observed, _, err := unstructured.NestedInt64(read().Object, "status", "observedGeneration")
				g.Expect(err).NotTo(HaveOccurred())
				return observed
			}
			var edited *unstructured.Unstructured
			edit := func(patch string) func() {
				return func() {
					meanwhile = func() {}
					g.Expect(other.Patch(t.Context(), of.object, client.RawPatch(types.MergePatchType, []byte(patch)))).To(Succeed())
					edited = read()
				}
			}
			whole, patches = 0, 0

			meanwhile = edit(of.edits[0])
			g.Expect(reconcile()).To(BeZero(), "a status of the generation before was written over an edit")
			g.Expect(reconcile()).To(BeEquivalentTo(2))
			g.Expect(withoutStatus(read())).To(Equal(withoutStatus(edited)))
			g.Expect([]int{whole, patches}).To(Equal([]int{2, 0}))

			newer := client.RawPatch(types.MergePatchType, []byte(`{"status":{"later":"kept"}}`))
			g.Expect(other.Status().Patch(t.Context(), of.object, newer)).To(Succeed())
			edit(of.edits[1])()
			meanwhile = edit(`{"metadata":{"labels":{"edited":"again"}}}`)
			g.Expect(reconcile()).To(BeEquivalentTo(2), "a status was written over an edit")
			g.Expect(reconcile()).To(BeEquivalentTo(3))
			g.Expect(withoutStatus(read())).To(Equal(withoutStatus(edited)))
			g.Expect([]int{whole, patches}).To(Equal([]int{2, 2}))
			later, _, _ := unstructured.NestedString(read().Object, "status", "later")
			g.Expect(later).To(Equal("kept"), "what a newer version wrote")
		})
	}
}

// withoutStatus returns an object without its status, its version, and which fields of the
// status belong to somebody.
func withoutStatus(of *unstructured.Unstructured) map[string]any {
	u := of.DeepCopy()
	u.SetManagedFields(slices.DeleteFunc(u.GetManagedFields(), func(e metav1.ManagedFieldsEntry) bool { return e.Subresource == "status" }))
	u.SetResourceVersion("")
	delete(u.Object, "status")
	return u.Object
}

// serverWith starts an API server with the CustomResourceDefinitions as change makes them.
func serverWith(t *testing.T, change func(*apiextensionsv1.CustomResourceDefinition)) (*rest.Config, *runtime.Scheme) {
	t.Helper()
	g := NewWithT(t)
	read := envtest.CRDInstallOptions{Paths: []string{filepath.Join("..", "config", "crd", "bases")}}
	g.Expect(envtest.ReadCRDFiles(&read)).To(Succeed())
	for _, crd := range read.CRDs {
		change(crd)
	}
	config := apiserver.Start(t, &envtest.Environment{CRDs: read.CRDs})
	scheme := runtime.NewScheme()
	g.Expect(clientgoscheme.AddToScheme(scheme)).To(Succeed())
	g.Expect(v1alpha1.AddToScheme(scheme)).To(Succeed())
	return config, scheme
}

// reconciled is an object with its reconciler, and two merge patches that edit its spec.
type reconciled struct {
	object client.Object
	by     reconcile.Reconciler
	edits  [2]string
}

// ofEachKind returns a new object of each kind.
func ofEachKind(c client.Client, now *clocktesting.FakePassiveClock) map[string]reconciled {
	quietFleet, recorder := newFakeFleet(), events.NewFakeRecorder(100)
	none := toolscache.NewSharedIndexInformer(&toolscache.ListWatch{}, &corev1.Pod{}, 0, toolscache.Indexers{toolscache.NamespaceIndex: toolscache.MetaNamespaceIndexFunc})
	pods := &informertest.FakeInformers{Scheme: clientgoscheme.Scheme, InformersByGVK: map[schema.GroupVersionKind]toolscache.SharedIndexInformer{corev1.SchemeGroupVersion.WithKind("Pod"): none}}
	meta := metav1.ObjectMeta{Namespace: metav1.NamespaceDefault, Name: "checkout"}
	return map[string]reconciled{
		"RateLimitPolicy": {
			&v1alpha1.RateLimitPolicy{ObjectMeta: meta, Spec: v1alpha1.RateLimitPolicySpec{
				Limits: []v1alpha1.Limit{{Name: "all", Rates: []v1alpha1.Rate{{Limit: 1000, Window: "1s"}}}},
			}},
			&controllers.RateLimitPolicyReconciler{
				Client: c, Pods: pods, Cluster: cluster, Fleet: quietFleet, Stores: stores, Secrets: secrets, Events: recorder, Clock: now,
			},
			[2]string{`{"spec":{"mode":"Shadow"}}`, `{"spec":{"mode":"Enforce"}}`},
		},
		"ConcurrencyPool": {
			&v1alpha1.ConcurrencyPool{ObjectMeta: meta, Spec: v1alpha1.ConcurrencyPoolSpec{Limit: v1alpha1.PoolLimit{Max: 4000}}},
			&controllers.ConcurrencyPoolReconciler{Client: c, Pods: pods, Fleet: quietFleet, Secrets: secrets, Events: recorder, Clock: now},
			[2]string{`{"spec":{"limit":{"max":4001}}}`, `{"spec":{"limit":{"max":4002}}}`},
		},
		"FederatedBudget": {
			&v1alpha1.FederatedBudget{ObjectMeta: meta, Spec: v1alpha1.FederatedBudgetSpec{
				ID: "default/shop", Rate: v1alpha1.BudgetRate{Limit: 100, Window: "1s"},
				Members: []v1alpha1.BudgetMember{{Name: cluster}, {Name: "us-east"}},
			}},
			&controllers.FederatedBudgetReconciler{Client: c, Cluster: cluster, Budgets: quietFleet, Events: recorder, Clock: now},
			[2]string{`{"spec":{"rate":{"limit":101}}}`, `{"spec":{"rate":{"limit":102}}}`},
		},
	}
}

// addLater adds a field to the status in a definition, as a newer version may have it.
func addLater(crd *apiextensionsv1.CustomResourceDefinition) {
	for i := range crd.Spec.Versions {
		crd.Spec.Versions[i].Schema.OpenAPIV3Schema.Properties["status"].Properties["later"] = apiextensionsv1.JSONSchemaProps{Type: "string"}
	}
}

// dropFigures drops from the status in a definition all but the conditions, and the fields
// that a move to another store goes on from.
func dropFigures(crd *apiextensionsv1.CustomResourceDefinition) {
	for i := range crd.Spec.Versions {
		properties := crd.Spec.Versions[i].Schema.OpenAPIV3Schema.Properties
		status := properties["status"]
		maps.DeleteFunc(status.Properties, func(name string, _ apiextensionsv1.JSONSchemaProps) bool {
			return name != "conditions" && name != "store"
		})
		properties["status"] = status
	}
}

// writesOf returns how many writes of statuses come of reconciling an object for two minutes.
func writesOf(t *testing.T, by reconcile.Reconciler, of client.Object, now *clocktesting.FakePassiveClock, written *atomic.Int64) int64 {
	t.Helper()
	before := written.Load()
	for range 6 {
		if _, err := by.Reconcile(context.WithoutCancel(t.Context()), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(of)}); err != nil {
			t.Fatal(err)
		}
		now.SetTime(now.Now().Add(20 * time.Second))
	}
	return written.Load() - before
}
