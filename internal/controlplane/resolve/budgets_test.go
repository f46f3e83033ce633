package resolve_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/weir-dev/weir/api/v1alpha1"
	"github.com/weir-dev/weir/internal/controlplane/resolve"
	"github.com/weir-dev/weir/pkg/policy"
)

// shared returns a budget of clusters c and d that was created at that time.
func shared(namespace, name, id string, created time.Time) *v1alpha1.FederatedBudget {
	return &v1alpha1.FederatedBudget{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Generation: 1, CreationTimestamp: metav1.NewTime(created)},
		Spec: v1alpha1.FederatedBudgetSpec{
			ID:                  id,
			Rate:                v1alpha1.BudgetRate{Limit: 100, Window: "1s"},
			Members:             []v1alpha1.BudgetMember{{Name: "c", Weight: 1}, {Name: "d", Weight: 1}},
			Allocation:          v1alpha1.FairShareAllocation,
			Coordinator:         v1alpha1.BudgetCoordinator{Type: v1alpha1.KubernetesCoordinator},
			Escrow:              v1alpha1.BudgetEscrow{Type: v1alpha1.ControllerEscrow},
			Batch:               v1alpha1.BudgetBatch{Type: v1alpha1.AdaptiveBatch, Size: 16},
			OnCoordinatorOutage: v1alpha1.OnBudgetOutage{Action: v1alpha1.BudgetFailClosedAction},
		},
	}
}

// unusable returns the budget in windows that cannot be.
func unusable(b *v1alpha1.FederatedBudget) *v1alpha1.FederatedBudget {
	b.Spec.Rate.Window = "soon"
	return b
}

// drawing returns a policy with a limit that draws from the budget of that name.
func drawing(namespace, name, budget string) *v1alpha1.RateLimitPolicy {
	p := ratelimit(namespace, name, checkout, 1)
	p.Spec.Limits = []v1alpha1.Limit{{Name: "world", Scope: v1alpha1.FederatedScope, BudgetRef: &v1alpha1.BudgetReference{Name: budget}}}
	return p
}

func TestBudgetsThatCount(t *testing.T) {
	tests := map[string]struct {
		budgets  []*v1alpha1.FederatedBudget
		counting []string          // objects, ordered by their ids
		errs     map[string]string // what is said of others
	}{
		"none": {},
		"each id once": {
			budgets:  []*v1alpha1.FederatedBudget{shared("shop", "x", "b", monday), shared("shop", "y", "a", tuesday)},
			counting: []string{"shop/y", "shop/x"},
		},
		"the older one, of whatever namespace": {
			budgets:  []*v1alpha1.FederatedBudget{shared("bank", "x", "a", tuesday), shared("shop", "x", "a", monday)},
			counting: []string{"shop/x"},
			errs:     map[string]string{"bank/x": "FederatedBudget shop/x has the id a, too; it is older and counts"},
		},
		"of one second the first namespace": {
			budgets:  []*v1alpha1.FederatedBudget{shared("shop", "a", "a", monday), shared("bank", "b", "a", monday)},
			counting: []string{"bank/b"},
			errs:     map[string]string{"shop/a": "FederatedBudget bank/b has the id a"},
		},
		"of one namespace the first name": {
			budgets:  []*v1alpha1.FederatedBudget{shared("shop", "b", "a", monday), shared("shop", "a", "a", monday)},
			counting: []string{"shop/a"},
			errs:     map[string]string{"shop/b": "FederatedBudget shop/a has the id a"},
		},
		"one that is not created yet loses": {
			budgets:  []*v1alpha1.FederatedBudget{shared("shop", "a", "a", time.Time{}), shared("shop", "b", "a", monday)},
			counting: []string{"shop/b"},
			errs:     map[string]string{"shop/a": "FederatedBudget shop/b has the id a"},
		},
		"of three the oldest": {
			budgets:  []*v1alpha1.FederatedBudget{shared("shop", "c", "a", tuesday), shared("shop", "b", "a", monday), shared("shop", "a", "a", tuesday)},
			counting: []string{"shop/b"},
			errs:     map[string]string{"shop/a": "FederatedBudget shop/b has", "shop/c": "FederatedBudget shop/b has"},
		},
		"an older one that is broken keeps its id": {
			budgets: []*v1alpha1.FederatedBudget{unusable(shared("shop", "x", "a", monday)), shared("shop", "y", "a", tuesday)},
			errs:    map[string]string{"shop/x": "spec.rate.window", "shop/y": "FederatedBudget shop/x has the id a"},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			var all []v1alpha1.FederatedBudget
			for _, b := range tc.budgets {
				all = append(all, *b)
			}
			budgets := resolve.NewBudgets(all, "c", rules(t, "*=*"))
			var counting []string
			for _, b := range budgets.Counting() {
				counting = append(counting, b.Namespace+"/"+b.Name)
				if b.Member != "c" {
					t.Errorf("%s/%s: this cluster is %q, want c", b.Namespace, b.Name, b.Member)
				}
				if named := budgets.Named(types.NamespacedName{Namespace: b.Namespace, Name: b.Name}); named.Err != nil || named.Budget.ID != b.ID {
					t.Errorf("%s counts with the id %s, but is %+v", b.Name, b.ID, named)
				}
			}
			if diff := cmp.Diff(tc.counting, counting); diff != "" {
				t.Errorf("counting (-want +got):\n%s", diff)
			}
			if len(budgets.All()) != len(tc.budgets) {
				t.Errorf("%d of %d are known", len(budgets.All()), len(tc.budgets))
			}
			for _, b := range budgets.All() {
				want := tc.errs[b.Object.String()]
				if (b.Err != nil) != (want != "") || want != "" && !strings.Contains(b.Err.Error(), want) {
					t.Errorf("%s: error %v, want one that says %q", b.Object, b.Err, want)
				}
				if diff := cmp.Diff(b.Object, budgets.Named(b.Object).Object); diff != "" {
					t.Errorf("it is not found by its name: %s", diff)
				}
			}
		})
	}
}

func TestABudgetThatIsNotThere(t *testing.T) {
	budgets := resolve.NewBudgets(nil, "c", resolve.IDs{})
	missing := budgets.Named(types.NamespacedName{Namespace: "shop", Name: "world"})
	if !errors.As(missing.Err, new(*resolve.NoBudgetError)) || !strings.Contains(missing.Err.Error(), "there is no FederatedBudget shop/world: create it") {
		t.Errorf("error %v", missing.Err)
	}
	if missing.Object.String() != "shop/world" {
		t.Errorf("what is missing is called %s", missing.Object)
	}
	if _, err := budgets.In("shop")("world"); err == nil || err.Error() != missing.Err.Error() {
		t.Errorf("a policy gets %v, want %v", err, missing.Err)
	}
}

func TestABudgetInTheSnapshotOfAPod(t *testing.T) {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "checkout-0", UID: "uid-0", Labels: checkout}}
	foreign := shared("shop", "world", "acme/world", monday)
	foreign.Spec.Members = foreign.Spec.Members[1:]
	tests := map[string]struct {
		objects []client.Object
		want    int64 // the limit's rate
		wantErr string
	}{
		"it counts":                  {objects: []client.Object{shared("shop", "world", "acme/world", monday)}, want: 100},
		"it is not there":            {wantErr: "spec.limits[0].budgetRef.name: Invalid value: \"world\": there is no FederatedBudget shop/world"},
		"it is in another namespace": {objects: []client.Object{shared("bank", "world", "acme/world", monday)}, wantErr: "there is no FederatedBudget shop/world"},
		"an older one has its id": {
			objects: []client.Object{shared("shop", "world", "acme/world", tuesday), shared("bank", "world", "acme/world", monday)},
			wantErr: "FederatedBudget shop/world does not count: FederatedBudget bank/world has the id acme/world, too",
		},
		"its namespace may not have its id": {
			objects: []client.Object{shared("shop", "world", "bank/world", monday)},
			wantErr: "FederatedBudget shop/world does not count: namespace shop may not have the id bank/world, but acme/*",
		},
		"it is of other clusters": {objects: []client.Object{foreign}, wantErr: "FederatedBudget shop/world does not count: spec.members: Invalid value: this cluster is \"c\""},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			known := cache(t, append(tc.objects, pod, drawing("shop", "checkout", "world"), ratelimit("shop", "other", checkout, 5))...)
			resolver := resolve.ByPod{ByLabels: resolve.ByLabels{Cluster: "c", IDs: rules(t, "shop=acme/*", "bank=acme/world"), Cache: known}, Secrets: resolve.NewSecrets(known), Keys: new(resolve.Keys)}
			snapshot, err := resolved(t, resolver, "checkout-0", "uid-0")
			if tc.wantErr != "" {
				if err == nil || !strings.Contains(err.Error(), tc.wantErr) || !slices.Equal(names(snapshot), []string{"shop/other"}) {
					t.Errorf("snapshot %+v, error %v; want the other policy, and an error that says %q", snapshot, err, tc.wantErr)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			limit := snapshot.Policies[0].Limits[0]
			if limit.Rates[0].Limit != tc.want || limit.Budget == nil || limit.Budget.ID != "acme/world" {
				t.Errorf("the limit is %+v, want one of %d units of acme/world", limit, tc.want)
			}
		})
	}
}

func TestVersionsOfABudgetsCredentials(t *testing.T) {
	made := func(name, version string) client.Object {
		return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name, ResourceVersion: version}, Data: map[string][]byte{"token": []byte(name)}}
	}
	secrets := resolve.NewSecrets(cache(t, made("hub", "7"), made("ledger", "8"), made("local", "9")))
	hub := &policy.Hub{Endpoint: "hub:15040", Secret: "shop/hub"}
	b := policy.FederatedBudget{
		Hub:         hub,
		Coordinator: policy.Store{Type: policy.RedisStore, Secret: "shop/ledger"},
		Escrow:      policy.Store{Type: policy.RedisStore, Secret: "shop/local"},
	}
	secrets.SetVersions(t.Context(), &b)
	if b.Hub.SecretVersion != "7" || b.Coordinator.SecretVersion != "8" || b.Escrow.SecretVersion != "9" {
		t.Errorf("versions %q, %q and %q; want 7, 8 and 9", b.Hub.SecretVersion, b.Coordinator.SecretVersion, b.Escrow.SecretVersion)
	}
	if hub.SecretVersion != "" {
		t.Error("a hub that others may hold was written to")
	}
	if data, version, err := secrets.HubData(t.Context(), *b.Hub); err != nil || version != "7" || string(data["token"]) != "hub" {
		t.Errorf("the hub's credentials are %v of version %q, %v", data, version, err)
	}

	lost := policy.FederatedBudget{Hub: &policy.Hub{Secret: "shop/gone", SecretVersion: "7"}}
	secrets.SetVersions(t.Context(), &lost)
	if lost.Hub.SecretVersion != "" {
		t.Errorf("a Secret that is gone has version %q", lost.Hub.SecretVersion)
	}
}

// TestMembersThatHaveSecrets has namespaces name more members than there is room for: those
// of older budgets have theirs, and each namespace has room of its own.
func TestMembersThatHaveSecrets(t *testing.T) {
	at := monday
	naming := func(namespace, name string, from, to int) v1alpha1.FederatedBudget {
		at = at.Add(time.Second)
		b := shared(namespace, name, namespace+"/"+name, at)
		b.Spec.Members = []v1alpha1.BudgetMember{{Name: "c", Weight: 1}}
		for i := from; i < to; i++ {
			b.Spec.Members = append(b.Spec.Members, v1alpha1.BudgetMember{Name: fmt.Sprintf("m%04d", i), Weight: 1})
		}
		return *b
	}
	without := func(b *resolve.Budgets, namespace, name string) int {
		return len(b.Without(types.NamespacedName{Namespace: namespace, Name: name}))
	}
	elsewhere := naming("shop", "elsewhere", 5000, 5010)
	elsewhere.Spec.Hub = &v1alpha1.BudgetHub{Endpoint: "hub:1", SecretRef: v1alpha1.SecretReference{Name: "weir-hub"}}
	all := []v1alpha1.FederatedBudget{
		elsewhere, naming("shop", "a", 0, 60), naming("shop", "b", 50, 63), naming("shop", "c", 62, 70), naming("bank", "a", 0, 60),
	}
	b := resolve.NewBudgets(all, "c", rules(t, "*=*"))
	if got := b.Credentialed(); len(got) != 64 || got[0] != "m0000" || got[63] != "m0063" {
		t.Errorf("members with a Secret: %q", got)
	}
	for name, want := range map[string]int{"elsewhere": 0, "a": 0, "b": 0, "c": 6} {
		if got := without(b, "shop", name); got != want {
			t.Errorf("budget %s has %d members without a Secret, want %d", name, got, want)
		}
	}
	for i := range 20 {
		all = append(all, naming(fmt.Sprintf("n%d", i), "a", 100*i+100, 100*i+163))
	}
	all = append(all, naming("late", "a", 0, 3), naming("late", "b", 4000, 4010))
	b = resolve.NewBudgets(all, "c", rules(t, "*=*"))
	if got := len(b.Credentialed()); got != resolve.MaxMembers {
		t.Errorf("%d members have a Secret, want %d", got, resolve.MaxMembers)
	}
	if known, more := without(b, "late", "a"), without(b, "late", "b"); known != 0 || more != 10 {
		t.Errorf("when the room is full, %d members have no Secret that had one, and %d of 10 others", known, more)
	}
}
