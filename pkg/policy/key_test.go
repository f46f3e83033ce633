package policy_test

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/weir-dev/weir/pkg/policy"
	"github.com/weir-dev/weir/pkg/store"
)

func keyed(onMissing policy.OnMissing, parts ...policy.KeyPart) func(*policy.Policy) {
	return func(p *policy.Policy) {
		p.Limits[0].Key = &policy.Key{Parts: parts, OnMissing: onMissing, MaxKeys: 10}
	}
}

func TestValue(t *testing.T) {
	tenant := policy.KeyPart{Type: policy.HeaderKey, Header: "x-tenant"}
	host := policy.KeyPart{Type: policy.HeaderKey, Header: "host"}
	method, path := policy.KeyPart{Type: policy.MethodKey}, policy.KeyPart{Type: policy.PathKey}
	for name, tc := range map[string]struct {
		key     func(*policy.Policy)
		request string
		want    string
		outcome policy.Outcome
	}{
		"no key is one counter":            {func(*policy.Policy) {}, "GET /", "", policy.Counted},
		"a header":                         {keyed(policy.Shared, tenant), "GET / X-Tenant:gold", "gold", policy.Counted},
		"a header that is repeated":        {keyed(policy.Shared, tenant), "GET / X-Tenant:gold X-Tenant:gold", "gold", policy.Counted},
		"the host":                         {keyed(policy.Shared, host), "GET /", "example.com", policy.Counted},
		"the method":                       {keyed(policy.Shared, method), "PUT /", "PUT", policy.Counted},
		"the path in one spelling":         {keyed(policy.Shared, path), "GET //a/./%62", "/a/b", policy.Counted},
		"several parts with their lengths": {keyed(policy.Shared, tenant, method), "GET / X-Tenant:gold", "4:gold3:GET", policy.Counted},
		"missing and skipped":              {keyed(policy.Skip, tenant), "GET /", "", policy.Skipped},
		"missing and rejected":             {keyed(policy.Reject, tenant), "GET /", "", policy.Rejected},
		"an empty header is missing":       {keyed(policy.Skip, tenant), "GET / X-Tenant:", "", policy.Skipped},
	} {
		t.Run(name, func(t *testing.T) {
			got, outcome, missing := limitOf(t, tc.key).Value(view(request(tc.request)))
			if got != tc.want || outcome != tc.outcome {
				t.Errorf("got %q, %v; want %q, %v", got, outcome, tc.want, tc.outcome)
			}
			if outcome == policy.Rejected && missing.Header != "X-Tenant" {
				t.Errorf("the missing part is %v", missing)
			}
		})
	}
}

// TestPartsNameTheCounter: the check API joins the parts that it is given.
func TestPartsNameTheCounter(t *testing.T) {
	tenant := policy.KeyPart{Type: policy.HeaderKey, Header: "x-tenant"}
	long := strings.Repeat("x", 300)
	for name, tc := range map[string]struct {
		key     func(*policy.Policy)
		request string
		want    []string
	}{
		"no key":         {func(*policy.Policy) {}, "GET /", nil},
		"one part":       {keyed(policy.Shared, tenant), "GET / X-Tenant:gold", []string{"gold"}},
		"a long part":    {keyed(policy.Shared, tenant), "GET / X-Tenant:" + long, []string{long}},
		"several parts":  {keyed(policy.Shared, tenant, policy.KeyPart{Type: policy.MethodKey}), "GET / X-Tenant:gold", []string{"gold", "GET"}},
		"a missing part": {keyed(policy.Shared, policy.KeyPart{Type: policy.MethodKey}, tenant), "GET /", nil},
	} {
		t.Run(name, func(t *testing.T) {
			l, r := limitOf(t, tc.key), view(request(tc.request))
			got := l.Parts(r)
			if !slices.Equal(got, tc.want) {
				t.Fatalf("got %q, want %q", got, tc.want)
			}
			if value, _, _ := l.Value(r); len(got) > 0 && policy.JoinParts(got...) != value {
				t.Errorf("they join to %q, and the counter is that of %q", policy.JoinParts(got...), value)
			}
		})
	}
}

// TestPartsThatDifferOpenNoCounter: an app may take the value that the counter is not of.
func TestPartsThatDifferOpenNoCounter(t *testing.T) {
	header := policy.KeyPart{Type: policy.HeaderKey, Header: "x-tenant"}
	param := policy.KeyPart{Type: policy.QueryParamKey, Name: "key"}
	claim := policy.KeyPart{Type: policy.JWTClaimKey, Header: "authorization", Name: "sub"}
	alice, bob := "Bearer "+tokenOf(`{"sub":"alice"}`), "Bearer "+tokenOf(`{"sub":"bob"}`)
	for name, tc := range map[string]struct {
		part    policy.KeyPart
		request *http.Request
	}{
		"a header":                      {header, calling("GET", "/", "X-Tenant", "made-up", "X-Tenant", "real")},
		"a header's third value":        {header, calling("GET", "/", "X-Tenant", "a", "X-Tenant", "a", "X-Tenant", "b")},
		"a header that is empty first":  {header, calling("GET", "/", "X-Tenant", "", "X-Tenant", "real")},
		"a parameter":                   {param, calling("GET", "/?key=made-up&x=1&key=real")},
		"a parameter by another name":   {param, calling("GET", "/?key=made-up&%6bey=real")},
		"a parameter that is empty":     {param, calling("GET", "/?key&key=real")},
		"a parameter with a value less": {param, calling("GET", "/?key=real&key=")},
		"a token":                       {claim, calling("GET", "/", "Authorization", alice, "Authorization", bob)},
	} {
		t.Run(name, func(t *testing.T) {
			of := func(do policy.OnMissing) (string, policy.Outcome) {
				value, outcome, _ := limitOf(t, keyed(do, tc.part)).Value(view(tc.request))
				return value, outcome
			}
			shared, _, _ := limitOf(t, keyed(policy.Shared, tc.part)).Value(view(request("GET /")))
			for _, do := range []policy.OnMissing{policy.Shared, policy.Skip} {
				if value, outcome := of(do); value != shared || outcome != policy.Counted {
					t.Errorf("%s: got %q, %v; want the shared counter", do, value, outcome)
				}
			}
			if _, outcome := of(policy.Reject); outcome != policy.Rejected {
				t.Errorf("Reject: got %v", outcome)
			}
		})
	}
}

func TestRequestsWithoutTheKeyShareACounterNobodyCanChoose(t *testing.T) {
	tenant := policy.KeyPart{Type: policy.HeaderKey, Header: "x-tenant"}
	for name, parts := range map[string][]policy.KeyPart{
		"one part":      {tenant},
		"several parts": {{Type: policy.MethodKey}, tenant},
	} {
		t.Run(name, func(t *testing.T) {
			l := limitOf(t, keyed(policy.Shared, parts...))
			shared, outcome, _ := l.Value(view(request("GET /")))
			if shared == "" || outcome != policy.Counted {
				t.Fatalf("got %q, %v", shared, outcome)
			}
			r := request("GET /")
			r.Header.Set("X-Tenant", shared)
			if chosen, _, _ := l.Value(view(r)); chosen == shared {
				t.Error("a request chose the shared counter")
			}
			if policy.JoinParts(shared) == shared {
				t.Error("a check can name the shared counter")
			}
		})
	}
}

func TestLongPartsAreCutAndStayApart(t *testing.T) {
	long := strings.Repeat("x", 10_000)
	a, b := policy.JoinParts(long+"a"), policy.JoinParts(long+"b")
	if a == b {
		t.Error("two long values share a counter")
	}
	if len(a) > 200 {
		t.Errorf("a value of %d bytes stays in memory", len(a))
	}
	if policy.JoinParts(a) == a {
		t.Error("the short form of a long value is a value that stands for itself")
	}
}

func TestKeysOfOnePartDoNotAllocate(t *testing.T) {
	l := limitOf(t, keyed(policy.Shared, policy.KeyPart{Type: policy.HeaderKey, Header: "x-tenant"}))
	r := view(request("GET / X-Tenant:gold"))
	if n := testing.AllocsPerRun(100, func() { l.Value(r) }); n > 0 {
		t.Errorf("%v allocations", n)
	}
}

// FuzzJoinParts checks that no two lists of parts share a value.
func FuzzJoinParts(f *testing.F) {
	f.Add("a", "b", "ab", "")
	f.Add("1:a", "", "1", "a")
	f.Add("4:gold", "3:GET", "4:gold3", "GET")
	f.Add(strings.Repeat("x", 200), "y", strings.Repeat("x", 199), "xy")
	f.Fuzz(func(t *testing.T, a, b, c, d string) {
		if same := a == c && b == d; same != (policy.JoinParts(a, b) == policy.JoinParts(c, d)) {
			t.Errorf("%q, %q and %q, %q: same parts %v, values %q and %q", a, b, c, d, same, policy.JoinParts(a, b), policy.JoinParts(c, d))
		}
		if same := a == b; same != (policy.JoinParts(a) == policy.JoinParts(b)) {
			t.Errorf("%q and %q: same %v", a, b, same)
		}
	})
}

func fair(tenant policy.KeyPart, declared ...string) func(*policy.Policy) {
	return func(p *policy.Policy) {
		f := &policy.Fairness{Tenant: tenant, DefaultWeight: 1}
		for i, name := range declared {
			f.Weights = append(f.Weights, policy.Weight{Tenant: name, Weight: int64(i + 2)})
		}
		p.Limits[0].Fairness = f
	}
}

var byTenant = policy.KeyPart{Type: policy.HeaderKey, Header: "x-tenant"}

func TestTenant(t *testing.T) {
	l := limitOf(t, fair(byTenant, "gold"))
	tenant := func(line string) string { return l.Tenant(view(request(line))) }
	if got, want := tenant("GET / X-Tenant:gold"), store.HashValue("gold"); got != want {
		t.Errorf("a declared tenant is %s, want %s", got, want)
	}
	if got, want := tenant("GET / X-Tenant:tin"), store.HashValue("tin"); got != want {
		t.Errorf("another tenant is %s, want %s", got, want)
	}
	for line, want := range map[string]string{"GET / X-Tenant:gold": "gold", "GET / X-Tenant:tin": "tin", "GET /": ""} {
		name := l.TenantName(view(request(line)))
		if name != want || l.TenantNamed(name) != tenant(line) {
			t.Errorf("%s names the tenant %q, want %q, which is charged", line, name, want)
		}
	}
	nobody := tenant("GET /")
	if nobody == "" || nobody != tenant("POST /x X-Tenant:") {
		t.Error("requests without a tenant are several tenants")
	}
	if got := limitOf(t).Tenant(view(request("GET / X-Tenant:gold"))); got != "" {
		t.Errorf("a limit without fairness charges %q", got)
	}
	if got := limitOf(t).TenantName(view(request("GET / X-Tenant:gold"))); got != "" {
		t.Errorf("a limit without fairness names %q", got)
	}
}

// TestTheCoreKnowsTenantsByTheirHash checks that the weight declared is that of the
// requests which name the tenant.
func TestTheCoreKnowsTenantsByTheirHash(t *testing.T) {
	l := limitOf(t, fair(byTenant, "gold", "silver", "bronze"))
	params := l.Limit.Params(l.Policy)
	if err := params.Validate(); err != nil {
		t.Fatal(err)
	}
	weights := map[string]int64{}
	for _, w := range params.Fairness.Weights {
		weights[w.Tenant] = w.Weight
	}
	for name, want := range map[string]int64{"gold": 2, "silver": 3, "bronze": 4} {
		if got := weights[l.Tenant(view(request("GET / X-Tenant:"+name)))]; got != want {
			t.Errorf("%s weighs %d, want %d", name, got, want)
		}
	}
}

func TestDeclaredTenantsDoNotAllocate(t *testing.T) {
	l := limitOf(t, fair(byTenant, "gold"))
	for _, line := range []string{"GET / X-Tenant:gold", "GET /"} {
		r := view(request(line))
		if n := testing.AllocsPerRun(100, func() { l.Tenant(r) }); n > 0 {
			t.Errorf("%q: %v allocations", line, n)
		}
	}
}

func TestKeysOfEveryPart(t *testing.T) {
	claim := policy.KeyPart{Type: policy.JWTClaimKey, Header: "authorization", Name: "sub"}
	param := policy.KeyPart{Type: policy.QueryParamKey, Name: "user"}
	expression := func(source string) policy.KeyPart {
		return policy.KeyPart{Type: policy.ExpressionKey, Expression: source}
	}
	bearing := func(claims string) *http.Request {
		return calling("GET", "/", "Authorization", "Bearer "+tokenOf(claims))
	}
	for name, tc := range map[string]struct {
		part    policy.KeyPart
		request *http.Request
		want    string // empty: missing
	}{
		"a host in one spelling":             {policy.KeyPart{Type: policy.HostKey}, calling("GET", "http://A.example:80/"), "a.example"},
		"a parameter":                        {param, calling("GET", "/?user=%62&user=b"), "b"},
		"a parameter that is empty":          {param, calling("GET", "/?user="), ""},
		"a parameter that is absent":         {param, calling("GET", "/"), ""},
		"a claim":                            {claim, bearing(`{"sub":"alice"}`), "alice"},
		"a claim that is a large number":     {claim, bearing(`{"sub":9007199254740993}`), "9007199254740993"},
		"a claim that is a list":             {claim, bearing(`{"sub":["alice"]}`), ""},
		"a token that cannot be read":        {claim, calling("GET", "/", "Authorization", "Bearer ..."), ""},
		"an expression":                      {expression("request.method + ' ' + request.host"), calling("GET", "http://a/"), "GET a"},
		"an expression over a claim":         {expression("string(request.jwt.level + 1)"), bearing(`{"level":2}`), "3"},
		"an expression that has no value":    {expression("string(request.jwt.level)"), bearing(`{}`), ""},
		"a descriptor is of no HTTP request": {policy.KeyPart{Type: policy.DescriptorKey, Name: "user"}, calling("GET", "/?user=b"), ""},
	} {
		t.Run(name, func(t *testing.T) {
			got, outcome, missing := limitOf(t, keyed(policy.Reject, tc.part)).Value(view(tc.request))
			if got != tc.want || (outcome == policy.Rejected) != (tc.want == "") {
				t.Errorf("got %q, %v; want %q", got, outcome, tc.want)
			}
			if outcome == policy.Rejected && missing.Type != tc.part.Type {
				t.Errorf("the missing part is %v", missing)
			}
		})
	}
}
