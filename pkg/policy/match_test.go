package policy_test

import (
	"encoding/base64"
	"net/http"
	"net/http/httptest"
	"path"
	"slices"
	"strings"
	"testing"

	"github.com/weir-dev/weir/pkg/policy"
)

// limitOf compiles a policy and returns its only limit.
func limitOf(t testing.TB, changes ...func(*policy.Policy)) *policy.CompiledLimit {
	t.Helper()
	set, err := policy.Compile(valid(changes...))
	if err != nil {
		t.Fatal(err)
	}
	return set.Limits[0]
}

func matching(m ...policy.Match) func(*policy.Policy) {
	return func(p *policy.Policy) { p.Limits[0].Match = m }
}

func TestMatches(t *testing.T) {
	path := func(kind policy.MatchType, value string) policy.Match {
		return policy.Match{Paths: []policy.PathMatch{{Type: kind, Value: value}}}
	}
	header := func(kind policy.MatchType, name, value string) policy.Match {
		return policy.Match{Headers: []policy.HeaderMatch{{Type: kind, Name: name, Value: value}}}
	}
	for name, tc := range map[string]struct {
		match   []policy.Match
		request string // method, path and headers, by spaces
		want    bool
	}{
		"no match means every request":           {nil, "DELETE /x", true},
		"a method":                               {[]policy.Match{{Methods: []string{"GET", "POST"}}}, "POST /", true},
		"another method":                         {[]policy.Match{{Methods: []string{"GET", "POST"}}}, "PUT /", false},
		"an exact path":                          {[]policy.Match{path(policy.Exact, "/a")}, "GET /a", true},
		"an exact path has no children":          {[]policy.Match{path(policy.Exact, "/a")}, "GET /a/", false},
		"a query is not part of a path":          {[]policy.Match{path(policy.Exact, "/a")}, "GET /a?b=c", true},
		"a prefix matches itself":                {[]policy.Match{path(policy.PathPrefix, "/v1/orders")}, "GET /v1/orders", true},
		"a prefix matches below itself":          {[]policy.Match{path(policy.PathPrefix, "/v1/orders")}, "GET /v1/orders/7", true},
		"a prefix ends at a segment":             {[]policy.Match{path(policy.PathPrefix, "/v1/orders")}, "GET /v1/orders7", false},
		"a prefix with a slash at its end":       {[]policy.Match{path(policy.PathPrefix, "/v1/orders/")}, "GET /v1/orders", true},
		"the root is a prefix of all":            {[]policy.Match{path(policy.PathPrefix, "/")}, "GET /x", true},
		"an escaped spelling":                    {[]policy.Match{path(policy.PathPrefix, "/v1/orders")}, "GET /v1/%6frders", true},
		"repeated slashes":                       {[]policy.Match{path(policy.PathPrefix, "/v1/orders")}, "GET //v1///orders", true},
		"dot segments":                           {[]policy.Match{path(policy.PathPrefix, "/v1/orders")}, "GET /v1/x/.././orders/", true},
		"an expression over the whole path":      {[]policy.Match{path(policy.RegularExpression, "/a+")}, "GET /aaa", true},
		"an expression is not a search":          {[]policy.Match{path(policy.RegularExpression, "/a+")}, "GET /aaab", false},
		"alternatives are anchored together":     {[]policy.Match{path(policy.RegularExpression, "/a|/b")}, "GET /bc", false},
		"a header that is present":               {[]policy.Match{header(policy.Present, "x-a", "")}, "GET / X-A:", true},
		"a header that is absent":                {[]policy.Match{header(policy.Present, "x-a", "")}, "GET /", false},
		"a header's value":                       {[]policy.Match{header(policy.Exact, "x-a", "1")}, "GET / X-A:1", true},
		"a header's other value":                 {[]policy.Match{header(policy.Exact, "x-a", "1")}, "GET / X-A:2", false},
		"one of a header's values":               {[]policy.Match{header(policy.Exact, "x-a", "1")}, "GET / X-A:2 X-A:1", true},
		"an expression over a header":            {[]policy.Match{header(policy.RegularExpression, "x-a", "1+")}, "GET / X-A:12", false},
		"the host":                               {[]policy.Match{header(policy.Exact, "host", "example.com")}, "GET /", true},
		"all fields of a match have to match":    {[]policy.Match{{Methods: []string{"GET"}, Headers: header(policy.Present, "x-a", "").Headers}}, "GET /", false},
		"one match of several is enough":         {[]policy.Match{path(policy.Exact, "/a"), path(policy.Exact, "/b")}, "GET /b", true},
		"none of several":                        {[]policy.Match{path(policy.Exact, "/a"), path(policy.Exact, "/b")}, "GET /c", false},
		"a trailing dot segment keeps its slash": {[]policy.Match{path(policy.Exact, "/a/")}, "GET /a/b/..", true},
	} {
		t.Run(name, func(t *testing.T) {
			l := limitOf(t, matching(tc.match...))
			if got := l.Matches(view(request(tc.request))); got != tc.want {
				t.Errorf("got %v, want %v", got, tc.want)
			}
		})
	}
}

// view returns the view limits have of r.
func view(r *http.Request) *policy.Request {
	seen := policy.NewRequest(r)
	return &seen
}

// request returns a request from a line of method, target and headers.
func request(line string) *http.Request {
	words := strings.Fields(line)
	r := httptest.NewRequest(words[0], words[1], nil)
	for _, h := range words[2:] {
		name, value, _ := strings.Cut(h, ":")
		r.Header.Add(name, value)
	}
	return r
}

func TestExempt(t *testing.T) {
	health := policy.Match{Paths: []policy.PathMatch{{Type: policy.Exact, Value: "/healthz"}}}
	internal := policy.Match{Headers: []policy.HeaderMatch{{Type: policy.Exact, Name: "x-tenant", Value: "internal"}}}
	post := policy.Match{Methods: []string{"POST"}}
	for name, tc := range map[string]struct {
		match, exempt []policy.Match
		request       string
		want          bool
	}{
		"what is not exempt counts":             {nil, []policy.Match{health, internal}, "GET /x", true},
		"what is exempt does not":               {nil, []policy.Match{health, internal}, "GET /healthz", false},
		"any of several exemptions":             {nil, []policy.Match{health, internal}, "GET /x X-Tenant:internal", false},
		"an exemption beside that of a path":    {nil, []policy.Match{health, internal}, "GET /healthz;x X-Tenant:internal", false},
		"a match beside that of a path":         {[]policy.Match{health, internal}, nil, "GET /y;x X-Tenant:internal", true},
		"an exemption from what matches":        {[]policy.Match{post}, []policy.Match{internal}, "POST /x X-Tenant:internal", false},
		"an exemption does not widen a match":   {[]policy.Match{post}, []policy.Match{internal}, "GET /x", false},
		"what matches and is not exempt counts": {[]policy.Match{post}, []policy.Match{internal}, "POST /x", true},
	} {
		t.Run(name, func(t *testing.T) {
			l := limitOf(t, func(p *policy.Policy) { p.Limits[0].Match, p.Limits[0].Exempt = tc.match, tc.exempt })
			if got := l.Matches(view(request(tc.request))); got != tc.want {
				t.Errorf("got %v", got)
			}
		})
	}
}

// TestAlternativesAreTogether in their own order, in the place of the first of them.
func TestAlternativesAreTogether(t *testing.T) {
	s := valid(func(p *policy.Policy) {
		for _, name := range []string{"a", "b", "c", "d"} {
			p.Limits = append(p.Limits, policy.Limit{Name: name, Rates: p.Limits[0].Rates})
		}
		p.AnyOf = [][]string{{"d", "a"}, {"b", "c"}}
	})
	set, err := policy.Compile(s)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, group := range set.Groups() {
		var names []string
		for _, l := range group {
			names = append(names, l.Limit.Name)
		}
		got = append(got, strings.Join(names, "|"))
	}
	if want := []string{"all", "d|a", "b|c"}; !slices.Equal(got, want) {
		t.Errorf("the groups are %q, want %q", got, want)
	}
}

func TestLookup(t *testing.T) {
	set, err := policy.Compile(full())
	if err != nil {
		t.Fatal(err)
	}
	if l := set.Lookup("shop", "checkout", "per-tenant"); l == nil || l.Limit.Name != "per-tenant" {
		t.Errorf("got %v", l)
	}
	if l := set.Lookup("bank", "checkout", "per-tenant"); l != nil {
		t.Errorf("found %v in another namespace", l)
	}
}

func TestMatchingDoesNotAllocate(t *testing.T) {
	l := limitOf(t, matching(full().Policies[0].Limits[1].Match...))
	r := request("POST /v1/orders/7 X-Tenant:gold")
	if n := testing.AllocsPerRun(100, func() { l.Matches(view(r)) }); n > 0 {
		t.Errorf("%v allocations", n)
	}
}

// FuzzMatches compares prefixes with what they mean, segment by segment, and
// checks that no other spelling of a path escapes what the path matches.
func FuzzMatches(f *testing.F) {
	f.Add("/v1/orders", "/v1/orders/7")
	f.Add("/", "//")
	f.Add("/a/../b", "/a/./b/..")
	f.Fuzz(func(t *testing.T, pattern, target string) {
		for _, kind := range []policy.MatchType{policy.Exact, policy.PathPrefix, policy.RegularExpression} {
			set, err := policy.Compile(valid(matching(policy.Match{Paths: []policy.PathMatch{{Type: kind, Value: pattern}}})))
			if err != nil {
				continue
			}
			matches := func(target string) bool {
				r := request("GET /")
				r.URL.Path = target
				return set.Limits[0].Matches(view(r))
			}
			if plain := path.Clean("/" + target); matches(plain) && !matches("//x/.././"+plain) {
				t.Errorf("another spelling of %q escapes %s %q", target, kind, pattern)
			}
			if kind != policy.PathPrefix {
				continue
			}
			prefix, all := segments(pattern), segments(target)
			below := len(prefix) <= len(all) && slices.Equal(prefix, all[:len(prefix)])
			several := strings.ContainsAny(target, `%;\`) || strings.Contains("/"+target, "//") || strings.Contains("/"+target, "/.")
			if got := matches("/" + target); got != below && (below || !several) {
				t.Errorf("prefix %q matches %q: got %v, want %v", pattern, target, got, below)
			}
		}
	})
}

func segments(p string) []string {
	return strings.FieldsFunc(path.Clean("/"+p), func(r rune) bool { return r == '/' })
}

// tokenOf returns a token that claims what the JSON says. It has no valid signature.
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

func at(host string) *policy.Request {
	r := request("GET /")
	r.Host = host
	return view(r)
}
