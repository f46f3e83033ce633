package policy_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-dev/weir/pkg/limiter"
	"github.com/weir-dev/weir/pkg/policy"
	"github.com/weir-dev/weir/pkg/store"
)

func TestParams(t *testing.T) {
	rates := []limiter.Rate{{Limit: 5, Window: limiter.Second}}
	p := &policy.Policy{Generation: 3, Since: 9}
	kept := limiter.Retention{Durable: true, Resume: true, Born: []limiter.MemoryID{5}}
	for name, tc := range map[string]struct {
		limit policy.Limit
		want  limiter.Params
	}{
		"a fixed window is what nothing names": {policy.Limit{}, limiter.Params{}},
		"a fixed window":                       {policy.Limit{Algorithm: policy.FixedWindow, Any: true}, limiter.Params{Any: true}},
		"a sliding window":                     {policy.Limit{Algorithm: policy.SlidingWindow, Buckets: 60, Lifetime: 7}, limiter.Params{Algorithm: limiter.SlidingWindow, Buckets: 60, Lifetime: 7}},
		"a sliding log":                        {policy.Limit{Algorithm: policy.SlidingLog}, limiter.Params{Algorithm: limiter.SlidingLog}},
		"a token bucket":                       {policy.Limit{Algorithm: policy.TokenBucket}, limiter.Params{Algorithm: limiter.TokenBucket}},
		"GCRA":                                 {policy.Limit{Algorithm: policy.GCRA}, limiter.Params{Algorithm: limiter.GCRA}},
		"a window that is reserved for tenants": {
			policy.Limit{Fairness: &policy.Fairness{Weights: []policy.Weight{{Tenant: "gold", Weight: 4}}, DefaultWeight: 2, Reserve: true}},
			limiter.Params{Fairness: limiter.Fairness{
				Weights: []limiter.Weight{{Tenant: store.HashValue(policy.JoinParts("gold")), Weight: 4}}, Default: 2, Reserve: true,
			}},
		},
		"a leaky bucket": {policy.Limit{Algorithm: policy.LeakyBucket, MaxDelay: 8}, limiter.Params{Algorithm: limiter.LeakyBucket, MaxDelay: 8}},
	} {
		t.Run(name, func(t *testing.T) {
			tc.limit.Rates, tc.want.Rates = rates, rates
			tc.limit.Retention, tc.want.Retention = kept, kept
			tc.want.Generation, tc.want.Since = 3, 9
			if diff := cmp.Diff(tc.want, tc.limit.Params(p)); diff != "" {
				t.Errorf("worked by (-want +got):\n%s", diff)
			}
		})
	}
}

// TestOverriddenIsNamedLikeRequests checks that a value's own rates are found by what
// its requests are counted under.
func TestOverriddenIsNamedLikeRequests(t *testing.T) {
	own := []limiter.Rate{{Limit: 7, Window: limiter.Second}}
	l := limitOf(t, func(p *policy.Policy) {
		p.Generation = 4
		keyed(policy.Shared, byTenant, policy.KeyPart{Type: policy.ClientIPKey})(p)
		p.Limits[0].Overrides = []policy.Override{{Values: []policy.Value{{"gold", "192.0.2.1"}, {"gold", "2001:db8:1:2::/64"}}, Rates: own}}
	})
	params := l.Limit.Overridden(l.Policy)
	for _, tc := range []struct {
		tenant, peer string
		want         int64
	}{
		{"gold", "192.0.2.1:99", 7},
		{"gold", "[2001:db8:1:2:3::4]:99", 7},
		{"gold", "192.0.2.2:99", 0},
		{"tin", "192.0.2.1:99", 0},
	} {
		r := request("GET / X-Tenant:" + tc.tenant)
		r.RemoteAddr = tc.peer
		value, _, _ := l.Value(view(r))
		got, ok := params[value]
		if ok != (tc.want != 0) || ok && (got.Rates[0].Limit != tc.want || got.Generation != 4) {
			t.Errorf("%s at %s is worked by %+v", tc.tenant, tc.peer, got)
		}
	}
}

func TestConsistencyOf(t *testing.T) {
	leased := policy.Consistency{Mode: policy.Leased, Size: policy.Fixed, Batch: 5, Expiry: policy.Coupled}
	for name, tc := range map[string]struct {
		limit       policy.Limit
		consistency policy.Consistency
		want        policy.ConsistencyMode
	}{
		"windows are leased":                  {policy.Limit{}, leased, policy.Leased},
		"a bucket with a lifetime is leased":  {policy.Limit{Algorithm: policy.GCRA, Lifetime: 1}, leased, policy.Leased},
		"a bucket without one asks each time": {policy.Limit{Algorithm: policy.GCRA}, leased, policy.CachedDeny},
		"a sum without one asks each time":    {policy.Limit{Algorithm: policy.SlidingLog}, leased, policy.CachedDeny},
		"a bucket may be strict":              {policy.Limit{Algorithm: policy.GCRA}, policy.Consistency{Mode: policy.Strict}, policy.Strict},
	} {
		t.Run(name, func(t *testing.T) {
			got := tc.limit.ConsistencyOf(&policy.Policy{Consistency: tc.consistency})
			if got.Mode != tc.want || got.Mode != policy.Leased && got != (policy.Consistency{Mode: got.Mode}) {
				t.Errorf("got %+v, want mode %s", got, tc.want)
			}
		})
	}
}

func TestCarry(t *testing.T) {
	lease := func(c policy.Consistency) policy.Consistency {
		c.Mode = policy.Leased
		return c
	}
	for name, tc := range map[string]struct {
		consistency policy.Consistency
		want        int64
	}{
		"nothing while credits die":                  {lease(policy.Consistency{Size: policy.Fixed, Batch: 10, Expiry: policy.Coupled}), 0},
		"nothing when nothing is leased":             {policy.Consistency{Mode: policy.Strict}, 0},
		"a batch but for one":                        {lease(policy.Consistency{Size: policy.Fixed, Batch: 10, Expiry: policy.CarryOver}), 9},
		"the largest that is learned":                {lease(policy.Consistency{Size: policy.Adaptive, Batch: 10, Max: 15, Expiry: policy.CarryOver}), 14},
		"no more than the limit, when it is learned": {lease(policy.Consistency{Size: policy.Adaptive, Batch: 10, Max: 50, Expiry: policy.CarryOver}), 19},
		"and what was left":                          {lease(policy.Consistency{Size: policy.Fixed, Batch: 10, LowWater: 4, Expiry: policy.CarryOver}), 13},
	} {
		t.Run(name, func(t *testing.T) {
			l := policy.Limit{Rates: []limiter.Rate{{Limit: 30, Window: limiter.Second}, {Limit: 20, Window: limiter.MinWindow}}}
			if got := l.Carry(&policy.Policy{Consistency: tc.consistency}); got != tc.want {
				t.Errorf("a holder carries %d, want %d", got, tc.want)
			}
		})
	}
}

func TestAtOnce(t *testing.T) {
	rates := []limiter.Rate{{Limit: 30, Window: limiter.Second, Burst: 5}, {Limit: 20, Window: 60 * limiter.Second}}
	for name, tc := range map[string]struct {
		limit policy.Limit
		want  int64
	}{
		"the smallest of all windows":      {policy.Limit{}, 20},
		"the largest of any windows":       {policy.Limit{Any: true}, 30},
		"the smallest burst":               {policy.Limit{Algorithm: policy.TokenBucket}, 5},
		"a burst without what lives":       {policy.Limit{Algorithm: policy.GCRA, Lifetime: 50 * limiter.Millisecond}, 3},
		"a burst without its last part":    {policy.Limit{Algorithm: policy.GCRA, Lifetime: 51 * limiter.Millisecond}, 3},
		"nothing when all of it lives":     {policy.Limit{Algorithm: policy.GCRA, Lifetime: limiter.Second}, 0},
		"the largest burst of any":         {policy.Limit{Algorithm: policy.GCRA, Any: true}, 20},
		"what waits, and whose turn it is": {policy.Limit{Algorithm: policy.LeakyBucket, MaxDelay: 4 * limiter.Second}, 2},
		"whose turn it is, at least":       {policy.Limit{Algorithm: policy.LeakyBucket, MaxDelay: 1}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			if got := tc.limit.AtOnce(rates); got != tc.want {
				t.Errorf("got %d, want %d", got, tc.want)
			}
		})
	}
}

func TestShadow(t *testing.T) {
	for name, tc := range map[string]struct {
		policy, limit policy.Mode
		want          bool
	}{
		"both enforce":                   {policy.Enforce, "", false},
		"the limit alone":                {policy.Enforce, policy.Shadow, true},
		"the policy":                     {policy.Shadow, "", true},
		"the policy, whatever the limit": {policy.Shadow, policy.Enforce, true},
		"the limit enforces explicitly":  {policy.Enforce, policy.Enforce, false},
	} {
		t.Run(name, func(t *testing.T) {
			l := limitOf(t, func(p *policy.Policy) { p.Mode, p.Limits[0].Mode = tc.policy, tc.limit })
			if l.Shadow() != tc.want {
				t.Errorf("got %v", l.Shadow())
			}
		})
	}
}

func TestCanonical(t *testing.T) {
	for name, tc := range map[string]struct {
		source      policy.KeySource
		value, want string // empty: refused
	}{
		"a header as it is":                 {policy.HeaderKey, "Gold", "Gold"},
		"nothing":                           {policy.HeaderKey, "", ""},
		"an IPv4 address":                   {policy.ClientIPKey, "192.0.2.1", "192.0.2.1"},
		"an IPv4 address in IPv6":           {policy.ClientIPKey, "::ffff:192.0.2.1", "192.0.2.1"},
		"an IPv6 address is its /64":        {policy.ClientIPKey, "2001:db8:1:2:3::4", "2001:db8:1:2::/64"},
		"a /64":                             {policy.ClientIPKey, "2001:DB8:1:2::/64", "2001:db8:1:2::/64"},
		"a /64 with bits beyond":            {policy.ClientIPKey, "2001:db8:1:2:3::/64", "2001:db8:1:2::/64"},
		"a network of several clients":      {policy.ClientIPKey, "2001:db8::/32", ""},
		"an IPv4 network":                   {policy.ClientIPKey, "192.0.2.0/24", ""},
		"a name":                            {policy.ClientIPKey, "localhost", ""},
		"a path":                            {policy.PathKey, "/a//b/../c", "/a/c"},
		"a path without a slash":            {policy.PathKey, "a", ""},
		"a method":                          {policy.MethodKey, "GET", "GET"},
		"a method that is not one":          {policy.MethodKey, "GET /", ""},
		"an address with a port is not one": {policy.ClientIPKey, "192.0.2.1:80", ""},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := policy.KeyPart{Type: tc.source}.Canonical(tc.value)
			if got != tc.want || (err == nil) != (tc.want != "") {
				t.Errorf("%q is %q, %v; want %q", tc.value, got, err, tc.want)
			}
		})
	}
}
