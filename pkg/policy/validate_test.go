package policy_test

import (
	"strings"
	"testing"

	"github.com/weir-dev/weir/pkg/limiter"
	"github.com/weir-dev/weir/pkg/policy"
)

func TestValidateAcceptsEveryField(t *testing.T) {
	for _, s := range []policy.Snapshot{full(), queued(), carried(), shared(), selective()} {
		if err := s.Validate(); err != nil {
			t.Error(err)
		}
	}
}

func TestValidateNamesTheField(t *testing.T) {
	limit := func(change func(*policy.Limit)) func(*policy.Policy) {
		return func(p *policy.Policy) { change(&p.Limits[0]) }
	}
	key := func(change func(*policy.Key), more ...func(*policy.Limit)) func(*policy.Policy) {
		return limit(func(l *policy.Limit) {
			l.Key = &policy.Key{Parts: []policy.KeyPart{{Type: policy.MethodKey}}, OnMissing: policy.Shared, MaxKeys: 1}
			change(l.Key)
			for _, change := range more {
				change(l)
			}
		})
	}
	lease := func(change func(*policy.Consistency)) func(*policy.Policy) {
		return func(p *policy.Policy) { change(&p.Consistency) }
	}
	at := func(s policy.Store) func(*policy.Policy) { return func(p *policy.Policy) { p.Store = s } }
	strict := func(change func(*policy.Limit)) func(*policy.Policy) {
		return func(p *policy.Policy) { p.Consistency = policy.Consistency{Mode: policy.Strict}; change(&p.Limits[0]) }
	}
	carry := func(change func(*policy.Limit)) func(*policy.Policy) {
		return func(p *policy.Policy) { p.Consistency.Expiry = policy.CarryOver; change(&p.Limits[0]) }
	}
	override := func(values ...policy.Value) func(*policy.Policy) {
		return key(func(*policy.Key) {}, func(l *policy.Limit) { l.Overrides = []policy.Override{{Values: values, Rates: l.Rates}} })
	}
	broken := key(func(*policy.Key) {}, func(l *policy.Limit) {
		l.Overrides = []policy.Override{{Values: []policy.Value{{"GET"}}, Rates: []limiter.Rate{{Limit: 1, Window: 1}}}}
	})
	cost := func(c policy.Cost) func(*policy.Policy) { return limit(func(l *policy.Limit) { l.Cost = &c }) }
	any := func(groups ...[]string) func(*policy.Policy) {
		return func(p *policy.Policy) {
			for _, name := range []string{"a", "b", "shadow"} {
				p.Limits = append(p.Limits, policy.Limit{Name: name, Rates: p.Limits[0].Rates})
			}
			p.Limits[3].Mode = policy.Shadow
			p.AnyOf = groups
		}
	}
	fair := func(change func(*policy.Limit)) func(*policy.Policy) {
		return limit(func(l *policy.Limit) {
			l.Fairness = &policy.Fairness{Tenant: policy.KeyPart{Type: policy.MethodKey}, Weights: []policy.Weight{{Tenant: "GET", Weight: 1}}, DefaultWeight: 1}
			change(l)
		})
	}
	match := func(m policy.Match) func(*policy.Policy) {
		return limit(func(l *policy.Limit) { l.Match = []policy.Match{m} })
	}
	for name, tc := range map[string]struct {
		change func(*policy.Policy)
		want   string
	}{
		"a single alternative":        {any([]string{"a"}), "policies[0].anyOf[0]"},
		"an alternative twice":        {any([]string{"a", "a"}), `policies[0].anyOf[0][1] is "a" a second time`},
		"an alternative of two":       {any([]string{"a", "b"}, []string{"all", "b"}), `policies[0].anyOf[1][1] is "b" a second time`},
		"an alternative of others":    {any([]string{"a", "x"}), `policies[0].anyOf[0][1] is "x", which is not a limit of the policy`},
		"an alternative in shadow":    {any([]string{"a", "shadow"}), `policies[0].anyOf[0][1] is "shadow", which is in Shadow`},
		"more groups than are useful": {any(make([][]string, 9)...), "policies[0].anyOf"},
		"a namespace with a slash":    {func(p *policy.Policy) { p.Namespace = "a/b" }, "policies[0].namespace"},
		"no name":                     {func(p *policy.Policy) { p.Name = "" }, "policies[0].name"},
		"a negative generation":       {func(p *policy.Policy) { p.Generation = -1 }, "policies[0].generation"},
		"an unknown mode":             {func(p *policy.Policy) { p.Mode = "On" }, "policies[0].mode"},
		"an unknown store":            {func(p *policy.Policy) { p.Store.Type = "Disk" }, "policies[0].store.type"},
		"Redis without an address":    {func(p *policy.Policy) { p.Store.Type = policy.RedisStore }, "policies[0].store.address"},
		"Redis on port 0":             {func(p *policy.Policy) { p.Store = policy.Store{Type: policy.RedisStore, Address: "r:0"} }, "policies[0].store.address"},
		"Controller with an address":  {func(p *policy.Policy) { p.Store.Address = "a:1" }, "policies[0].store"},
		"an unknown consistency":      {func(p *policy.Policy) { p.Consistency.Mode = "Eventual" }, "policies[0].consistency.mode"},
		"Leased without a batch":      {func(p *policy.Policy) { p.Consistency.Batch = 0 }, "policies[0].consistency.batch"},
		"Strict with a batch":         {func(p *policy.Policy) { p.Consistency.Mode = policy.Strict }, "policies[0].consistency"},
		"Adaptive without a least":    {lease(func(c *policy.Consistency) { c.Size, c.Max = policy.Adaptive, 9 }), "policies[0].consistency.min"},
		"Adaptive without a most":     {lease(func(c *policy.Consistency) { c.Size, c.Min = policy.Adaptive, 1 }), "policies[0].consistency.max"},
		"a most below the least":      {lease(func(c *policy.Consistency) { c.Size, c.Min, c.Max = policy.Predictive, 9, 8 }), "policies[0].consistency.max"},
		"Fixed with a most":           {lease(func(c *policy.Consistency) { c.Max = 8 }), "policies[0].consistency.max"},
		"an unknown size":             {lease(func(c *policy.Consistency) { c.Size = "" }), "policies[0].consistency.size"},
		"an unknown expiry":           {lease(func(c *policy.Consistency) { c.Expiry = "" }), "policies[0].consistency.expiry"},
		"low water of a whole batch":  {lease(func(c *policy.Consistency) { c.LowWater = c.Batch }), "policies[0].consistency.lowWater"},
		"idle for a negative time":    {lease(func(c *policy.Consistency) { c.ReturnIdleAfter = -1 }), "policies[0].consistency.returnIdleAfter"},
		"CachedDeny with low water":   {lease(func(c *policy.Consistency) { *c = policy.Consistency{Mode: policy.CachedDeny, LowWater: 1} }), "policies[0].consistency"},
		"a negative since":            {func(p *policy.Policy) { p.Since = -1 }, "policies[0].since"},
		"several servers for Redis":   {at(policy.Store{Type: policy.RedisStore, Address: "a:1,b:1"}), "only a cluster and Sentinels have several"},
		"a cluster of Sentinels":      {at(policy.Store{Type: policy.RedisStore, Address: "a:1,b:1", Cluster: true, Sentinel: "m"}), "policies[0].store.sentinel"},
		"a nameless second address":   {at(policy.Store{Type: policy.RedisStore, Address: "a:1,", Cluster: true}), "policies[0].store.address"},
		"Redis with a database":       {at(policy.Store{Type: policy.RedisStore, Address: "a:1", Database: "d"}), "policies[0].store.database"},
		"credentials in an address":   {at(policy.Store{Type: policy.RedisStore, Address: "u:p@a:1"}), "policies[0].store.address"},
		"a Secret of no namespace":    {at(policy.Store{Type: policy.RedisStore, Address: "a:1", Secret: "s"}), "policies[0].store.secret"},
		"a version of no Secret":      {at(policy.Store{Type: policy.RedisStore, Address: "a:1", SecretVersion: "1"}), "policies[0].store.secretVersion"},
		"a service without a token":   {at(policy.Store{Type: policy.RedisStore, REST: true, Address: "https://a", TLS: true}), "policies[0].store.secret"},
		"a service by host and port":  {at(policy.Store{Type: policy.RedisStore, REST: true, Address: "a:443", TLS: true, Secret: "n/s"}), "policies[0].store.address"},
		"two services":                {at(policy.Store{Type: policy.RedisStore, REST: true, Address: "https://a,https://b", TLS: true, Secret: "n/s"}), "policies[0].store.address"},
		"a token in a URL":            {at(policy.Store{Type: policy.RedisStore, REST: true, Address: "https://a?_token=t", TLS: true, Secret: "n/s"}), "policies[0].store.address"},
		"https without TLS":           {at(policy.Store{Type: policy.RedisStore, REST: true, Address: "https://a", Secret: "n/s"}), "policies[0].store.tls"},
		"a cluster over HTTP":         {at(policy.Store{Type: policy.RedisStore, REST: true, Address: "http://a", Cluster: true, Secret: "n/s"}), "policies[0].store"},
		"Postgres over HTTP":          {at(policy.Store{Type: policy.PostgresStore, REST: true, Address: "a:1", Database: "d"}), "only type Redis has them"},
		"Postgres with no database":   {at(policy.Store{Type: policy.PostgresStore, Address: "a"}), "policies[0].store.database"},
		"Postgres with no address":    {at(policy.Store{Type: policy.PostgresStore, Database: "d"}), "policies[0].store.address"},
		"a cluster of Postgres":       {at(policy.Store{Type: policy.PostgresStore, Address: "a:1", Database: "d", Cluster: true}), "only type Redis has them"},
		"a gateway to the controller": {at(policy.Store{Type: policy.ControllerStore, Gateway: true}), "policies[0].store"},
		"a gateway to anything":       {at(policy.Store{Type: policy.GatewayStore, Address: "redis:6379"}), "policies[0].store.address"},
		"a gateway with a Secret":     {at(policy.Store{Type: policy.GatewayStore, Address: "0123456789abcdef", Secret: "shop/redis"}), "only the controller knows that of type Gateway"},
		"Controller with TLS":         {at(policy.Store{Type: policy.ControllerStore, TLS: true}), "policies[0].store"},

		"a response of another status":   {func(p *policy.Policy) { p.Response.StatusCode = 500 }, "policies[0].response.statusCode"},
		"a response of no body":          {func(p *policy.Policy) { p.Response = policy.DefaultResponse(); p.Response.Body = "" }, "policies[0].response.body"},
		"a jitter of 101 percent":        {func(p *policy.Policy) { p.Response = policy.DefaultResponse(); p.Response.Jitter = 101 }, "policies[0].response.jitter"},
		"a host with a port":             {match(policy.Match{Hosts: []string{"a:80"}}), "policies[0].limits[0].match[0].hosts[0]"},
		"a nameless parameter":           {match(policy.Match{QueryParams: []policy.QueryMatch{{Type: policy.Present}}}), "match[0].queryParams[0].name"},
		"a source that is not a network": {match(policy.Match{SourceCIDRs: []string{"a"}}), "match[0].sourceCIDRs[0]"},
		"a claim of no header":           {match(policy.Match{JWTClaims: []policy.ClaimMatch{{Type: policy.Present, Claim: "a"}}}), "match[0].jwtClaims[0].header"},
		"a claim that begins with a dot": {match(policy.Match{JWTClaims: []policy.ClaimMatch{{Type: policy.Present, Header: "a", Claim: ".a"}}}), "match[0].jwtClaims[0].claim"},
		"a service with a slash":         {match(policy.Match{GRPC: &policy.GRPCMatch{Service: "a/b"}}), "match[0].grpc.service"},
		"a method with a slash":          {match(policy.Match{GRPC: &policy.GRPCMatch{Service: "a", Method: "/b"}}), "match[0].grpc.method"},
		"an expression of another type":  {match(policy.Match{Expression: "1"}), "match[0].expression"},
		"descriptors beside a method":    {match(policy.Match{Methods: []string{"GET"}, Descriptors: []policy.DescriptorMatch{{Key: "a"}}}), "match[0].descriptors stand beside"},
		"a descriptor without a key":     {match(policy.Match{Descriptors: []policy.DescriptorMatch{{Value: "a"}}}), "match[0].descriptors[0].key"},
		"a part with another's name":     {key(func(k *policy.Key) { k.Parts[0].Name = "a" }), "key.parts[0].name"},
		"a part with another's source":   {key(func(k *policy.Key) { k.Parts[0].Expression = "'a'" }), "key.parts[0].expression"},
		"a parameter part of none":       {key(func(k *policy.Key) { k.Parts[0].Type = policy.QueryParamKey }), "key.parts[0].name"},
		"an expression part of none":     {key(func(k *policy.Key) { k.Parts[0].Type = policy.ExpressionKey }), "key.parts[0].expression"},

		"a limit with a bad mode":        {limit(func(l *policy.Limit) { l.Mode = "Off" }), "policies[0].limits[0].mode"},
		"an exemption with a bad method": {limit(func(l *policy.Limit) { l.Exempt = []policy.Match{{Methods: []string{""}}} }), "policies[0].limits[0].exempt[0].methods[0]"},
		"an unknown algorithm":           {limit(func(l *policy.Limit) { l.Algorithm = "Quota" }), "policies[0].limits[0].algorithm"},
		"a burst of a window":            {limit(func(l *policy.Limit) { l.Rates[0].Burst = 1 }), "rates[0].burst"},
		"buckets of a window":            {limit(func(l *policy.Limit) { l.Buckets = 1 }), "buckets is 1"},
		"a sliding window of none":       {limit(func(l *policy.Limit) { l.Algorithm = policy.SlidingWindow }), "buckets is 0"},
		"a delay of a window":            {limit(func(l *policy.Limit) { l.MaxDelay = 1 }), "maxDelay is 1"},
		"a lifetime of a window":         {limit(func(l *policy.Limit) { l.Lifetime = 1 }), "lifetime is 1µs"},
		"a lifetime that eats the burst": {limit(func(l *policy.Limit) { l.Algorithm, l.Lifetime = policy.GCRA, limiter.Second }), "is spent on the lifetime of grants"},
		"a lifetime without leases":      {strict(func(l *policy.Limit) { l.Algorithm, l.Lifetime = policy.GCRA, limiter.Millisecond }), "policies[0].limits[0].lifetime"},
		"a leaky bucket that is leased":  {limit(func(l *policy.Limit) { l.Algorithm = policy.LeakyBucket }), "policies[0].limits[0].algorithm is LeakyBucket"},
		"a queue with places back": {strict(func(l *policy.Limit) {
			l.Algorithm, l.Cost = policy.LeakyBucket, &policy.Cost{Default: 1, Max: 1, ResponseHeader: "c"}
		}), "policies[0].limits[0].cost.responseHeader"},
		"CarryOver without windows": {carry(func(l *policy.Limit) { l.Algorithm, l.Lifetime = policy.GCRA, limiter.Millisecond }), "policies[0].limits[0].algorithm is GCRA"},
		"overrides without a key": {limit(func(l *policy.Limit) {
			l.Overrides = []policy.Override{{Values: []policy.Value{{"GET"}}, Rates: l.Rates}}
		}), "policies[0].limits[0].overrides"},
		"an override without values":    {override(), "policies[0].limits[0].overrides[0].values"},
		"a value with a part too many":  {override(policy.Value{"GET", "POST"}), "policies[0].limits[0].overrides[0].values[0]"},
		"a value of nothing":            {override(policy.Value{""}), "policies[0].limits[0].overrides[0].values[0][0]"},
		"a value that no request has":   {override(policy.Value{"GET "}), "policies[0].limits[0].overrides[0].values[0][0]"},
		"a value twice":                 {override(policy.Value{"GET"}, policy.Value{"PUT"}, policy.Value{"GET"}), "policies[0].limits[0].overrides[0].values[2]"},
		"an override that cannot work":  {broken, "policies[0].limits[0].overrides[0] is invalid"},
		"a cost of nothing":             {cost(policy.Cost{Max: 1}), "policies[0].limits[0].cost.default"},
		"a cost above the most":         {cost(policy.Cost{Default: 2, Max: 1}), "policies[0].limits[0].cost.max"},
		"a cost by a nameless header":   {cost(policy.Cost{Default: 1, Max: 1, RequestHeader: " "}), "policies[0].limits[0].cost.requestHeader"},
		"a cost by a nameless response": {cost(policy.Cost{Default: 1, Max: 1, ResponseHeader: " "}), "policies[0].limits[0].cost.responseHeader"},
		"fairness of a bucket":          {fair(func(l *policy.Limit) { l.Algorithm, l.Lifetime = policy.GCRA, limiter.Millisecond }), "policies[0].limits[0].fairness splits one window"},
		"fairness of two rates":         {fair(func(l *policy.Limit) { l.Rates = append(l.Rates, limiter.Rate{Limit: 1, Window: limiter.MaxWindow}) }), "policies[0].limits[0].fairness splits one window"},
		"fairness of any rate":          {fair(func(l *policy.Limit) { l.Any = true }), "policies[0].limits[0].fairness splits one window"},
		"fairness without weight":       {fair(func(l *policy.Limit) { l.Fairness.DefaultWeight = 0 }), "policies[0].limits[0].fairness.defaultWeight"},
		"a tenant that weighs nothing":  {fair(func(l *policy.Limit) { l.Fairness.Weights[0].Weight = 0 }), "policies[0].limits[0].fairness.weights[0].weight"},
		"a tenant twice":                {fair(func(l *policy.Limit) { l.Fairness.Weights = append(l.Fairness.Weights, l.Fairness.Weights[0]) }), "policies[0].limits[0].fairness.weights[1].tenant"},
		"a tenant of an unknown source": {fair(func(l *policy.Limit) { l.Fairness.Tenant.Type = "Cookie" }), "policies[0].limits[0].fairness.tenant.type"},
		"fairness that carries over": {carry(func(l *policy.Limit) {
			l.Fairness = &policy.Fairness{Tenant: policy.KeyPart{Type: policy.MethodKey}, DefaultWeight: 1}
		}), "policies[0].limits[0].fairness splits one window"},

		"an unknown failure action":      {func(p *policy.Policy) { p.OnStoreUnavailable = "" }, "policies[0].onStoreUnavailable"},
		"hops and networks":              {func(p *policy.Policy) { p.ClientIP = policy.ClientIP{TrustedHops: 1, TrustedCIDRs: []string{"::/0"}} }, "policies[0].clientIP"},
		"negative hops":                  {func(p *policy.Policy) { p.ClientIP.TrustedHops = -1 }, "policies[0].clientIP.trustedHops"},
		"an identity without trust":      {keyed(policy.Reject, policy.KeyPart{Type: policy.PeerIdentityKey}), "policies[0].limits[0].key.parts[0]"},
		"an address instead of a net":    {func(p *policy.Policy) { p.ClientIP.TrustedCIDRs = []string{"10.0.0.1"} }, "policies[0].clientIP.trustedCIDRs[0]"},
		"no limits":                      {func(p *policy.Policy) { p.Limits = nil }, "policies[0].limits"},
		"too many limits":                {func(p *policy.Policy) { p.Limits = make([]policy.Limit, policy.MaxLimits+1) }, "policies[0].limits"},
		"a limit twice":                  {func(p *policy.Policy) { p.Limits = append(p.Limits, p.Limits[0]) }, "policies[0].limits[1].name"},
		"a limit with a bad name":        {limit(func(l *policy.Limit) { l.Name = "Per Tenant" }), "policies[0].limits[0].name"},
		"a limit of 0":                   {limit(func(l *policy.Limit) { l.Rates[0].Limit = 0 }), "rates[0].limit"},
		"two windows of one length":      {limit(func(l *policy.Limit) { l.Rates = append(l.Rates, l.Rates[0]) }), "rates[1].window"},
		"no rates":                       {limit(func(l *policy.Limit) { l.Rates = []limiter.Rate{} }), "policies[0].limits[0] is invalid: a limit has 1 to 4 rates"},
		"a method with a space":          {match(policy.Match{Methods: []string{"GET "}}), "match[0].methods[0]"},
		"a path without a slash":         {match(policy.Match{Paths: []policy.PathMatch{{Type: policy.Exact, Value: "x"}}}), "match[0].paths[0].value"},
		"a path with Present":            {match(policy.Match{Paths: []policy.PathMatch{{Type: policy.Present, Value: "/"}}}), "match[0].paths[0].type"},
		"a path with a broken pattern":   {match(policy.Match{Paths: []policy.PathMatch{{Type: policy.RegularExpression, Value: "("}}}), "match[0].paths[0].value"},
		"brackets that close ours":       {match(policy.Match{Paths: []policy.PathMatch{{Type: policy.RegularExpression, Value: "/a)|(/b"}}}), "match[0].paths[0].value"},
		"a header by prefix":             {match(policy.Match{Headers: []policy.HeaderMatch{{Type: policy.PathPrefix, Name: "a"}}}), "match[0].headers[0].type"},
		"a header without a name":        {match(policy.Match{Headers: []policy.HeaderMatch{{Type: policy.Present}}}), "match[0].headers[0].name"},
		"a present header with a value":  {match(policy.Match{Headers: []policy.HeaderMatch{{Type: policy.Present, Name: "a", Value: "b"}}}), "match[0].headers[0].value"},
		"a key without parts":            {key(func(k *policy.Key) { k.Parts = nil }), "key.parts"},
		"a key with an unknown part":     {key(func(k *policy.Key) { k.Parts[0].Type = "Cookie" }), "key.parts[0].type"},
		"a header part without a header": {key(func(k *policy.Key) { k.Parts[0].Type = policy.HeaderKey }), "key.parts[0].header"},
		"a method part with a header":    {key(func(k *policy.Key) { k.Parts[0].Header = "a" }), "key.parts[0].header"},
		"an unknown onMissing":           {key(func(k *policy.Key) { k.OnMissing = "" }), "key.onMissing"},
		"no keys tracked":                {key(func(k *policy.Key) { k.MaxKeys = 0 }), "key.maxKeys"},
	} {
		t.Run(name, func(t *testing.T) {
			s := valid(tc.change)
			if err := s.Validate(); err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got error %v, want one that names %s", err, tc.want)
			}
			if _, _, err := policy.Encode(s); err == nil {
				t.Error("it was encoded nevertheless")
			}
			if _, err := policy.Compile(s); err == nil {
				t.Error("it was compiled nevertheless")
			}
		})
	}
}

func TestValidateWantsPoliciesInOrder(t *testing.T) {
	s := valid()
	s.Policies = append(s.Policies, s.Policies[0])
	if err := s.Validate(); err == nil || !strings.Contains(err.Error(), "policies[1]") {
		t.Errorf("the same policy twice: got error %v", err)
	}
	s.Policies[1].Name = "billing"
	if err := s.Validate(); err == nil || !strings.Contains(err.Error(), "policies[1]") {
		t.Errorf("out of order: got error %v", err)
	}
	s.Cluster = ""
	if err := s.Validate(); err == nil || !strings.Contains(err.Error(), "cluster") {
		t.Errorf("no cluster: got error %v", err)
	}
}

// TestNamesHaveBounds, those of Kubernetes and of stores.
func TestNamesHaveBounds(t *testing.T) {
	long := func(n int) string { return strings.Repeat("a", n) }
	redis := func(change func(s *policy.Store, text string)) func(*policy.Policy, string) {
		return func(p *policy.Policy, text string) {
			p.Store = policy.Store{Type: policy.RedisStore, Address: "r:6379"}
			change(&p.Store, text)
		}
	}
	for name, tc := range map[string]struct {
		set        func(p *policy.Policy, text string)
		good, evil []string
	}{
		"an object": {
			func(p *policy.Policy, text string) { p.Name = text },
			[]string{"a", "a-b.c", "0", long(253)},
			[]string{"", long(254), "-a", "a-", ".", "A", "a_b", "a\n", "é", "a/b"},
		},
		"a label": {
			func(p *policy.Policy, text string) { p.Namespace = text },
			[]string{"a", "a-b", "0", long(63)},
			[]string{"", long(64), "-a", "a-", "a.b", "A", "a\n"},
		},
		"a secret": {
			redis(func(s *policy.Store, text string) { s.Secret = text }),
			[]string{"a/b", "a-b/c.d", long(63) + "/" + long(253)},
			[]string{"a", "/a", "a/", "a/b/c", "a.b/c", long(64) + "/a", "a/" + long(254), "a/b\n"},
		},
		"Sentinels": {
			redis(func(s *policy.Store, text string) { s.Sentinel = text }),
			[]string{"a", "My_master-1.x", long(128)},
			[]string{long(129), "a b", "a\n"},
		},
		"a database": {
			func(p *policy.Policy, text string) {
				p.Store = policy.Store{Type: policy.PostgresStore, Address: "pg:5432", Database: text}
			},
			[]string{"a", "My_$-1", long(63)},
			[]string{"", long(64), "a.b", "a\n"},
		},
	} {
		check := func(text string) error {
			s := valid(func(p *policy.Policy) { tc.set(p, text) })
			return s.Validate()
		}
		for _, text := range tc.good {
			if err := check(text); err != nil {
				t.Errorf("%s may not be named %q: %v", name, text, err)
			}
		}
		for _, text := range tc.evil {
			if check(text) == nil {
				t.Errorf("%s may be named %q", name, text)
			}
		}
	}
}
