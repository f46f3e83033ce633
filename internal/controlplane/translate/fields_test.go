package translate_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/weir-dev/weir/api/v1alpha1"
	"github.com/weir-dev/weir/internal/controlplane/translate"
	"github.com/weir-dev/weir/internal/testing/fieldtest"
)

// inputs reads all golden inputs of a directory, all samples of the kind, and more.
func inputs[T any](t *testing.T, dir, kind string, read func(*testing.T, []byte) *T, more ...string) []*T {
	t.Helper()
	golden, _ := filepath.Glob(filepath.Join("testdata", dir, "*"+inSuffix)) // the pattern is sound
	samples, _ := filepath.Glob(filepath.Join("..", "..", "..", "config", "samples", "*.yaml"))
	var all []*T
	for _, file := range append(golden, samples...) {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if strings.HasSuffix(file, inSuffix) || strings.Contains(string(text), "\nkind: "+kind+"\n") {
			all = append(all, read(t, text))
		}
	}
	for _, text := range more {
		all = append(all, read(t, []byte(text)))
	}
	return all
}

func TestEveryFieldOfAPolicyIsRead(t *testing.T) {
	var hubs []*v1alpha1.FederatedBudget
	for name, fields := range map[string]string{"checkout-world": ``, "other-world": ``, "users-world": `allocation: FirstCome, key: {parts: [{type: Path}]}`} {
		hubs = append(hubs, defaultedBudget(t, []byte(`{metadata: {name: `+name+`, namespace: shop}, spec: {id: acme/`+name+`, rate: {limit: 100, window: 1s}, members: [{name: `+self+`}], `+fields+`}}`)))
	}
	fieldtest.Matter(t, inputs(t, "policy", "RateLimitPolicy", defaulted, `
spec:
  podSelector: {}
  limits:
  - {name: all, scope: Federated, budgetRef: {name: other-world}, fairness: {tenant: {type: ClientIP}, weights: [{tenant: 192.0.2.1, weight: 2}]}}
`, `
spec:
  podSelector: {}
  limits: [{name: users, scope: Federated, budgetRef: {name: users-world}}]
`, `
spec:
  podSelector: {}
  jwtProviders: [{name: others, issuer: others, jwks: {secretRef: {name: other-keys}}}]
  limits: [{name: all, rates: [{limit: 10, window: 1s}]}, {name: more, rates: [{limit: 20, window: 1s}]}]
  anyOf: [{limits: [more, all]}]
`, `
spec:
  podSelector: {}
  store: {type: Redis, access: Gateway, redis: {rest: {url: "https://redis.example.com"}, secretRef: {name: redis}}}
  limits: [{name: all, rates: [{limit: 10, window: 1s}]}]
`), func(p *v1alpha1.RateLimitPolicy) (any, error) {
		p.Namespace, p.Name = "shop", "all"
		return translate.Policy(p, counting(hubs...))
	}, "RateLimitPolicy.TypeMeta", "RateLimitPolicy.ObjectMeta", "RateLimitPolicy.Status",
		"RateLimitPolicySpec.PodSelector",
		"Policy.Namespace", "Policy.Name", // of the metadata, as the golden files show
		"Policy.ResetAt",      // of an annotation: TestResetOf
		"Retention.Born",      // of what the leader remembers
		"Limit.Pending",       // the same
		"Store.SecretVersion", // of another object
	)
}

func TestEveryFieldOfAPoolIsRead(t *testing.T) {
	fieldtest.Matter(t, inputs(t, "pool", "ConcurrencyPool", defaultedPool, `
spec:
  podSelector: {}
  limit: {max: 40}
  algorithm: {type: Gradient2, baseline: {type: Rolling, samples: 50}}
  coordinator: {type: Redis, redis: {cluster: {addresses: ["a:6379", "b:6379"]}}}
  exempt:
  - hosts: [shop.example.com]
    queryParams: [{name: q, value: "1"}, {type: Present, name: page}]
    sourceCIDRs: [192.0.2.0/24]
    jwtClaims: [{claim: plan, value: free}, {header: x-token, claim: realm.roles, type: RegularExpression, value: "a.*"}]
    headers: [{type: Present, name: x-probe}]
    expression: request.method == 'GET'
  - grpc: {service: grpc.health.v1.Health, method: Check}
`, `
spec:
  podSelector: {}
  limit: {max: 40}
  coordinator: {type: Redis, redis: {rest: {url: "https://redis.example.com"}, secretRef: {name: redis}}}
  key:
    limit: 4
    onMissing: Skip
    parts:
    - {type: Header, header: {name: x-tenant}}
    - {type: QueryParam, queryParam: {name: model}}
    - {type: JWTClaim, jwtClaim: {claim: sub, header: x-token}}
    - {type: Expression, expression: request.method}
`), func(p *v1alpha1.ConcurrencyPool) (any, error) {
		p.Namespace, p.Name = "shop", "all"
		return translate.Pool(p)
	}, "ConcurrencyPool.TypeMeta", "ConcurrencyPool.ObjectMeta", "ConcurrencyPool.Status",
		"ConcurrencyPoolSpec.PodSelector", "Match.Descriptors",
		"JWTClaimMatch.Verification", "JWTClaimMatch.Provider", "ClaimMatch.Provider", // it has no providers
		"JWTClaimKey.Verification", "JWTClaimKey.Provider", "KeyPart.Provider", "KeyPart.Descriptor", "DescriptorEntryKey.Key", // nor do its keys
		"Pool.Namespace", "Pool.Name", // of the metadata, as the golden files show
		"Store.Gateway",       // of policies only
		"Store.SecretVersion") // of another object
}

func TestEveryFieldOfABudgetIsRead(t *testing.T) {
	fieldtest.Matter(t, inputs(t, "budget", "FederatedBudget", defaultedBudget, `
metadata: {name: checkout, namespace: shop}
spec:
  id: acme/checkout
  rate: {limit: 1000, window: 1m}
  additionalRates: [{limit: 20000, window: 1h}]
  members: [{name: eu-west}]
  coordinator: {blockPercent: 5}
  escrow: {type: Redis, redis: {cluster: {addresses: ["a:6379", "b:6379"]}}}
`, `
metadata: {name: checkout, namespace: shop}
spec:
  id: acme/checkout
  rate: {limit: 1000, window: 1m}
  key: {parts: [{type: Header, header: {name: x-user}}, {type: Descriptor, descriptor: {key: user}}], overrides: [{limit: 7, values: [{parts: [a, b]}]}]}
  allocation: FirstCome
  members: [{name: eu-west}]
`, `
metadata: {name: checkout, namespace: shop}
spec:
  id: acme/checkout
  rate: {limit: 1000, window: 1m}
  members: [{name: eu-west}]
  coordinator: {type: Redis, redis: {rest: {url: "https://redis.example.com"}, secretRef: {name: redis}}}
`), func(b *v1alpha1.FederatedBudget) (any, error) {
		return translate.Budget(b, b.Spec.Members[0].Name)
	}, "FederatedBudget.TypeMeta", "FederatedBudget.ObjectMeta", "FederatedBudget.Status",
		"Rate.Burst", "Rate.Monthly", "Rate.Offset", // windows of a budget are plain
		"FederatedBudget.Of",                       // of its further rates
		"Store.Gateway",                            // of policies only
		"Hub.SecretVersion", "Store.SecretVersion") // of another object
}
