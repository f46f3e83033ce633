package v1alpha1_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/discovery"
	"sigs.k8s.io/controller-runtime/pkg/client"

	weirv1alpha1 "github.com/weir-dev/weir/api/v1alpha1"
)

func TestUpdates(t *testing.T) {
	const leased = `consistency: {lease: {size: {type: Fixed, batch: 10}}}`
	cases := map[string]struct {
		from, to string
		want     string // field of the only error; empty: accepted
	}{
		"Enforce becomes Shadow":          {withSpec(``), withSpec(`mode: Shadow`), ""},
		"a window grows":                  {withWindow(`1s`), withWindow(`1m`), ""},
		"a limit is renamed":              {withName(`one`), withName(`two`), ""},
		"a key is added":                  {withSpec(``), withLimit(`key: {parts: [{type: Path}]}`), ""},
		"the store changes":               {withSpec(``), withRedis(`redis:6379`), ""},
		"the server of the store changes": {withRedis(`redis:6379`), withRedis(`redis:6380`), ""},
		"the store gets another type":     {withRedis(`redis:6379`), withStore(`type: Postgres, postgres: {address: "pg:5432", database: weir}`), ""},
		"the algorithm changes":           {withSpec(``), withLimits(`[{name: all, algorithm: GCRA, rates: [{limit: 1, window: 1s, burst: 5}]}]`), ""},
		"the algorithm changes and its burst stays": {
			withAlgorithm(`GCRA`, `rates: [{limit: 1, window: 1s, burst: 5}]`), withAlgorithm(`FixedWindow`, `rates: [{limit: 1, window: 1s, burst: 5}]`), "spec.limits[0].rates",
		},
		"the memory of the store changes":           {withStore(`memory: Volatile`), withStore(`memory: Durable, onMemoryLoss: Resume`), ""},
		"a store is reached through the controller": {withStore(`type: Redis, redis: {address: "r:1"}`), withStore(`type: Redis, access: Gateway, redis: {address: "r:1"}`), ""},
		"the controller's own store stays behind it": {
			withStore(`type: Redis, access: Gateway, redis: {address: "r:1"}`), withStore(`type: Controller, access: Gateway`), "spec.store.access",
		},
		"the default store is written out":          {withSpec(``), withSpec(`store: {type: Controller}`), ""},
		"Leased becomes Strict and drops its lease": {withSpec(leased), withSpec(`consistency: {mode: Strict}`), ""},
		"Leased becomes Strict and keeps its lease": {
			withSpec(leased), withSpec(`consistency: {mode: Strict, lease: {size: {type: Fixed, batch: 10}}}`), "spec.consistency.lease",
		},
		"the selector is removed": {withSpec(``), `{` + oneLimit + `}`, "spec.podSelector"},
		"a second window of the same length comes in": {
			withWindow(`60s`), withRates(`[{limit: 1, window: 60s}, {limit: 5, window: 1m}]`), "spec.limits[0].rates",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			requireUpdate(t, newPolicy(t, tc.from), newPolicy(t, tc.to), tc.want)
		})
	}
}

// requireUpdate creates an object and gives it another's spec. Want is the field of the
// only error; empty: it is accepted.
func requireUpdate(t *testing.T, object, to *unstructured.Unstructured, want string) {
	t.Helper()
	if err := server.Create(t.Context(), object); err != nil {
		t.Fatal(err)
	}
	object.Object["spec"] = to.Object["spec"]
	got := causes(t, server.Update(t.Context(), object))
	switch {
	case want == "" && len(got) > 0:
		t.Errorf("refused with\n%s", list(got))
	case want != "" && (len(got) != 1 || got[0].Field != want):
		t.Errorf("refused with\n%swant one error about %s", list(got), want)
	}
}

func TestStatusIsASubresource(t *testing.T) {
	policy := newPolicy(t, withSpec(``))
	if err := server.Create(t.Context(), policy); err != nil {
		t.Fatal(err)
	}

	typed := &weirv1alpha1.RateLimitPolicy{}
	get(t, policy, typed)
	typed.Status = measured()
	typed.Spec.Mode = weirv1alpha1.ShadowMode
	if err := server.Status().Update(t.Context(), typed); err != nil {
		t.Fatal(err)
	}
	get(t, policy, typed)
	if typed.Generation != 1 || typed.Spec.Mode != weirv1alpha1.EnforceMode {
		t.Errorf("a status write made generation %d and mode %s, want 1 and Enforce", typed.Generation, typed.Spec.Mode)
	}

	typed.Spec.Mode = weirv1alpha1.ShadowMode
	typed.Status = weirv1alpha1.RateLimitPolicyStatus{}
	if err := server.Update(t.Context(), typed); err != nil {
		t.Fatal(err)
	}
	get(t, policy, typed)
	if typed.Generation != 2 || typed.Status.Summary.Pods != "12/12" {
		t.Errorf("a spec write made generation %d and pods %q, want 2 and the status as it was", typed.Generation, typed.Status.Summary.Pods)
	}
}

func TestNewPolicyWaitsForTheController(t *testing.T) {
	policy := newPolicy(t, withSpec(``))
	if err := server.Create(t.Context(), policy); err != nil {
		t.Fatal(err)
	}
	typed := &weirv1alpha1.RateLimitPolicy{}
	get(t, policy, typed)
	for _, kind := range []string{weirv1alpha1.ReadyCondition, weirv1alpha1.AcceptedCondition, weirv1alpha1.ProgrammedCondition} {
		c := meta.FindStatusCondition(typed.Status.Conditions, kind)
		if c == nil || c.Status != "Unknown" || c.Reason != weirv1alpha1.PendingReason {
			t.Errorf("condition %s = %+v, want Unknown, Pending", kind, c)
		}
	}
}

func TestPoliciesAreSelectedByMode(t *testing.T) {
	shadow, enforce := newPolicy(t, withSpec(`mode: Shadow`)), newPolicy(t, withSpec(`mode: Enforce`))
	for _, policy := range []*unstructured.Unstructured{shadow, enforce} {
		policy.SetLabels(map[string]string{"test": t.Name()})
		if err := server.Create(t.Context(), policy); err != nil {
			t.Fatal(err)
		}
	}
	var found weirv1alpha1.RateLimitPolicyList
	if err := server.List(t.Context(), &found, client.MatchingFields{"spec.mode": "Shadow"}, client.MatchingLabels{"test": t.Name()}); err != nil {
		t.Fatal(err)
	}
	if len(found.Items) != 1 || found.Items[0].Name != shadow.GetName() {
		t.Errorf("spec.mode=Shadow selects %d policies, want %s alone", len(found.Items), shadow.GetName())
	}
}

func TestNamesOfTheKinds(t *testing.T) {
	requireNames(t, "ratelimitpolicies", "rlp")
	requireNames(t, "concurrencypools", "cpool")
	requireNames(t, "federatedbudgets", "fbud")
}

// requireNames wants the server to know the resource by these names.
func requireNames(t *testing.T, name, short string) {
	t.Helper()
	discoverer, err := discovery.NewDiscoveryClientForConfig(serverConfig)
	if err != nil {
		t.Fatal(err)
	}
	resources, err := discoverer.ServerResourcesForGroupVersion(weirv1alpha1.GroupVersion.String())
	if err != nil {
		t.Fatal(err)
	}
	for _, resource := range resources.APIResources {
		if resource.Name != name {
			continue
		}
		if diff := cmp.Diff([]string{short}, resource.ShortNames); diff != "" {
			t.Errorf("short names of %s (-want +got):\n%s", name, diff)
		}
		if diff := cmp.Diff([]string{"fleetlimits"}, resource.Categories); diff != "" {
			t.Errorf("categories (-want +got):\n%s", diff)
		}
		return
	}
	t.Errorf("the server does not know %s", name)
}

// get reads the policy into typed.
func get(t *testing.T, policy *unstructured.Unstructured, typed *weirv1alpha1.RateLimitPolicy) {
	t.Helper()
	*typed = weirv1alpha1.RateLimitPolicy{}
	if err := server.Get(t.Context(), client.ObjectKeyFromObject(policy), typed); err != nil {
		t.Fatal(err)
	}
}
