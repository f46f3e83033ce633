package v1alpha1_test

import (
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

// drawing returns a spec with a limit that draws from a budget and has more fields.
func drawing(fields string) string {
	return withLimits(`[{name: world, scope: Federated, budgetRef: {name: checkout-world}, ` + fields + `}]`)
}

// drawingWith returns a spec with such a limit, beside one of this cluster, that has
// more fields.
func drawingWith(fields string) string {
	return `{` + selectAll + `, limits: [{name: all, rates: [{limit: 1, window: 1s}]}, {name: world, scope: Federated, budgetRef: {name: checkout-world}}], ` + fields + `}`
}

var invalidFederatedLimits = map[string]invalid{
	"no rates":                       {withLimits(`[{name: all}]`), "spec.limits[0].rates", "set rates, or set scope to Federated and budgetRef"},
	"no rates of the fleet":          {withLimits(`[{name: all, scope: Fleet}]`), "spec.limits[0].rates", "set rates, or set scope to Federated and budgetRef"},
	"no rates of a leaky bucket":     {withAlgorithm(`LeakyBucket`, `maxDelay: 1s`), "spec.limits[0].rates", "set rates, or set scope"},
	"an empty list of rates":         {withRates(`[]`), "spec.limits[0].rates", "should have at least 1 items"},
	"an unknown scope":               {withLimit(`scope: Global`), "spec.limits[0].scope", `supported values: "Fleet", "Federated"`},
	"a budget without the scope":     {withLimit(`budgetRef: {name: a}`), "spec.limits[0].budgetRef", "remove it, or set scope to Federated and remove rates"},
	"a budget of the fleet":          {withLimit(`scope: Fleet, budgetRef: {name: a}`), "spec.limits[0].budgetRef", "remove it, or set scope to Federated and remove rates"},
	"Federated without a budget":     {withLimits(`[{name: world, scope: Federated}]`), "spec.limits[0].budgetRef", "set budgetRef.name to a FederatedBudget of this namespace, or set scope to Fleet and rates"},
	"a budget without a name":        {withLimits(`[{name: world, scope: Federated, budgetRef: {}}]`), "spec.limits[0].budgetRef.name", "Required value"},
	"a budget that is not a name":    {withLimits(`[{name: world, scope: Federated, budgetRef: {name: acme/checkout}}]`), "spec.limits[0].budgetRef.name", "not the name of a FederatedBudget"},
	"Federated with rates":           {drawing(`rates: [{limit: 1, window: 1s}]`), "spec.limits[0].rates", "remove rates, or set scope to Fleet"},
	"Federated with a key":           {drawing(`key: {parts: [{type: Path}]}`), "spec.limits[0].key", "remove key here and set spec.key there, or set scope to Fleet"},
	"Federated with overrides":       {drawing(`overrides: [{values: [{parts: [/a]}], rates: [{limit: 1, window: 1s}]}]`), "spec.limits[0].overrides", "set spec.key.overrides there, or set scope to Fleet"},
	"Federated of any":               {drawing(`combine: Any`), "spec.limits[0].combine", "remove combine, or set scope to Fleet"},
	"a federated bucket":             {drawing(`algorithm: TokenBucket`), "spec.limits[0].algorithm", "set algorithm to FixedWindow, or set scope to Fleet"},
	"a federated quota":              {drawing(`algorithm: Quota`), "spec.limits[0].algorithm", "set algorithm to FixedWindow, or set scope to Fleet"},
	"a federated offset":             {drawing(`utcOffset: "+02:00"`), "spec.limits[0].utcOffset", "remove it, or set algorithm to Quota"},
	"federated buckets":              {drawing(`buckets: 60`), "spec.limits[0].buckets", "remove it, or set algorithm to SlidingWindow"},
	"a federated delay":              {drawing(`maxDelay: 1s`), "spec.limits[0].maxDelay", "remove it, or set algorithm to LeakyBucket"},
	"a part that is reserved here":   {drawing(`fairness: {` + aTenant + `, weights: [{tenant: a, weight: 1}], reserve: true}`), "spec.limits[0].fairness.reserve", "remove reserve, or set scope to Fleet"},
	"a federated limit in Redis":     {drawingWith(`store: {type: Redis, redis: {address: "redis:6379"}}`), "spec.store.type", "set store.type to Controller, or move that limit to a policy of its own"},
	"a federated limit in Postgres":  {drawingWith(`store: {type: Postgres, postgres: {address: "pg:5432", database: weir}}`), "spec.store.type", "set store.type to Controller"},
	"a federated limit carried over": {drawingWith(`consistency: {lease: {expiry: CarryOver}}`), "spec.consistency.lease.expiry", "set expiry to Coupled, or move the limit of scope Federated"},
	"a lifetime of federated units":  {drawingWith(`consistency: {lease: {lifetime: 1s}}`), "spec.consistency.lease.lifetime", "remove lifetime"},
}

func TestInvalidFederatedLimitsAreRefused(t *testing.T) {
	for name, tc := range invalidFederatedLimits {
		t.Run(name, func(t *testing.T) {
			requireRefused(t, newPolicy(t, tc.spec), tc)
		})
	}
}

func TestValidFederatedLimitsAreAccepted(t *testing.T) {
	for name, spec := range map[string]string{
		"the scope of every limit so far": withLimit(`scope: Fleet`),
		"a federated limit alone":         drawing(``),
		"what is said by default":         drawing(`algorithm: FixedWindow, combine: All`),
		"what every limit may have":       drawing(`mode: Shadow, match: [{methods: [GET]}], exempt: [{methods: [PUT]}], cost: {max: 5, requestHeader: x-cost}`),
		"tenants of several clusters":     drawing(`fairness: {tenant: {type: Header, header: {name: x-tenant}}}`),
		"beside a limit of the fleet":     drawingWith(`store: {type: Controller}, consistency: {lease: {size: {type: Fixed, batch: 10}, expiry: Coupled}}`),
		"asked for each request":          drawingWith(`consistency: {mode: Strict}`),
		"32 federated limits":             withLimits(repeat(32, `{name: l%d, scope: Federated, budgetRef: {name: b%d}}`)),
		"a bucket beside it":              withLimits(`[{name: world, scope: Federated, budgetRef: {name: a}}, {name: all, algorithm: TokenBucket, rates: [{limit: 1, window: 1s, burst: 5}]}]`),
	} {
		t.Run(name, func(t *testing.T) {
			if err := server.Create(t.Context(), newPolicy(t, spec), client.DryRunAll, client.FieldValidation("Strict")); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestUpdatesOfFederatedLimits(t *testing.T) {
	cases := map[string]struct {
		from, to string
		want     string // field of the only error; empty: accepted
	}{
		"a limit of the fleet is federated":     {withSpec(``), drawing(``), ""},
		"a federated limit is of the fleet":     {drawing(``), withSpec(``), ""},
		"a limit in Redis is federated":         {withRedis(`redis:6379`), drawing(``), ""},
		"the budget is another":                 {drawing(``), withLimits(`[{name: world, scope: Federated, budgetRef: {name: other}}]`), ""},
		"the rates of a federated limit remain": {withSpec(``), drawing(`rates: [{limit: 1, window: 1s}]`), "spec.limits[0].rates"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			requireUpdate(t, newPolicy(t, tc.from), newPolicy(t, tc.to), tc.want)
		})
	}
}

func TestAFederatedLimitHasNoDefaults(t *testing.T) {
	requireDefaulted(t, newPolicy(t, drawing(``)), []string{"limits"},
		`[{name: world, scope: Federated, budgetRef: {name: checkout-world}, algorithm: FixedWindow, combine: All}]`)
}
