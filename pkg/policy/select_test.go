package policy_test

import (
	"encoding/base64"
	"net/http"
	"strings"
	"testing"

	"github.com/weir-dev/weir/pkg/policy"
)

// tokenOf returns a token that claims what the JSON says. Its signature is none.
func tokenOf(claims string) string {
	return "eyJhbGciOiJub25lIn0." + base64.RawURLEncoding.EncodeToString([]byte(claims)) + ".c2ln"
}

// calling returns a request for the target, from 192.0.2.7, with these headers.
func calling(method, target string, headers ...string) *http.Request {
	r := request(method + " " + target)
	r.RemoteAddr = "192.0.2.7:4711"
	for i := 0; i < len(headers); i += 2 {
		r.Header.Add(headers[i], headers[i+1])
	}
	return r
}

func TestMatchesSelectByRequest(t *testing.T) {
	hosts := func(all ...string) policy.Match { return policy.Match{Hosts: all} }
	query := func(kind policy.MatchType, name, value string) policy.Match {
		return policy.Match{QueryParams: []policy.QueryMatch{{Type: kind, Name: name, Value: value}}}
	}
	claim := func(kind policy.MatchType, path, value string) policy.Match {
		return policy.Match{JWTClaims: []policy.ClaimMatch{{Type: kind, Header: "authorization", Claim: path, Value: value}}}
	}
	grpc := func(service, method string) policy.Match {
		return policy.Match{GRPC: &policy.GRPCMatch{Service: service, Method: method}}
	}
	networks := func(all ...string) policy.Match { return policy.Match{SourceCIDRs: all} }
	get := func(target string, headers ...string) *http.Request { return calling("GET", target, headers...) }
	bearing := func(claims string) *http.Request { return get("/", "Authorization", "Bearer "+tokenOf(claims)) }
	const shop = "http://Shop.Example.COM.:8080/"
	for name, tc := range map[string]struct {
		match   policy.Match
		request *http.Request
		want    bool
	}{
		"a host in another spelling":               {hosts("shop.example.com"), get(shop), true},
		"another host":                             {hosts("example.com"), get(shop), false},
		"one of several hosts":                     {hosts("a", "shop.example.com"), get(shop), true},
		"a wildcard":                               {hosts("*.example.com"), get(shop), true},
		"a wildcard over several labels":           {hosts("*.com"), get(shop), true},
		"a wildcard is not the domain itself":      {hosts("*.shop.example.com"), get(shop), false},
		"a wildcard begins at a label":             {hosts("*.ample.com"), get(shop), false},
		"an address in brackets":                   {hosts("fd00::1"), get("http://[fd00:0::1]:80/"), true},
		"a parameter":                              {query(policy.Exact, "a", "1"), get("/?a=1"), true},
		"a parameter's other value":                {query(policy.Exact, "a", "1"), get("/?a=2"), false},
		"one of a parameter's values":              {query(policy.Exact, "a", "1"), get("/?a=2&a=1"), true},
		"a decoded parameter":                      {query(policy.Exact, "a b", "ä&"), get("/?a+b=%C3%A4%26"), true},
		"a parameter that cannot be decoded":       {query(policy.Exact, "a", "%zz"), get("/?a=%zz"), true},
		"a parameter that cannot in part":          {query(policy.Exact, "a", "admin +%z"), get("/?a=%61dmin+%2B%z"), true},
		"a parameter that is not a search":         {query(policy.RegularExpression, "a", "1+"), get("/?a=112"), false},
		"a parameter without a value is present":   {query(policy.Present, "a", ""), get("/?b&a"), true},
		"a parameter that is absent":               {query(policy.Present, "a", ""), get("/?aa=1"), false},
		"a network":                                {networks("10.0.0.0/8", "192.0.2.0/24"), get("/"), true},
		"another network":                          {networks("10.0.0.0/8"), get("/"), false},
		"a network that nobody may claim to be in": {networks("10.0.0.0/8"), get("/", "X-Forwarded-For", "10.0.0.1"), false},
		"a claim":                            {claim(policy.Exact, "plan", "free"), bearing(`{"plan":"free"}`), true},
		"a claim's other value":              {claim(policy.Exact, "plan", "free"), bearing(`{"plan":"gold"}`), false},
		"a nested claim, in a list":          {claim(policy.Exact, "realm.roles", "admin"), bearing(`{"realm":{"roles":["a","admin"]}}`), true},
		"a claim that has dots":              {claim(policy.Exact, "https://example.com/plan", "free"), bearing(`{"https://example.com/plan":"free"}`), true},
		"a claim below one that has dots":    {claim(policy.Exact, "a.b.c", "x"), bearing(`{"a":{"z":1},"a.b":{"c":"x"}}`), true},
		"a number as it is written":          {claim(policy.Exact, "id", "12345678901234567890"), bearing(`{"id":12345678901234567890}`), true},
		"a claim that is true":               {claim(policy.Exact, "admin", "true"), bearing(`{"admin":true}`), true},
		"an object has no value":             {claim(policy.RegularExpression, "a", ".*"), bearing(`{"a":{"b":1}}`), false},
		"an object is present":               {claim(policy.Present, "a", ""), bearing(`{"a":{"b":1}}`), true},
		"null is absent":                     {claim(policy.Present, "a", ""), bearing(`{"a":null}`), false},
		"a scheme in another case":           {claim(policy.Present, "a", ""), get("/", "Authorization", "bEARER  "+tokenOf(`{"a":1}`)), true},
		"another scheme":                     {claim(policy.Present, "a", ""), get("/", "Authorization", "Basic "+tokenOf(`{"a":1}`)), false},
		"a token without its scheme":         {claim(policy.Present, "a", ""), get("/", "Authorization", tokenOf(`{"a":1}`)), false},
		"no token":                           {claim(policy.Present, "a", ""), get("/"), false},
		"a token of two parts":               {claim(policy.Present, "a", ""), get("/", "Authorization", "Bearer x."+tokenOf(`{"a":1}`)), false},
		"a token that is not an object":      {claim(policy.Present, "a", ""), bearing(`["a"]`), false},
		"a token with more behind it":        {claim(policy.Present, "a", ""), bearing(`{"a":1}{}`), false},
		"a token of over 8 KiB":              {claim(policy.Present, "a", ""), bearing(`{"a":"` + strings.Repeat("x", 8<<10) + `"}`), false},
		"a call":                             {grpc("shop.Orders", "Create"), calling("POST", "/shop.Orders/Create"), true},
		"a call of another method":           {grpc("shop.Orders", "Create"), calling("POST", "/shop.Orders/Delete"), false},
		"a call of any method":               {grpc("shop.Orders", ""), calling("POST", "/shop.Orders/Delete"), true},
		"a call of another service":          {grpc("shop.Orders", ""), calling("POST", "/shop.OrdersV2/Delete"), false},
		"fields have to match together":      {policy.Match{Hosts: []string{"shop.example.com"}, Methods: []string{"POST"}}, get(shop), false},
		"descriptors are of no HTTP request": {policy.Match{Descriptors: []policy.DescriptorMatch{{Key: "a"}}}, get("/?a=1", "a", "1"), false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := limitOf(t, matching(tc.match)).Matches(view(tc.request)); got != tc.want {
				t.Errorf("got %v, want %v", got, tc.want)
			}
		})
	}
}

func TestAClaimIsReadFromItsHeader(t *testing.T) {
	l := limitOf(t, matching(policy.Match{JWTClaims: []policy.ClaimMatch{
		{Type: policy.Exact, Header: "authorization", Claim: "a", Value: "1"},
		{Type: policy.Exact, Header: "x-token", Claim: "a", Value: "2"},
	}}))
	one, two := tokenOf(`{"a":1}`), tokenOf(`{"a":2}`)
	if !l.Matches(view(calling("GET", "/", "Authorization", "Bearer "+one, "X-Token", two))) {
		t.Error("the claims of two tokens do not match")
	}
	if l.Matches(view(calling("GET", "/", "Authorization", "Bearer "+one, "X-Token", one))) {
		t.Error("the claims of one token match for another")
	}
}

func TestSourcesAreFoundAsClientsAre(t *testing.T) {
	l := limitOf(t, matching(policy.Match{SourceCIDRs: []string{"203.0.113.0/24", "2001:db8:1::/48"}}), func(p *policy.Policy) {
		p.ClientIP = policy.ClientIP{TrustedHops: 1}
	})
	for forwarded, want := range map[string]bool{
		"203.0.113.9": true, "2001:db8:1:2::7": true, "198.51.100.1": false, "203.0.113.9, 198.51.100.1": false, "?": false,
	} {
		if got := l.Matches(view(calling("GET", "/", "X-Forwarded-For", forwarded))); got != want {
			t.Errorf("%s: got %v", forwarded, got)
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

func TestSelectingDoesNotAllocate(t *testing.T) {
	l := limitOf(t, matching(policy.Match{
		Hosts:       []string{"*.example.com"},
		QueryParams: []policy.QueryMatch{{Type: policy.Exact, Name: "a", Value: "1"}},
		SourceCIDRs: []string{"192.0.2.0/24"},
		GRPC:        &policy.GRPCMatch{Service: "shop.Orders"},
	}))
	r := calling("POST", "http://shop.example.com/shop.Orders/Create?b=2&a=1")
	if n := testing.AllocsPerRun(100, func() {
		if !l.Matches(view(r)) {
			t.Fatal("it does not match")
		}
	}); n > 0 {
		t.Errorf("%v allocations", n)
	}
}

// FuzzHost checks that every spelling of a host that means the same is the same host.
func FuzzHost(f *testing.F) {
	f.Add("shop.Example.com:80")
	f.Add("[fd00::1]:443")
	f.Add("[a.]")
	f.Add("::1%eth0.")
	f.Fuzz(func(t *testing.T, host string) {
		key := limitOf(t, keyed(policy.Skip, policy.KeyPart{Type: policy.HostKey}))
		named := func(host string) string {
			r := request("GET /")
			r.Host = host
			name, _, _ := key.Value(view(r))
			return name
		}
		name := named(host)
		if len(host) > 100 { // a longer one is counted by a digest
			return
		}
		if again := named(name); again != name {
			t.Errorf("%q is %q, which is %q", host, name, again)
		}
		if name != "" && !strings.ContainsAny(host, ":[]") && (named(host+":8080") != name || named(host+".") != name || named(strings.ToUpper(host)) != named(strings.ToLower(host))) {
			t.Errorf("%q is another host with a port, a dot or in upper case", host)
		}
		if err := policy.ValidateHost(name); err == nil && !strings.HasPrefix(name, "*") && !limitOf(t, matching(policy.Match{Hosts: []string{name}})).Matches(at(host)) {
			t.Errorf("%q does not match %q", name, host)
		}
	})
}

func at(host string) *policy.Request {
	r := request("GET /")
	r.Host = host
	return view(r)
}

// FuzzToken checks that no token, however it is written, breaks a limit, and that one
// that claims something claims what was put into it.
func FuzzToken(f *testing.F) {
	f.Add("Bearer "+tokenOf(`{"sub":"a"}`), "alice")
	f.Add("Bearer a.b.c", `"`)
	f.Add(strings.Repeat(".", 9000), "\x00")
	f.Add("Bearer "+tokenOf(strings.Repeat(`{"a":`, 1500)), "")
	f.Fuzz(func(t *testing.T, field, subject string) {
		l := limitOf(t, matching(policy.Match{
			JWTClaims:  []policy.ClaimMatch{{Type: policy.Present, Header: "authorization", Claim: "a.b"}},
			Expression: "has(request.jwt.sub) && request.jwt.sub == 'a'",
		}), keyed(policy.Skip, policy.KeyPart{Type: policy.JWTClaimKey, Header: "authorization", Name: "sub"}))
		r := view(calling("GET", "/", "Authorization", field))
		l.Matches(r)
		l.Value(r)
		if subject == "" || len(subject) > 100 || strings.ToValidUTF8(subject, "") != subject {
			return
		}
		claims, err := jsonOf(map[string]string{"sub": subject})
		if err != nil {
			t.Fatal(err)
		}
		if got, _, _ := l.Value(view(calling("GET", "/", "Authorization", "Bearer "+tokenOf(claims)))); got != subject {
			t.Errorf("%q claims %q", subject, got)
		}
	})
}
