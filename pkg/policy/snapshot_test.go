package policy_test

import (
	"strings"
	"testing"

	"github.com/weir-dev/weir/pkg/limiter"
	"github.com/weir-dev/weir/pkg/policy"
)

// valid returns a snapshot with one policy, changed by the given functions.
func valid(changes ...func(*policy.Policy)) policy.Snapshot {
	p := policy.Policy{
		Namespace: "shop", Name: "checkout", Generation: 3,
		Mode:               policy.Enforce,
		Store:              policy.Store{Type: policy.ControllerStore},
		Consistency:        policy.Consistency{Mode: policy.Leased, Size: policy.Fixed, Batch: 10, Expiry: policy.Coupled},
		OnStoreUnavailable: policy.LocalShare,
		Limits:             []policy.Limit{{Name: "all", Rates: []limiter.Rate{{Limit: 100, Window: limiter.Second}}}},
	}
	for _, change := range changes {
		change(&p)
	}
	return policy.Snapshot{Cluster: "test", Policies: []policy.Policy{p}}
}

// queued returns a snapshot with what full does not have: a queue, kept in Postgres.
func queued() policy.Snapshot {
	return valid(func(p *policy.Policy) {
		p.Store = policy.Store{Type: policy.PostgresStore, Address: "pg.shop.svc", Database: "weir"}
		p.Consistency = policy.Consistency{Mode: policy.Strict}
		p.Limits[0].Algorithm, p.Limits[0].MaxDelay = policy.LeakyBucket, limiter.Second
	})
}

// carried returns a snapshot with leases that carry over, from a Redis Cluster.
func carried() policy.Snapshot {
	return valid(func(p *policy.Policy) {
		p.Store = policy.Store{Type: policy.RedisStore, Address: "a:6379,b:6379", Cluster: true}
		p.Consistency.Expiry = policy.CarryOver
	})
}

// pending returns a snapshot with a limit that is not in force at its store yet.
func pending() policy.Snapshot {
	return valid(func(p *policy.Policy) { p.Limits[0].Pending = true })
}

// full returns a snapshot in which almost every field is used.
func full() policy.Snapshot {
	return valid(func(p *policy.Policy) {
		p.Mode = policy.Shadow
		p.Store = policy.Store{
			Type: policy.RedisStore, Address: "a.shop.svc:26379,b.shop.svc:26379", Sentinel: "mymaster",
			TLS: true, Secret: "shop/redis", SecretVersion: "7",
		}
		p.Since, p.Draining = 1_800_000_000_000_000, true
		p.Consistency = policy.Consistency{
			Mode: policy.Leased, Size: policy.Predictive, Batch: 10, Min: 2, Max: 20, Expiry: policy.Coupled,
			LowWater: 5, ReturnIdleAfter: limiter.Second,
		}
		p.ClientIP = policy.ClientIP{TrustedCIDRs: []string{"10.0.0.0/8", "fd00::/8"}}
		p.Limits = append(p.Limits, policy.Limit{
			Name: "per-tenant",
			Match: []policy.Match{{
				Methods: []string{"POST"},
				Paths:   []policy.PathMatch{{Type: policy.PathPrefix, Value: "/v1/orders"}, {Type: policy.RegularExpression, Value: `/v\d+/.*`}},
				Headers: []policy.HeaderMatch{{Type: policy.Present, Name: "x-tenant"}},
			}},
			Key: &policy.Key{
				Parts:     []policy.KeyPart{{Type: policy.HeaderKey, Header: "x-tenant"}, {Type: policy.ClientIPKey}},
				OnMissing: policy.Reject,
				MaxKeys:   1000,
			},
			Rates: []limiter.Rate{{Limit: 5, Window: limiter.Second}, {Limit: 100, Window: 60 * limiter.Second}},
			Overrides: []policy.Override{{
				Values: []policy.Value{{"gold", "192.0.2.1"}, {"gold", "2001:db8::/64"}},
				Rates:  []limiter.Rate{{Limit: 50, Window: limiter.Second}},
			}},
			Cost: &policy.Cost{Default: 2, Max: 5, RequestHeader: "x-cost", ResponseHeader: "x-used"},
		}, policy.Limit{
			Name: "sliding", Mode: policy.Shadow,
			Exempt:    []policy.Match{{Paths: []policy.PathMatch{{Type: policy.Exact, Value: "/healthz"}}}},
			Algorithm: policy.SlidingWindow, Buckets: 60, Any: true, Lifetime: 50 * limiter.Millisecond,
			Rates: []limiter.Rate{{Limit: 5, Window: limiter.Second}, {Limit: 100, Window: 60 * limiter.Second}},
		}, policy.Limit{
			Name: "plan", Algorithm: policy.FixedWindow,
			Rates: []limiter.Rate{{Limit: 5, Window: limiter.MaxWindow, Offset: -limiter.Second, Monthly: true}},
			Fairness: &policy.Fairness{
				Tenant:        policy.KeyPart{Type: policy.HeaderKey, Header: "x-tenant"},
				Weights:       []policy.Weight{{Tenant: "gold", Weight: 4}, {Tenant: "silver", Weight: 1}},
				DefaultWeight: 1,
			},
		}, policy.Limit{
			Name: "bucket", Algorithm: policy.TokenBucket, Lifetime: limiter.Millisecond,
			Rates: []limiter.Rate{{Limit: 5, Window: limiter.Second, Burst: 9}},
		})
	})
}

// publicKey is a key that tokens can be verified with, that of RFC 8037, appendix A.
const publicKey = `{"keys":[{"kty":"OKP","kid":"a","crv":"Ed25519","x":"11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"}]}`

// verified returns a snapshot with claims of tokens that are verified.
func verified() policy.Snapshot {
	return valid(func(p *policy.Policy) {
		p.JWTProviders = []policy.JWTProvider{
			{Name: "accounts", Issuer: "https://accounts.example.com", Audiences: []string{"shop", "api"}, Algorithms: []string{"RS256", "EdDSA"}, ClockSkew: 60 * limiter.Second, URL: "https://accounts.example.com/jwks", Keys: publicKey},
			{Name: "partners", Issuer: "partners", Algorithms: []string{"ES256"}, Secret: "shop/partners"},
			{Name: "robots", Issuer: "robots", Algorithms: []string{"EdDSA"}, Keys: publicKey},
		}
		l := &p.Limits[0]
		l.Match = []policy.Match{{JWTClaims: []policy.ClaimMatch{{Type: policy.Present, Header: "Authorization", Claim: "sub", Provider: "accounts"}}}}
		l.Exempt = []policy.Match{{JWTClaims: []policy.ClaimMatch{{Type: policy.Exact, Header: "X-Token", Claim: "plan", Value: "gold", Provider: "partners"}}}}
		l.Key = &policy.Key{
			Parts:     []policy.KeyPart{{Type: policy.JWTClaimKey, Header: "Authorization", Name: "sub", Provider: "accounts"}},
			OnMissing: policy.Reject, MaxKeys: 10,
		}
		l.Fairness = &policy.Fairness{
			Tenant: policy.KeyPart{Type: policy.JWTClaimKey, Header: "X-Token", Name: "org", Provider: "robots"}, DefaultWeight: 1,
		}
	})
}

// reset returns a snapshot with a policy that had a counter set back.
func reset() policy.Snapshot {
	return valid(func(p *policy.Policy) { p.ResetAt = 1_800_000_000_000_000 })
}

// kept returns a snapshot with a limit whose counters outlive their store.
func kept() policy.Snapshot {
	return valid(func(p *policy.Policy) {
		p.Limits[0].Retention = limiter.Retention{
			Durable: true, Resume: true, Born: []limiter.MemoryID{1, 1<<64 - 1},
		}
	})
}

// shared returns a snapshot with a limit that draws from a budget, and one that does
// not.
func shared(changes ...func(*policy.Policy)) policy.Snapshot {
	return valid(append([]func(*policy.Policy){func(p *policy.Policy) {
		p.Limits = append(p.Limits, policy.Limit{
			Name: "world", Algorithm: policy.FixedWindow,
			Rates:  []limiter.Rate{{Limit: 100_000, Window: limiter.Second}},
			Budget: &policy.BudgetRef{ID: "acme/checkout", Name: "checkout-world"},
			Fairness: &policy.Fairness{
				Tenant: policy.KeyPart{Type: policy.HeaderKey, Header: "x-tenant"}, DefaultWeight: 1,
			},
		})
	}}, changes...)...)
}

// selective returns a snapshot with a limit that selects by all that requests have, one
// of descriptors, and a response of its own.
func selective() policy.Snapshot {
	return valid(func(p *policy.Policy) {
		p.Response = policy.Response{XRateLimit: true, Quota: policy.Always, GRPCUnavailable: true, StatusCode: 503, Jitter: 100, Body: policy.NoBody}
		p.Limits[0].Match = []policy.Match{{
			Hosts:       []string{"shop.example.com", "*.example.org", "fd00::1"},
			QueryParams: []policy.QueryMatch{{Type: policy.Exact, Name: "q", Value: "1"}},
			SourceCIDRs: []string{"192.0.2.0/24", "2001:db8::/32"},
			JWTClaims:   []policy.ClaimMatch{{Type: policy.RegularExpression, Header: "Authorization", Claim: "realm.roles", Value: "a.*"}},
			GRPC:        &policy.GRPCMatch{Service: "shop.v1.Orders", Method: "Create"},
			Expression:  "request.method == 'POST'",
		}}
		p.Limits[0].Key = &policy.Key{
			Parts: []policy.KeyPart{
				{Type: policy.HostKey},
				{Type: policy.QueryParamKey, Name: "q"},
				{Type: policy.JWTClaimKey, Header: "X-Token", Name: "sub"},
				{Type: policy.ExpressionKey, Expression: "request.path"},
			},
			OnMissing: policy.Shared, MaxKeys: 10,
		}
		p.Limits = append(p.Limits, policy.Limit{
			Name:  "calls",
			Match: []policy.Match{{Descriptors: []policy.DescriptorMatch{{Key: "client", Value: "web"}, {Key: "user"}}}},
			Key:   &policy.Key{Parts: []policy.KeyPart{{Type: policy.DescriptorKey, Name: "user"}}, OnMissing: policy.Skip, MaxKeys: 10},
			Rates: p.Limits[0].Rates,
		})
	})
}

// TestAGatewayIsSentAsAName that is the same as long as the store is, and has nothing of it.
func TestAGatewayIsSentAsAName(t *testing.T) {
	of := policy.Store{
		Type: policy.RedisStore, Address: "cache.shop.svc:6379", Sentinel: "primary", TLS: true,
		Secret: "shop/redis-login", SecretVersion: "4711",
	}
	if of.Sent() != of {
		t.Errorf("a store that sidecars connect to is sent as %+v", of.Sent())
	}
	of.Gateway = true
	in := valid(func(p *policy.Policy) { p.Store = of })
	data, version, err := policy.Encode(in)
	if err != nil {
		t.Fatal(err)
	}
	for _, hidden := range []string{"cache", "6379", "primary", "login", "4711", "Redis", "tls"} {
		if strings.Contains(string(data), hidden) {
			t.Errorf("%q is sent in %s", hidden, data)
		}
	}
	if in.Policies[0].Store != of {
		t.Error("what was encoded has changed")
	}
	out, err := policy.Decode(data)
	if err != nil {
		t.Fatal(err)
	}
	if again, same, err := policy.Encode(out); err != nil || same != version || string(again) != string(data) {
		t.Errorf("what was sent is encoded as %s, error %v", again, err)
	}
	sent := out.Policies[0].Store
	if sent != of.Sent() || sent.Type != policy.GatewayStore || strings.Contains(sent.Name(), "cache") {
		t.Errorf("it is sent as %+v, called %s", sent, sent.Name())
	}
	for name, tc := range map[string]struct {
		change func(*policy.Store)
		same   bool
	}{
		"a version of the Secret": {func(s *policy.Store) { s.SecretVersion = "2" }, true},
		"another Secret":          {func(s *policy.Store) { s.Secret = "shop/other" }, false},
		"another type":            {func(s *policy.Store) { s.Type = policy.PostgresStore }, false},
		"another address":         {func(s *policy.Store) { s.Address = "other:1" }, false},
		"over HTTP":               {func(s *policy.Store) { s.REST = true }, false},
		"a cluster":               {func(s *policy.Store) { s.Cluster = true }, false},
		"another primary":         {func(s *policy.Store) { s.Sentinel = "other" }, false},
		"a database":              {func(s *policy.Store) { s.Database = "d" }, false},
		"no encryption":           {func(s *policy.Store) { s.TLS = false }, false},
	} {
		other := of
		tc.change(&other)
		if same := other.Sent() == of.Sent(); same != tc.same {
			t.Errorf("%s is sent as the same store: %t", name, same)
		}
	}
}
