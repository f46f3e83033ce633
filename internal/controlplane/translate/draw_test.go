package translate_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-dev/weir/api/v1alpha1"
	"github.com/weir-dev/weir/internal/controlplane/translate"
	"github.com/weir-dev/weir/pkg/limiter"
	"github.com/weir-dev/weir/pkg/policy"
)

// counting returns the budgets by their names; others are not there.
func counting(budgets ...*v1alpha1.FederatedBudget) translate.Budgets {
	return func(name string) (policy.FederatedBudget, error) {
		for _, b := range budgets {
			if b.Name == name {
				return translate.Budget(b, self)
			}
		}
		return policy.FederatedBudget{}, errors.New("there is none: create it")
	}
}

// worldBudget returns a budget of a hundred units a second, with more fields.
func worldBudget(t *testing.T, fields string) *v1alpha1.FederatedBudget {
	t.Helper()
	return defaultedBudget(t, []byte(`{metadata: {name: world, namespace: shop}, spec: {id: acme/world, rate: {limit: 100, window: 1s},
		members: [{name: eu-west}, {name: us-east}], `+fields+`}}`))
}

// drawing returns a policy with a limit that draws from that budget, with more fields.
func drawing(t *testing.T, limit, spec string) *v1alpha1.RateLimitPolicy {
	t.Helper()
	return defaulted(t, []byte(`{metadata: {name: checkout, namespace: shop}, spec: {podSelector: {}, `+spec+`,
		limits: [{name: world, scope: Federated, budgetRef: {name: world}, `+limit+`}]}}`))
}

const aTenant = `fairness: {tenant: {type: Header, header: {name: x-tenant}}}`

func TestALimitDrawsFromItsBudget(t *testing.T) {
	translated, err := translate.Policy(drawing(t, ``, `mode: Enforce`), counting(worldBudget(t, ``)))
	if err != nil {
		t.Fatal(err)
	}
	want := policy.Limit{
		Name: "world", Algorithm: policy.FixedWindow,
		Rates:  []limiter.Rate{{Limit: 100, Window: limiter.Second}},
		Budget: &policy.BudgetRef{ID: "acme/world", Name: "world"},
	}
	if diff := cmp.Diff(want, translated.Limits[0]); diff != "" {
		t.Errorf("the limit (-want +got):\n%s", diff)
	}
}

// TestALimitHasTheKeyOfItsBudget and the number of clusters that share each value.
func TestALimitHasTheKeyOfItsBudget(t *testing.T) {
	of := worldBudget(t, `allocation: FirstCome, key: {maxKeys: 50, onMissing: Skip, parts: [{type: Header, header: {name: x-user}}, {type: Method}],
		overrides: [{limit: 500, values: [{parts: [vip, GET]}]}, {limit: 5, values: [{parts: [bot, GET]}, {parts: [bot, PUT]}]}]}`)
	before, err := translate.Budget(of, self)
	if err != nil {
		t.Fatal(err)
	}
	translated, err := translate.Policy(drawing(t, ``, `mode: Enforce`), counting(of))
	if err != nil {
		t.Fatal(err)
	}
	want := policy.Limit{
		Name: "world", Algorithm: policy.FixedWindow,
		Rates:  []limiter.Rate{{Limit: 100, Window: limiter.Second}},
		Budget: &policy.BudgetRef{ID: "acme/world", Name: "world"}, Clusters: 2,
		Key: &policy.Key{
			Parts: []policy.KeyPart{{Type: policy.HeaderKey, Header: "x-user"}, {Type: policy.MethodKey}}, OnMissing: policy.Skip, MaxKeys: 50,
		},
		Overrides: []policy.Override{
			{Values: []policy.Value{{"vip", "GET"}}, Rates: []limiter.Rate{{Limit: 500, Window: limiter.Second}}},
			{Values: []policy.Value{{"bot", "GET"}, {"bot", "PUT"}}, Rates: []limiter.Rate{{Limit: 5, Window: limiter.Second}}},
		},
	}
	if diff := cmp.Diff(want, translated.Limits[0]); diff != "" {
		t.Errorf("the limit (-want +got):\n%s", diff)
	}
	if before.Params.Keys != 50 {
		t.Errorf("the budget counts %d values by themselves, want 50", before.Params.Keys)
	}
	for _, o := range want.Overrides {
		for _, v := range o.Values {
			if got := before.Params.LimitOf(v.Hash()); got != o.Rates[0].Limit {
				t.Errorf("the limit of %q is %d, want %d", v, got, o.Rates[0].Limit)
			}
		}
	}
	translated.Limits[0].Key.Parts[0].Header = "another"
	if before.Key.Parts[0].Header != "x-user" {
		t.Error("the limit has the very key of the budget, which others read")
	}
}

// TestALimitHasAllRatesOfItsBudget, the first as it is written, and then from the shortest window to the longest.
func TestALimitHasAllRatesOfItsBudget(t *testing.T) {
	of := worldBudget(t, `additionalRates: [{limit: 10000, window: 24h}, {limit: 600, window: 1m}]`)
	translated, err := translate.Policy(drawing(t, ``, `mode: Enforce`), counting(of))
	if err != nil {
		t.Fatal(err)
	}
	want := policy.Limit{
		Name: "world", Algorithm: policy.FixedWindow,
		Rates:  []limiter.Rate{{Limit: 100, Window: limiter.Second}, {Limit: 600, Window: 60 * limiter.Second}, {Limit: 10000, Window: limiter.Day}},
		Budget: &policy.BudgetRef{ID: "acme/world", Name: "world"},
	}
	if diff := cmp.Diff(want, translated.Limits[0]); diff != "" {
		t.Errorf("the limit (-want +got):\n%s", diff)
	}
	snapshot := policy.Snapshot{Cluster: "c", Policies: []policy.Policy{translated}}
	if err := snapshot.Validate(); err != nil {
		t.Error(err)
	}
	const said = "has several rates, and fairness splits one window"
	if _, errs := translate.Validate(drawing(t, aTenant, `mode: Enforce`), counting(of)); len(errs) != 1 || errs[0].Field != "spec.limits[0].fairness" || !strings.Contains(errs[0].Error(), said) {
		t.Errorf("Validate of a limit with fairness = %v, want one error that says %q", errs, said)
	}
}

// TestAKeyOfABudgetReadsWhatThePolicyHas: the policy has the providers of claims, and says which proxies
// are believed.
func TestAKeyOfABudgetReadsWhatThePolicyHas(t *testing.T) {
	const (
		claim     = `{type: JWTClaim, jwtClaim: {claim: sub, verification: Verified, provider: accounts}}`
		providers = `jwtProviders: [{name: accounts, issuer: "https://accounts.example.com", jwks: {secretRef: {name: keys}}}]`
		believed  = `clientIP: {trustedHops: 1}`
	)
	for name, tc := range map[string]struct {
		part, limit, spec string
		field, message    string // of the only error; empty: none
		doubt             string // of the only warning; empty: none
	}{
		"a claim, and its provider":        {part: claim, spec: providers},
		"a claim, and no provider":         {part: claim, field: "spec.limits[0].budgetRef.name", message: "a claim that provider accounts verifies, which is the name of no entry of spec.jwtProviders: add it there"},
		"an identity, and whom to believe": {part: `{type: PeerIdentity}`, spec: believed},
		"an identity, and nobody":          {part: `{type: PeerIdentity}`, field: "spec.limits[0].budgetRef.name", message: "set spec.clientIP"},
		"an address, and whom to believe":  {part: `{type: ClientIP}`, spec: believed},
		"an address, and nobody":           {part: `{type: ClientIP}`, doubt: "spec.clientIP: limits read the client's address"},
		"an address in an expression":      {part: `{type: Expression, expression: request.clientIP}`, doubt: "spec.clientIP: limits read the client's address"},
		"tenants":                          {part: `{type: Path}`, limit: aTenant, field: "spec.limits[0].fairness", message: "remove fairness, or remove spec.key there"},
		"a path":                           {part: `{type: Path}`},
	} {
		t.Run(name, func(t *testing.T) {
			of := worldBudget(t, `allocation: FirstCome, key: {parts: [`+tc.part+`]}`)
			if warnings, errs := translate.ValidateBudget(of, self); len(errs) > 0 || len(warnings) > 0 {
				t.Fatalf("the budget is valid with %q, %v; want neither warnings nor errors", warnings, errs)
			}
			spec := tc.spec
			if spec == "" {
				spec = `mode: Enforce`
			}
			warnings, errs := translate.Validate(drawing(t, tc.limit, spec), counting(of))
			if tc.field == "" && len(errs) > 0 || tc.field != "" && (len(errs) != 1 || errs[0].Field != tc.field || !strings.Contains(errs[0].Error(), tc.message)) {
				t.Errorf("Validate = %v, want one error about %q that says %q", errs, tc.field, tc.message)
			}
			if tc.doubt == "" && len(warnings) > 0 || tc.doubt != "" && (len(warnings) != 1 || !strings.HasPrefix(warnings[0], tc.doubt)) {
				t.Errorf("Validate warns of %q, want %q", warnings, tc.doubt)
			}
		})
	}
	broken := worldBudget(t, `allocation: FirstCome, key: {parts: [{type: Expression, expression: "1 +"}]}`)
	if _, errs := translate.ValidateBudget(broken, self); len(errs) != 1 || errs[0].Field != "spec.key.parts[0].expression" {
		t.Errorf("ValidateBudget = %v, want an error about spec.key.parts[0].expression", errs)
	}
}

func TestABudgetThatDoesNotCount(t *testing.T) {
	strangers := worldBudget(t, ``)
	strangers.Spec.Members = strangers.Spec.Members[1:]
	for name, tc := range map[string]struct {
		budgets translate.Budgets
		want    string
	}{
		"is not there":               {counting(), "there is none: create it"},
		"cannot be known":            {nil, "no FederatedBudget is known here"},
		"is one of other clusters":   {counting(strangers), "--cluster-name"},
		"cannot be known beside one": {counting(defaultedBudget(t, []byte(`{metadata: {name: other}, spec: {id: a}}`))), "there is none: create it"},
	} {
		t.Run(name, func(t *testing.T) {
			p := drawing(t, aTenant, `mode: Enforce`)
			const field = "spec.limits[0].budgetRef.name: "
			if _, err := translate.Policy(p, tc.budgets); err == nil || !strings.Contains(err.Error(), field) || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("Policy fails with %v, want an error of %s that says %q", err, field, tc.want)
			}
			warnings, errs := translate.Validate(p, tc.budgets)
			if len(errs) > 0 || len(warnings) != 1 || !strings.HasPrefix(warnings[0], field) || !strings.Contains(warnings[0], tc.want) {
				t.Errorf("Validate = %q, %v; want one warning of %s that says %q", warnings, errs, field, tc.want)
			}
			all := []v1alpha1.RateLimitPolicy{named(t, "shop", "good", sound), *p}
			snapshot, err := translate.Snapshot("east", all, tc.budgets, nil, "shop", nil)
			requirePartial(t, err, "RateLimitPolicy shop/checkout: "+field)
			requireGoodAlone(t, snapshot)
		})
	}
}

func TestValidateOfAFederatedLimit(t *testing.T) {
	const redis = `escrow: {type: Redis, redis: {address: "redis:6379"}}`
	broken := drawing(t, ``, `mode: Enforce`)
	broken.Spec.Limits[0].BudgetRef = nil
	elsewhere := drawing(t, ``, `store: {type: Redis, redis: {address: "redis:6379"}}`)
	for name, tc := range map[string]struct {
		policy  *v1alpha1.RateLimitPolicy
		budget  string // fields
		field   string // of the only error, or warning
		message string
		doubt   bool
	}{
		"fairness of units in Redis":      {policy: drawing(t, aTenant, `mode: Enforce`), budget: redis, field: "spec.limits[0].fairness", message: "set its escrow.type to Controller, or remove fairness"},
		"fairness of units in memory":     {policy: drawing(t, aTenant, `mode: Enforce`)},
		"units in Redis without fairness": {policy: drawing(t, ``, `mode: Enforce`), budget: redis},
		"a cost above the budget":         {policy: drawing(t, `cost: {default: 101}`, `mode: Enforce`), field: "spec.limits[0].cost.default", message: "is more than the limit admits at once (100)"},
		"a lease of the whole budget":     {policy: drawing(t, ``, `consistency: {lease: {size: {type: Fixed, batch: 100}}}`), field: "spec.consistency.lease.size.batch", message: "all that limit world admits at once (100)", doubt: true},

		// The API server refuses these.
		"no reference to a budget": {policy: broken, field: "spec.limits[0].budgetRef", message: "set budgetRef.name to a FederatedBudget of this namespace"},
		"a store of its own":       {policy: elsewhere, field: "spec.store.type", message: "set it to Controller"},
		"overrides":                {policy: drawing(t, `overrides: [{values: [{parts: [/a]}], rates: [{limit: 1, window: 1s}]}]`, `mode: Enforce`), field: "spec.limits[0].overrides", message: "remove them here, and set spec.key.overrides there"},
		"a key":                    {policy: drawing(t, `key: {parts: [{type: Path}]}`, `mode: Enforce`), field: "spec.limits[0].key", message: "remove it here, and set spec.key there"},
	} {
		t.Run(name, func(t *testing.T) {
			warnings, errs := translate.Validate(tc.policy, counting(worldBudget(t, tc.budget)))
			switch {
			case tc.field == "":
				if len(errs) > 0 || len(warnings) > 0 {
					t.Errorf("Validate = %q, %v; want neither warnings nor errors", warnings, errs)
				}
			case tc.doubt:
				if len(errs) > 0 || len(warnings) != 1 || !strings.HasPrefix(warnings[0], tc.field+": ") || !strings.Contains(warnings[0], tc.message) {
					t.Errorf("Validate = %q, %v; want one warning of %s that says %q", warnings, errs, tc.field, tc.message)
				}
			case len(errs) != 1 || errs[0].Field != tc.field || !strings.Contains(errs[0].Error(), tc.message):
				t.Errorf("Validate = %v, want one error about %s that says %q", errs, tc.field, tc.message)
			}
		})
	}
}

// A policy that moves from a Redis to a budget in one edit is still counted in Redis
// when its pods hear of it, and must let go of it.
func TestALimitThatBecomesFederatedLeavesItsStore(t *testing.T) {
	for name, phase := range map[string]v1alpha1.StorePhase{"before": v1alpha1.StoreServing, "while": v1alpha1.StoreDraining, "held up": v1alpha1.StoreWaiting} {
		t.Run(name, func(t *testing.T) {
			p := drawing(t, ``, `mode: Enforce`)
			p.Status.Store = &v1alpha1.StoreStatus{Phase: phase, Active: v1alpha1.Store{
				Type: v1alpha1.RedisStoreType, Redis: &v1alpha1.RedisStore{Address: "redis:6379"},
			}}
			translated, err := translate.Policy(p, counting(worldBudget(t, ``)))
			if err != nil {
				t.Fatal(err)
			}
			if translated.Store.Type != policy.RedisStore || !translated.Draining {
				t.Errorf("store %s, draining %t; want Redis, which is not asked", translated.Store.Type, translated.Draining)
			}
		})
	}
	p := drawing(t, ``, `mode: Enforce`)
	p.Status.Store = &v1alpha1.StoreStatus{Phase: v1alpha1.StoreServing, Active: v1alpha1.Store{Type: v1alpha1.ControllerStore}}
	translated, err := translate.Policy(p, counting(worldBudget(t, ``)))
	if err != nil || translated.Draining {
		t.Errorf("a policy that has arrived: draining %t, %v", translated.Draining, err)
	}
}
