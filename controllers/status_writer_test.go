package controllers_test

import (
	"context"
	"maps"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/events"
	clocktesting "k8s.io/utils/clock/testing"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/weir-dev/weir/api/v1alpha1"
	"github.com/weir-dev/weir/controllers"
	"github.com/weir-dev/weir/internal/testing/apiserver"
)

// An API server with older CustomResourceDefinitions drops fields of every status. Each is
// written once all the same, and again when it is wiped.
func TestStatusOfOlderDefinitionsIsWrittenOnce(t *testing.T) {
	g := NewWithT(t)
	read := envtest.CRDInstallOptions{Paths: []string{filepath.Join("..", "config", "crd", "bases")}}
	g.Expect(envtest.ReadCRDFiles(&read)).To(Succeed())
	for _, crd := range read.CRDs {
		dropFigures(crd)
	}
	config := apiserver.Start(t, &envtest.Environment{CRDs: read.CRDs})
	scheme := runtime.NewScheme()
	g.Expect(clientgoscheme.AddToScheme(scheme)).To(Succeed())
	g.Expect(v1alpha1.AddToScheme(scheme)).To(Succeed())
	var written atomic.Int64
	older, err := counting(&written)(config, client.Options{Scheme: scheme})
	g.Expect(err).NotTo(HaveOccurred())

	now := clocktesting.NewFakePassiveClock(time.Date(2026, 11, 20, 10, 15, 0, 0, time.UTC))
	quietFleet, recorder := newFakeFleet(), events.NewFakeRecorder(100)
	meta := metav1.ObjectMeta{Namespace: metav1.NamespaceDefault, Name: "checkout"}
	for kind, of := range map[string]struct {
		object client.Object
		by     reconcile.Reconciler
	}{
		"RateLimitPolicy": {
			&v1alpha1.RateLimitPolicy{ObjectMeta: meta, Spec: v1alpha1.RateLimitPolicySpec{
				Limits: []v1alpha1.Limit{{Name: "all", Rates: []v1alpha1.Rate{{Limit: 1000, Window: "1s"}}}},
			}},
			&controllers.RateLimitPolicyReconciler{
				Client: older, Cluster: cluster, Fleet: quietFleet, Stores: stores, Secrets: secrets, Events: recorder, Clock: now,
			},
		},
		"ConcurrencyPool": {
			&v1alpha1.ConcurrencyPool{ObjectMeta: meta, Spec: v1alpha1.ConcurrencyPoolSpec{Limit: v1alpha1.PoolLimit{Max: 4000}}},
			&controllers.ConcurrencyPoolReconciler{Client: older, Fleet: quietFleet, Secrets: secrets, Events: recorder, Clock: now},
		},
		"FederatedBudget": {
			&v1alpha1.FederatedBudget{ObjectMeta: meta, Spec: v1alpha1.FederatedBudgetSpec{
				ID: "default/shop", Rate: v1alpha1.BudgetRate{Limit: 100, Window: "1s"},
				Members: []v1alpha1.BudgetMember{{Name: cluster}, {Name: "us-east"}},
			}},
			&controllers.FederatedBudgetReconciler{Client: older, Cluster: cluster, Budgets: quietFleet, Events: recorder, Clock: now},
		},
	} {
		t.Run(kind, func(t *testing.T) {
			g := NewWithT(t)
			g.Expect(older.Create(t.Context(), of.object)).To(Succeed())
			g.Expect(writesOf(t, of.by, of.object, now, &written)).To(BeEquivalentTo(1), "writes of a status that does not change")
			wipe := client.RawPatch("application/merge-patch+json", []byte(`{"status":null}`))
			g.Expect(older.Status().Patch(t.Context(), of.object, wipe)).To(Succeed())
			g.Expect(writesOf(t, of.by, of.object, now, &written)).To(BeEquivalentTo(1), "writes after somebody wiped the status")
		})
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
