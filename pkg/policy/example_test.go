package policy_test

import (
	"fmt"
	"net/http"

	"github.com/weir-dev/weir/pkg/limiter"
	"github.com/weir-dev/weir/pkg/policy"
)

// A limit by tenant matches writes below a path. Its key is a header.
func Example() {
	set, err := policy.Compile(policy.Snapshot{Cluster: "eu-west", Policies: []policy.Policy{{
		Namespace: "shop", Name: "checkout", Generation: 1,
		Mode: policy.Enforce, OnStoreUnavailable: policy.Deny,
		Store:       policy.Store{Type: policy.ControllerStore},
		Consistency: policy.Consistency{Mode: policy.Leased, Size: policy.Fixed, Batch: 8, Expiry: policy.Coupled},
		Limits: []policy.Limit{{
			Name:  "orders-by-tenant",
			Match: []policy.Match{{Methods: []string{"POST"}, Paths: []policy.PathMatch{{Type: policy.PathPrefix, Value: "/orders"}}}},
			Key:   &policy.Key{Parts: []policy.KeyPart{{Type: policy.HeaderKey, Header: "X-Tenant"}}, OnMissing: policy.Shared, MaxKeys: 1000},
			Rates: []limiter.Rate{{Limit: 100, Window: limiter.Second}},
		}},
	}}})
	if err != nil {
		fmt.Println(err)
		return
	}
	limit := set.Lookup("shop", "checkout", "orders-by-tenant")
	for _, target := range []string{"POST /orders/7", "POST /basket", "GET /orders/7"} {
		var method, path string
		fmt.Sscan(target, &method, &path)
		r, _ := http.NewRequest(method, "http://shop.example"+path, nil)
		r.Header.Set("X-Tenant", "blue")
		request := policy.NewRequest(r)
		value, _, _ := limit.Value(&request)
		fmt.Println(target, limit.Matches(&request), value)
	}
	// Output:
	// POST /orders/7 true blue
	// POST /basket false blue
	// GET /orders/7 false blue
}
