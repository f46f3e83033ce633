package enforce_test

import (
	"context"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-dev/weir/internal/sidecar/enforce"
	"github.com/weir-dev/weir/pkg/limiter"
	"github.com/weir-dev/weir/pkg/policy"
	"github.com/weir-dev/weir/pkg/store"
	"github.com/weir-dev/weir/pkg/twotier"
)

// TestEveryFieldReachesTheEngine compares what engines are made of with what the
// policy says.
func TestEveryFieldReachesTheEngine(t *testing.T) {
	kept := limiter.Retention{Durable: true, Resume: true, Born: []limiter.MemoryID{7}}
	bucket := limitOf("bucket", 10, byTenant(policy.Shared), func(l *policy.Limit) {
		l.Algorithm, l.Lifetime = policy.TokenBucket, 2*limiter.Second
		l.Rates = []limiter.Rate{{Limit: 10, Window: limiter.Second, Burst: 50}}
		l.Retention = kept
		l.Overrides = []policy.Override{{
			Values: []policy.Value{{"gold"}}, Rates: []limiter.Rate{{Limit: 20, Window: limiter.Second, Burst: 90}},
		}}
	})
	any := limitOf("any", 10, func(l *policy.Limit) {
		l.Any = true
		l.Rates = append(l.Rates, limiter.Rate{Limit: 5, Window: limiter.Second})
	})
	leased := policyOf(bucket, any)
	leased.Consistency = policy.Consistency{
		Mode: policy.Leased, Size: policy.Predictive, Batch: 7, Min: 2, Max: 30, Expiry: policy.Coupled,
		LowWater: 3, ReturnIdleAfter: 4 * limiter.Second,
	}
	leased.OnStoreUnavailable, leased.Since, leased.Generation = policy.LocalShare, 77, 5
	asking := policyOf(limitOf("asking", 10, func(l *policy.Limit) {
		l.Algorithm, l.Buckets = policy.SlidingWindow, 12
	}))
	asking.Name, asking.OnStoreUnavailable = "asking", policy.Allow
	asking.Consistency = policy.Consistency{Mode: policy.CachedDeny}
	shaping := policyOf(limitOf("shaping", 10, func(l *policy.Limit) {
		l.Algorithm, l.MaxDelay, l.Pending = policy.LeakyBucket, limiter.Second, true
	}))
	shaping.Name, shaping.Draining = "shaping", true
	shaping.Consistency = policy.Consistency{Mode: policy.Strict}

	carrying := policyOf(limitOf("carrying", 10))
	carrying.Name = "carrying"
	carrying.Consistency = policy.Consistency{Mode: policy.Leased, Size: policy.Fixed, Batch: 7, Expiry: policy.CarryOver}

	made := map[string]twotier.Config{}
	e := newEnforcer(t, nil, func(c *enforce.Config) {
		c.NewLimiter = func(cfg twotier.Config, _ twotier.Store) (enforce.Limiter, error) {
			made[cfg.Scope.Limit] = cfg
			return &engine{closed: make(chan struct{})}, nil
		}
	})
	e.SetHolders("shop", "checkout", 9)
	apply(t, e, asking, carrying, leased, shaping)

	of := func(policy, limit string) store.Scope {
		return store.Scope{Cluster: "test", Namespace: "shop", Policy: policy, Limit: limit}
	}
	params := limiter.Params{
		Algorithm: limiter.TokenBucket, Rates: bucket.Rates, Lifetime: 2 * limiter.Second, Since: 77, Generation: 5,
		Retention: kept,
	}
	gold := params
	gold.Rates = bucket.Overrides[0].Rates
	size := twotier.Size{Type: twotier.Predictive, Batch: 7, Min: 2, Max: 30}
	want := map[string]twotier.Config{
		"bucket": {
			Scope: of("checkout", "bucket"), Params: params, Overrides: map[string]limiter.Params{"gold": gold},
			Mode: twotier.Leased, Size: size, Expiry: twotier.Coupled, LowWater: 3, ReturnIdleAfter: 4 * time.Second,
			MaxKeys: 100, SharedKeys: 12, OnUnavailable: twotier.LocalShare, Holders: 9,
		},
		"any": {
			Scope: of("checkout", "any"), Params: limiter.Params{Rates: any.Rates, Any: true, Since: 77, Generation: 5},
			Mode: twotier.Leased, Size: size, Expiry: twotier.Coupled, LowWater: 3, ReturnIdleAfter: 4 * time.Second,
			MaxKeys: 1, SharedKeys: 1, OnUnavailable: twotier.LocalShare, Holders: 9,
		},
		"asking": {
			Scope:  of("asking", "asking"),
			Params: limiter.Params{Algorithm: limiter.SlidingWindow, Rates: asking.Limits[0].Rates, Buckets: 12, Generation: 1},
			Mode:   twotier.CachedDeny, MaxKeys: 1, SharedKeys: 1, OnUnavailable: twotier.Allow,
		},
		"carrying": {
			Scope:  of("carrying", "carrying"),
			Params: limiter.Params{Rates: carrying.Limits[0].Rates, Generation: 1},
			Mode:   twotier.Leased, Size: twotier.Size{Type: twotier.Fixed, Batch: 7}, Expiry: twotier.CarryOver,
			MaxKeys: 1, SharedKeys: 1, OnUnavailable: twotier.Deny,
		},
		"shaping": {
			Scope:  of("shaping", "shaping"),
			Params: limiter.Params{Algorithm: limiter.LeakyBucket, Rates: shaping.Limits[0].Rates, MaxDelay: limiter.Second, Generation: 1},
			Mode:   twotier.Strict, MaxKeys: 1, SharedKeys: 1, OnUnavailable: twotier.Deny, Draining: true, Pending: true,
		},
	}
	if diff := cmp.Diff(want, made); diff != "" {
		t.Errorf("engines are made of (-want +got):\n%s", diff)
	}
}

// retentions records how the store is to keep the counters that it is asked for.
type retentions chan limiter.Retention

func (r retentions) Apply(_ context.Context, _ store.Key, p limiter.Params, c limiter.Command) (limiter.Result, error) {
	r <- p.Retention
	return limiter.Result{Granted: c.Min, Limit: 10, ExpiresIn: limiter.Second, ResetAfter: limiter.Second}, nil
}

// TestTheRetentionReachesTheStore also follows a change of it alone, which comes without
// another generation once a limit was put in force.
func TestTheRetentionReachesTheStore(t *testing.T) {
	asked := make(retentions, 1)
	e := newEnforcer(t, asked)
	for _, want := range []limiter.Retention{
		{},
		{Durable: true, Resume: true, Born: []limiter.MemoryID{1, 2}},
		{Durable: true, Born: []limiter.MemoryID{3}},
	} {
		p := policyOf(limitOf("all", 10, byTenant(policy.Shared), func(l *policy.Limit) {
			l.Retention = want
			l.Overrides = []policy.Override{{Values: []policy.Value{{"gold"}}, Rates: []limiter.Rate{{Limit: 20, Window: hour}}}}
		}))
		p.Consistency = policy.Consistency{Mode: policy.Strict}
		apply(t, e, p)
		for _, tenant := range []string{"tin", "gold"} {
			if got := admit(t, e, 1, "/ x-tenant:"+tenant); got != 1 {
				t.Fatalf("admitted %d, want 1", got)
			}
			if diff := cmp.Diff(want, <-asked); diff != "" {
				t.Errorf("the store keeps the counter of %s by (-want +got):\n%s", tenant, diff)
			}
		}
	}
}
