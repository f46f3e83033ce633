package policy_test

import (
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
