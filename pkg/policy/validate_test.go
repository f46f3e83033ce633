package policy_test

import (
	"strings"
	"testing"

	"github.com/weir-dev/weir/pkg/limiter"
	"github.com/weir-dev/weir/pkg/policy"
)

func TestValidateAcceptsEveryField(t *testing.T) {
	s := full()
	if err := s.Validate(); err != nil {
		t.Error(err)
	}
}

func TestValidateNamesTheField(t *testing.T) {
	limit := func(change func(*policy.Limit)) func(*policy.Policy) {
		return func(p *policy.Policy) { change(&p.Limits[0]) }
	}
	key := func(change func(*policy.Key)) func(*policy.Policy) {
		return limit(func(l *policy.Limit) {
			l.Key = &policy.Key{Parts: []policy.KeyPart{{Type: policy.MethodKey}}, OnMissing: policy.Shared, MaxKeys: 1}
			change(l.Key)
		})
	}
	match := func(m policy.Match) func(*policy.Policy) {
		return limit(func(l *policy.Limit) { l.Match = []policy.Match{m} })
	}
	for name, tc := range map[string]struct {
		change func(*policy.Policy)
		want   string
	}{
		"a namespace with a slash":       {func(p *policy.Policy) { p.Namespace = "a/b" }, "policies[0].namespace"},
		"no name":                        {func(p *policy.Policy) { p.Name = "" }, "policies[0].name"},
		"a negative generation":          {func(p *policy.Policy) { p.Generation = -1 }, "policies[0].generation"},
		"an unknown mode":                {func(p *policy.Policy) { p.Mode = "On" }, "policies[0].mode"},
		"an unknown store":               {func(p *policy.Policy) { p.Store.Type = "Disk" }, "policies[0].store.type"},
		"Redis without an address":       {func(p *policy.Policy) { p.Store.Type = policy.RedisStore }, "policies[0].store.address"},
		"Redis on port 0":                {func(p *policy.Policy) { p.Store = policy.Store{Type: policy.RedisStore, Address: "r:0"} }, "policies[0].store.address"},
		"Controller with an address":     {func(p *policy.Policy) { p.Store.Address = "a:1" }, "policies[0].store"},
		"an unknown consistency":         {func(p *policy.Policy) { p.Consistency.Mode = "Eventual" }, "policies[0].consistency.mode"},
		"Leased without a batch":         {func(p *policy.Policy) { p.Consistency.Batch = 0 }, "policies[0].consistency.batch"},
		"Strict with a batch":            {func(p *policy.Policy) { p.Consistency.Mode = policy.Strict }, "policies[0].consistency"},
		"an unknown failure action":      {func(p *policy.Policy) { p.OnStoreUnavailable = "" }, "policies[0].onStoreUnavailable"},
		"hops and networks":              {func(p *policy.Policy) { p.ClientIP = policy.ClientIP{TrustedHops: 1, TrustedCIDRs: []string{"::/0"}} }, "policies[0].clientIP"},
		"negative hops":                  {func(p *policy.Policy) { p.ClientIP.TrustedHops = -1 }, "policies[0].clientIP.trustedHops"},
		"an address instead of a net":    {func(p *policy.Policy) { p.ClientIP.TrustedCIDRs = []string{"10.0.0.1"} }, "policies[0].clientIP.trustedCIDRs[0]"},
		"no limits":                      {func(p *policy.Policy) { p.Limits = nil }, "policies[0].limits"},
		"too many limits":                {func(p *policy.Policy) { p.Limits = make([]policy.Limit, policy.MaxLimits+1) }, "policies[0].limits"},
		"a limit twice":                  {func(p *policy.Policy) { p.Limits = append(p.Limits, p.Limits[0]) }, "policies[0].limits[1].name"},
		"a limit with a bad name":        {limit(func(l *policy.Limit) { l.Name = "Per Tenant" }), "policies[0].limits[0].name"},
		"a limit of 0":                   {limit(func(l *policy.Limit) { l.Rates[0].Limit = 0 }), "rates[0].limit"},
		"two windows of one length":      {limit(func(l *policy.Limit) { l.Rates = append(l.Rates, l.Rates[0]) }), "rates[1].window"},
		"no rates":                       {limit(func(l *policy.Limit) { l.Rates = []limiter.Rate{} }), "policies[0].limits[0].rates"},
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
