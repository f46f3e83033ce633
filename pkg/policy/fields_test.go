package policy_test

import (
	"testing"

	"github.com/weir-dev/weir/internal/testing/fieldtest"
	"github.com/weir-dev/weir/pkg/policy"
)

// TestEveryFieldIsEncoded, and read again.
func TestEveryFieldIsEncoded(t *testing.T) {
	others := valid(func(p *policy.Policy) {
		p.OnStoreUnavailable, p.Response = policy.Deny, policy.Response{
			IETF: true, Quota: policy.NearLimit, StatusCode: 429, Body: policy.ProblemJSON,
		}
		p.JWTProviders = []policy.JWTProvider{{Name: "others", Issuer: "others", Algorithms: []string{"PS256"}, Secret: "shop/others"}}
		p.Limits = append(p.Limits, policy.Limit{Name: "more", Rates: p.Limits[0].Rates}, policy.Limit{Name: "most", Rates: p.Limits[0].Rates})
		p.AnyOf = [][]string{{"more", "most"}}
		l := &p.Limits[0]
		l.Match = []policy.Match{{Headers: []policy.HeaderMatch{{Type: policy.Exact, Name: "x-region", Value: "eu"}}}}
		l.Key = &policy.Key{Parts: []policy.KeyPart{{Type: policy.PathKey}}, OnMissing: policy.Shared, MaxKeys: 7}
		l.Overrides = []policy.Override{{Values: []policy.Value{{"/a"}}, Rates: l.Rates}}
		l.Algorithm, l.Fairness = policy.FixedWindow, &policy.Fairness{Tenant: policy.KeyPart{Type: policy.MethodKey}, DefaultWeight: 1}
	})
	byDemand := pooled(func(p *policy.Pool) { p.Allocation = policy.DemandProportional })
	overHTTP := valid(func(p *policy.Policy) {
		p.Store = policy.Store{Type: policy.RedisStore, REST: true, Address: "https://redis.example.com", TLS: true, Secret: "shop/redis"}
	})
	through := valid(func(p *policy.Policy) {
		p.Store = policy.Store{Type: policy.RedisStore, Address: "r:1", Secret: "shop/redis", SecretVersion: "1", Gateway: true}
	})
	several := pooled()
	several.Pools = []policy.Pool{*pooled(func(p *policy.Pool) { p.Name = "matched" }).Pool}
	several.Pools[0].Match = []policy.Match{{Methods: []string{"GET"}}}
	inputs := []*policy.Snapshot{&others, &byDemand, &overHTTP, &through, &several}
	for _, s := range goldens {
		inputs = append(inputs, &s)
	}
	fieldtest.Matter(t, inputs, func(s *policy.Snapshot) (any, error) {
		data, _, err := policy.Encode(*s)
		if err != nil {
			return nil, err
		}
		return policy.Decode(data)
	}, "Store.Gateway") // by which another store is sent: TestAGatewayIsSentAsAName
}
