package policy_test

import (
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

// full returns a snapshot in which every field is used.
func full() policy.Snapshot {
	return valid(func(p *policy.Policy) {
		p.Mode = policy.Shadow
		p.Store = policy.Store{Type: policy.RedisStore, Address: "redis.shop.svc:6379"}
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
		})
	})
}
