package webhook

import (
	"strings"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/weir-dev/weir/api/v1alpha1"
	"github.com/weir-dev/weir/internal/controlplane/resolve"
)

// aBudget returns a budget of clusters eu-west and us-east.
func aBudget(name string, created time.Time) *v1alpha1.FederatedBudget {
	return &v1alpha1.FederatedBudget{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Generation: 1, CreationTimestamp: metav1.NewTime(created)},
		Spec: v1alpha1.FederatedBudgetSpec{
			ID:                  "shop/checkout",
			Rate:                v1alpha1.BudgetRate{Limit: 100, Window: "1s"},
			Members:             []v1alpha1.BudgetMember{{Name: "eu-west", Weight: 1}, {Name: "us-east", Weight: 1}},
			Allocation:          v1alpha1.FairShareAllocation,
			Coordinator:         v1alpha1.BudgetCoordinator{Type: v1alpha1.KubernetesCoordinator},
			Escrow:              v1alpha1.BudgetEscrow{Type: v1alpha1.ControllerEscrow},
			Batch:               v1alpha1.BudgetBatch{Type: v1alpha1.AdaptiveBatch, Size: 16},
			OnCoordinatorOutage: v1alpha1.OnBudgetOutage{Action: v1alpha1.BudgetFailClosedAction},
		},
	}
}

// changed returns a copy of the budget with a change.
func changed(b *v1alpha1.FederatedBudget, change func(*v1alpha1.FederatedBudget)) *v1alpha1.FederatedBudget {
	b = b.DeepCopy()
	change(b)
	return b
}

func inRedis(b *v1alpha1.FederatedBudget) {
	b.Spec.Escrow = v1alpha1.BudgetEscrow{Type: v1alpha1.RedisEscrow, Redis: &v1alpha1.RedisStore{Address: "redis:6379"}}
}

// byPath gives the budget a key that needs nothing, and byIdentity one that needs the policy's clientIP.
func byPath(b *v1alpha1.FederatedBudget) { keyedBy(b, v1alpha1.PathPart) }

func byIdentity(b *v1alpha1.FederatedBudget) { keyedBy(b, v1alpha1.PeerIdentityPart) }

func keyedBy(b *v1alpha1.FederatedBudget, kind v1alpha1.KeyPartType) {
	b.Spec.Allocation = v1alpha1.FirstComeAllocation
	b.Spec.Key = &v1alpha1.BudgetKey{Parts: []v1alpha1.KeyPart{{Type: kind}}, OnMissing: v1alpha1.OnMissingShared, MaxKeys: 10}
}

// drawing returns a policy with a limit that draws from the budget of that name.
func drawing(budget string, fairness *v1alpha1.Fairness) *v1alpha1.RateLimitPolicy {
	p := aPolicy("1s", "/a")
	p.Spec.Limits = []v1alpha1.Limit{{
		Name: "world", Scope: v1alpha1.FederatedScope, BudgetRef: &v1alpha1.BudgetReference{Name: budget}, Fairness: fairness,
	}}
	return p
}

var byTenant = &v1alpha1.Fairness{Tenant: v1alpha1.KeyPart{Type: v1alpha1.MethodPart}, DefaultWeight: 1}

// validateBudget sends the budget through the webhook of cluster eu-west as the API
// server would, while others exist.
func validateBudget(t *testing.T, operation admissionv1.Operation, old, b *v1alpha1.FederatedBudget, others ...client.Object) admission.Response {
	t.Helper()
	req := admission.Request{AdmissionRequest: admissionv1.AdmissionRequest{Operation: operation}}
	for object, raw := range map[*v1alpha1.FederatedBudget]*runtime.RawExtension{old: &req.OldObject, b: &req.Object} {
		if object != nil {
			object.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind("FederatedBudget"))
			raw.Raw = encode(t, object)
		}
	}
	ids, err := resolve.ParseIDs([]string{"shop=shop/*", "bank=shop/checkout"})
	if err != nil {
		t.Fatal(err)
	}
	validator := BudgetValidator{Cluster: "eu-west", IDs: ids, Cache: fake.NewClientBuilder().WithScheme(ourScheme(t)).WithObjects(others...).Build()}
	return admission.WithValidator(ourScheme(t), validator).Handle(t.Context(), req)
}

func TestBudgetValidator(t *testing.T) {
	good := aBudget("b", tuesday)
	bad := changed(good, func(b *v1alpha1.FederatedBudget) { b.Spec.Rate.Window = "soon" })
	labelled := changed(bad, func(b *v1alpha1.FederatedBudget) { b.Labels = map[string]string{"team": "a"} })
	foreign := changed(good, func(b *v1alpha1.FederatedBudget) { b.Spec.Members = b.Spec.Members[1:] })
	fresh := aBudget("b", time.Time{})
	elsewhere := changed(aBudget("b", monday), func(b *v1alpha1.FederatedBudget) { b.Namespace = "bank" })
	another := changed(aBudget("other", monday), func(b *v1alpha1.FederatedBudget) { b.Spec.ID = "shop/other" })
	taken := changed(good, func(b *v1alpha1.FederatedBudget) { b.Namespace = "eve" })
	allowed := changed(taken, func(b *v1alpha1.FederatedBudget) { b.Spec.ID = "eve/checkout" })
	tagged := changed(taken, func(b *v1alpha1.FederatedBudget) { b.Labels = map[string]string{"team": "a"} })
	raised := changed(taken, func(b *v1alpha1.FederatedBudget) { b.Spec.Rate.Limit++ })
	remote := changed(good, inRedis)
	byDay := func(b *v1alpha1.FederatedBudget) {
		b.Spec.AdditionalRates = []v1alpha1.BudgetRate{{Limit: 1000, Window: "24h"}}
	}
	tests := map[string]struct {
		operation   admissionv1.Operation
		old, budget *v1alpha1.FederatedBudget
		other       client.Object
		wantField   string // of the only cause; empty: allowed
		wantWarning string // a part of the only one; empty: none
	}{
		"a good budget":                     {operation: admissionv1.Create, budget: good},
		"a budget of other clusters":        {operation: admissionv1.Create, budget: foreign, wantWarning: `spec.members: this cluster is "eu-west" by the flag --cluster-name`},
		"a bad budget":                      {operation: admissionv1.Create, budget: bad, wantField: "spec.rate.window"},
		"a good budget that turns bad":      {operation: admissionv1.Update, old: good, budget: bad, wantField: "spec.rate.window"},
		"a bad budget that gets a label":    {operation: admissionv1.Update, old: bad, budget: labelled},
		"a bad budget that is set right":    {operation: admissionv1.Update, old: bad, budget: good},
		"a bad budget that is deleted":      {operation: admissionv1.Delete, old: bad},
		"an id of another namespace":        {operation: admissionv1.Create, budget: taken, wantField: "spec.id"},
		"an id of the namespace":            {operation: admissionv1.Create, budget: allowed},
		"one that may not have its id":      {operation: admissionv1.Update, old: taken, budget: raised, wantField: "spec.id"},
		"a label of one that may not":       {operation: admissionv1.Update, old: taken, budget: tagged},
		"one beside one that may not":       {operation: admissionv1.Create, budget: fresh, other: changed(taken, func(b *v1alpha1.FederatedBudget) { b.CreationTimestamp = metav1.NewTime(monday) })},
		"one beside an older one":           {operation: admissionv1.Create, budget: fresh, other: aBudget("older", monday), wantWarning: "spec.id: FederatedBudget shop/older has the id shop/checkout, too; it is older and counts: delete one of the two"},
		"one beside an older one elsewhere": {operation: admissionv1.Create, budget: fresh, other: elsewhere, wantWarning: "FederatedBudget bank/b has the id"},
		"one beside a younger one":          {operation: admissionv1.Update, old: foreign, budget: good, other: aBudget("younger", tuesday.Add(time.Hour)), wantWarning: "spec.id: FederatedBudget shop/younger has the same; this one is older and counts"},
		"one beside another budget":         {operation: admissionv1.Create, budget: fresh, other: another},
		"one that is in the cache already":  {operation: admissionv1.Update, old: foreign, budget: good, other: foreign},
		"units in Redis, and tenants":       {operation: admissionv1.Create, budget: remote, other: drawing("b", byTenant), wantWarning: "spec.escrow.type: limit world of RateLimitPolicy checkout has fairness"},
		"units in Redis, and no tenants":    {operation: admissionv1.Create, budget: remote, other: drawing("b", nil)},
		"units in Redis, and others' ones":  {operation: admissionv1.Create, budget: remote, other: drawing("c", byTenant)},
		"units in memory, and tenants":      {operation: admissionv1.Create, budget: good, other: drawing("b", byTenant)},
		"a key, and tenants":                {operation: admissionv1.Update, old: good, budget: changed(good, byPath), other: drawing("b", byTenant), wantWarning: "spec.key: RateLimitPolicy checkout cannot draw from the budget, so its pods would keep what they have: spec.limits[0].fairness"},
		"a key that the policy cannot read": {operation: admissionv1.Update, old: good, budget: changed(good, byIdentity), other: drawing("b", nil), wantWarning: "spec.key: RateLimitPolicy checkout cannot draw from the budget, so its pods would keep what they have: spec.limits[0].budgetRef.name"},
		"a key that the policy can read":    {operation: admissionv1.Update, old: good, budget: changed(good, byPath), other: drawing("b", nil)},
		"several rates, and tenants":        {operation: admissionv1.Create, budget: changed(good, byDay), other: drawing("b", byTenant), wantWarning: "spec.additionalRates: RateLimitPolicy checkout cannot draw from the budget, so its pods would keep what they have: spec.limits[0].fairness"},
		"several rates, and no tenants":     {operation: admissionv1.Create, budget: changed(good, byDay), other: drawing("b", nil)},
		"a key, and others' tenants":        {operation: admissionv1.Update, old: good, budget: changed(good, byPath), other: drawing("c", byTenant)},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			var others []client.Object
			if tc.other != nil {
				others = append(others, tc.other.DeepCopyObject().(client.Object))
			}
			response := validateBudget(t, tc.operation, tc.old, tc.budget, others...)
			if tc.wantField != "" {
				requireCause(t, response, tc.wantField)
				return
			}
			if !response.Allowed {
				t.Errorf("refused: %v", response.Result)
			}
			requireWarning(t, response, tc.wantWarning)
		})
	}
}

func TestPolicyThatDrawsFromABudget(t *testing.T) {
	foreign := changed(aBudget("b", monday), func(b *v1alpha1.FederatedBudget) { b.Spec.Members = b.Spec.Members[1:] })
	for name, tc := range map[string]struct {
		policy      *v1alpha1.RateLimitPolicy
		budget      *v1alpha1.FederatedBudget
		wantField   string
		wantWarning string
	}{
		"that is there":                  {policy: drawing("b", byTenant), budget: aBudget("b", monday)},
		"that is not there":              {policy: drawing("b", nil), budget: aBudget("c", monday), wantWarning: "spec.limits[0].budgetRef.name: there is no FederatedBudget shop/b: create it"},
		"of other clusters":              {policy: drawing("b", nil), budget: foreign, wantWarning: "FederatedBudget shop/b does not count: spec.members"},
		"in Redis":                       {policy: drawing("b", nil), budget: changed(aBudget("b", monday), inRedis)},
		"in Redis, with fairness":        {policy: drawing("b", byTenant), budget: changed(aBudget("b", monday), inRedis), wantField: "spec.limits[0].fairness"},
		"by path":                        {policy: drawing("b", nil), budget: changed(aBudget("b", monday), byPath)},
		"by path, with fairness":         {policy: drawing("b", byTenant), budget: changed(aBudget("b", monday), byPath), wantField: "spec.limits[0].fairness"},
		"by an identity":                 {policy: drawing("b", nil), budget: changed(aBudget("b", monday), byIdentity), wantField: "spec.limits[0].budgetRef.name"},
		"that is missing, with fairness": {policy: drawing("b", byTenant), budget: aBudget("c", monday), wantWarning: "there is no FederatedBudget shop/b"},
	} {
		t.Run(name, func(t *testing.T) {
			p := tc.policy
			p.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind("RateLimitPolicy"))
			req := admission.Request{AdmissionRequest: admissionv1.AdmissionRequest{Operation: admissionv1.Create, Object: runtime.RawExtension{Raw: encode(t, p)}}}
			known := fake.NewClientBuilder().WithScheme(ourScheme(t)).WithObjects(tc.budget).Build()
			response := admission.WithValidator(ourScheme(t), PolicyValidator{Cluster: "eu-west", Cache: known}).Handle(t.Context(), req)
			if tc.wantField != "" {
				requireCause(t, response, tc.wantField)
				return
			}
			if !response.Allowed {
				t.Errorf("refused: %v", response.Result)
			}
			requireWarning(t, response, tc.wantWarning)
		})
	}
}

func TestBudgetsThatCannotBeReadHoldNothingUp(t *testing.T) {
	warnings, err := PolicyValidator{Cluster: "eu-west", Cache: unreadable{}}.ValidateCreate(t.Context(), drawing("b", nil))
	if err != nil || len(warnings) != 1 || !strings.Contains(warnings[0], "the cache is not synced") {
		t.Errorf("of a policy: warnings %q, error %v; want one warning that says why", warnings, err)
	}
	warnings, err = BudgetValidator{Cluster: "eu-west", Cache: unreadable{}}.ValidateCreate(t.Context(), changed(aBudget("b", monday), inRedis))
	if err != nil || len(warnings) != 2 || !strings.Contains(warnings[0], "the cache is not synced") || !strings.Contains(warnings[1], "the cache is not synced") {
		t.Errorf("of a budget: warnings %q, error %v; want two that say why", warnings, err)
	}
}
