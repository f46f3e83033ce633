package policy_test

import (
	"math/rand/v2"
	"net/url"
	"path"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/weir-dev/weir/pkg/concurrency/slots"
	"github.com/weir-dev/weir/pkg/policy"
)

func below(prefix string) []policy.Match {
	return []policy.Match{{Paths: []policy.PathMatch{{Type: policy.PathPrefix, Value: prefix}}}}
}

func exactly(value string) []policy.Match {
	return []policy.Match{{Paths: []policy.PathMatch{{Type: policy.Exact, Value: value}}}}
}

func poolOf(t *testing.T, change func(*policy.Pool)) *policy.CompiledPool {
	t.Helper()
	set, err := policy.Compile(pooled(change))
	if err != nil {
		t.Fatal(err)
	}
	return set.Pools()[0]
}

// disguises are targets that some app takes for one below /graphql, or for /login.
var disguises = []struct{ target, app string }{
	{"/graphql/../healthz", "compares what was sent"},
	{"/graphql/x/../../healthz", "compares what was sent"},
	{"/graphql/%2e%2e/healthz", "compares what was sent"},
	{"/graphql/x%2f..%2f..%2fhealthz", "decodes"},
	{"/healthz/..%2fgraphql", "decodes, then resolves dots"},
	{"/x/../graphql%2f..%2fhealthz", "resolves dots, then decodes"},
	{"/x/../graphql%2f..%2fhealthz/|", "resolves dots, then decodes"},
	{"/healthz/..;/graphql", "drops parameters, then resolves dots"},
	{"/healthz/..;x=1/graphql;y=2/a", "drops parameters, then resolves dots"},
	{"/graphql;x/../healthz", "drops parameters"},
	{"/healthz/..%3bx/graphql", "decodes, drops parameters, then resolves dots"},
	{"/healthz/%252e%252e/graphql", "decodes twice, behind a gateway that decodes"},
	{"/healthz/%252e%252e/graphql/%25zz", "decodes twice, the second time what is valid"},
	{"/%2567raphql/%25zz", "decodes twice, the second time what is valid"},
	{"/%2567raphql/%25%2567%25", "decodes twice, the second time what is valid"},
	{"/healthz/x//../../graphql", "takes repeated slashes for one"},
	{"/healthz//../../graphql", "takes an empty segment for one"},
	{"//graphql/../healthz", "takes repeated slashes for one"},
	{"/gr%61phql/../healthz", "decodes"},
	{`/healthz\..\graphql`, "takes backslashes for slashes"},
	{"/healthz/..%5cgraphql%5Ca", "decodes, then takes backslashes for slashes"},
}

func TestNoSpellingEscapesAMatch(t *testing.T) {
	for _, tc := range disguises {
		for by, match := range map[string][]policy.Match{
			"prefix":     below("/graphql"),
			"pattern":    {{Paths: []policy.PathMatch{{Type: policy.RegularExpression, Value: "/graphql(/.*)?"}}}},
			"gRPC":       {{GRPC: &policy.GRPCMatch{Service: "graphql"}}},
			"expression": {expressing("request.path == '/graphql' || request.path.startsWith('/graphql/')")},
			"negation":   {expressing("!request.path.startsWith('/healthz')")},
		} {
			if !limitOf(t, matching(match...)).Matches(view(request("GET " + tc.target))) {
				t.Errorf("%s escapes a %s at an app that %s", tc.target, by, tc.app)
			}
		}
	}
	for _, target := range []string{"/login;x", "/a/../login", "/%6cogin", "/login%3bx", "//login", "/./login", "/%256cogin", "/a%2f../login", "/login/.;a/..;b/login"} {
		if !limitOf(t, matching(exactly("/login")...)).Matches(view(request("GET " + target))) {
			t.Errorf("%s escapes", target)
		}
	}
	for _, target := range []string{"/healthz", "/healthz/..;/x", "/logins", "/log;in", "/a%2flogin"} {
		if limitOf(t, matching(append(exactly("/login"), below("/graphql")...)...)).Matches(view(request("GET " + target))) {
			t.Errorf("%s matches and is read so by nobody", target)
		}
	}
}

func TestNoSpellingIsExempt(t *testing.T) {
	for by, exempt := range map[string][]policy.Match{
		"prefix":     below("/healthz"),
		"exact path": exactly("/healthz"),
		"pattern":    {{Paths: []policy.PathMatch{{Type: policy.RegularExpression, Value: "/healthz(/.*)?"}}}},
		"gRPC":       {{GRPC: &policy.GRPCMatch{Service: "healthz"}}},
		"expression": {expressing("request.path.startsWith('/healthz')")},
		"negation":   {expressing("!request.path.startsWith('/graphql')")},
	} {
		limit := limitOf(t, func(p *policy.Policy) { p.Limits[0].Exempt = exempt })
		pool := poolOf(t, func(p *policy.Pool) { p.Exempt, p.Algorithm.Ignore = exempt, exempt })
		for _, tc := range disguises {
			r := view(request("GET " + tc.target))
			if !limit.Matches(r) {
				t.Errorf("%s is exempt from the limit by %s at an app that %s", tc.target, by, tc.app)
			}
			if pool.Exempt(r) {
				t.Errorf("%s is exempt from the pool by %s at an app that %s", tc.target, by, tc.app)
			}
			if pool.Ignore(r) {
				t.Errorf("%s is ignored by %s at an app that %s", tc.target, by, tc.app)
			}
		}
		if r := view(request("GET /healthz")); limit.Matches(r) || !pool.Exempt(r) || !pool.Ignore(r) {
			t.Errorf("%s: /healthz itself is not exempt", by)
		}
	}
	static := limitOf(t, func(p *policy.Policy) { p.Limits[0].Exempt = append(below("/static"), below("/img")...) })
	for target, limited := range map[string]bool{
		"/static/a%20b;v=1/../c": false, // wherever it leads, it stays there
		"/static/../img/x":       false, // one exemption or the other
		"/static/..%2f/x":        true,
	} {
		if got := static.Matches(view(request("GET " + target))); got != limited {
			t.Errorf("%s is limited: %v", target, got)
		}
	}
}

func TestAPathWithTooManyReadingsIsLimited(t *testing.T) {
	for name, target := range map[string]string{
		"too many": "/healthz/..;/%2e%2e;/a//..;/b%252f..%252f..//c;d/..%3b/healthz",
		"too long": "/healthz/%20" + strings.Repeat("a", 17<<10),
	} {
		for by, list := range map[string][]policy.Match{
			"path":       below("/healthz"),
			"gRPC":       {{GRPC: &policy.GRPCMatch{Service: "healthz"}}},
			"expression": {expressing("request.path.startsWith('/healthz')")},
		} {
			r := view(request("GET " + target))
			if !limitOf(t, func(p *policy.Policy) { p.Limits[0].Exempt = list }).Matches(r) {
				t.Errorf("%s: it is exempt by %s", name, by)
			}
			if poolOf(t, func(p *policy.Pool) { p.Exempt = list }).Exempt(r) {
				t.Errorf("%s: it is exempt from a pool by %s", name, by)
			}
		}
		for by, list := range map[string][]policy.Match{
			"path":       exactly("/x"),
			"gRPC":       {{GRPC: &policy.GRPCMatch{Service: "x"}}},
			"expression": {expressing("request.path == '/x'")},
		} {
			if !limitOf(t, matching(list...)).Matches(view(request("GET " + target))) {
				t.Errorf("%s: it escapes a %s", name, by)
			}
			list[0].Methods = []string{"POST"}
			if limitOf(t, matching(list...)).Matches(view(request("GET " + target))) {
				t.Errorf("%s: by %s it matches another method", name, by)
			}
		}
	}
}

// TestKeysAndPartitionsHaveOneSpelling: other readings open no second counter.
func TestKeysAndPartitionsHaveOneSpelling(t *testing.T) {
	pool := poolOf(t, func(p *policy.Pool) {
		p.Partitions = []policy.Partition{{Name: "graphql", Match: below("/graphql")}, {Name: "healthz", Match: below("/healthz")}}
	})
	for _, part := range []policy.KeyPart{{Type: policy.PathKey}, {Type: policy.ExpressionKey, Expression: "request.path"}} {
		l := limitOf(t, keyed(policy.Skip, part), matching(below("/graphql")...))
		r := view(request("GET /graphql/../healthz;x/.."))
		if !l.Matches(r) {
			t.Fatal("it does not match")
		}
		if got, _, _ := l.Value(r); got != "/" {
			t.Errorf("%s: it is counted by %q", part.Type, got)
		}
		if got := pool.Partition(r); got != slots.Rest {
			t.Errorf("it belongs to partition %d", got)
		}
	}
}

// apps are what apps and what is in front of them do to a path, written apart from
// what is tested.
var apps = []func(string) string{
	func(p string) string {
		if decoded, err := url.PathUnescape(p); err == nil {
			return decoded
		}
		return p
	},
	func(p string) string {
		return regexp.MustCompile("%[0-9A-Fa-f]{2}").ReplaceAllStringFunc(p, func(escape string) string {
			octet, _ := strconv.ParseUint(escape[1:], 16, 8)
			return string([]byte{byte(octet)})
		})
	},
	func(p string) string {
		segments := strings.Split(p, "/")
		for i := range segments {
			segments[i], _, _ = strings.Cut(segments[i], ";")
		}
		return strings.Join(segments, "/")
	},
	func(p string) string { return regexp.MustCompile("/+").ReplaceAllString(p, "/") },
	func(p string) string { return (&url.URL{Path: "/"}).ResolveReference(&url.URL{Path: p}).Path },
}

// TestWhateverAnAppReadsIsLimited sends random paths to apps that read them in random
// ways: what the app serves is limited as that, and exempt only if that is.
func TestWhateverAnAppReadsIsLimited(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	pieces := []string{"/", "//", "/.", "/..", "/%2e%2e", "%2f", ";x", "%3b", "/graphql", "/healthz", "/healthz", "/a", "%25", "2e", "%25z", "/..;"}
	exempt := limitOf(t, func(p *policy.Policy) { p.Limits[0].Exempt = below("/healthz") })
	pool := poolOf(t, func(p *policy.Pool) { p.Exempt = below("/healthz") })
	exempted := 0
	for range 5000 {
		sent := "/healthz"[:1+random.IntN(2)*7]
		for range 1 + random.IntN(6) {
			sent += pieces[random.IntN(len(pieces))]
		}
		u, err := url.ParseRequestURI(sent)
		if err != nil {
			continue
		}
		r := request("GET /")
		r.URL = u
		free, slotless := !exempt.Matches(view(r)), pool.Exempt(view(r))
		read := sent
		for range 1 + random.IntN(4) {
			read = apps[random.IntN(len(apps))](read)
			mount := "/" + strings.SplitN(read, "/", 3)[1]
			if (free || slotless) && mount != "/healthz" {
				t.Fatalf("%s is exempt and read as %s", sent, read)
			}
			if path.Clean(mount) != mount {
				continue // nothing that a policy could name
			}
			if !limitOf(t, matching(below(mount)...)).Matches(view(r)) {
				t.Fatalf("%s is read as %s and escapes prefix %s", sent, read, mount)
			}
			if !limitOf(t, matching(exactly(read)...)).Matches(view(r)) {
				t.Fatalf("%s is read as %s and escapes it", sent, read)
			}
		}
		if free {
			exempted++
		}
	}
	if exempted < 50 {
		t.Errorf("only %d paths were exempt", exempted)
	}
}

// TestAPathThatIsSentEscapedIsExemptInBothSpellings: no client sends such a path as it is,
// and one that escapes more of it than clients do is limited.
func TestAPathThatIsSentEscapedIsExemptInBothSpellings(t *testing.T) {
	for target, plain := range map[string]string{"/gr%C3%B6%C3%9Fe": "/größe", "/a%20b": "/a b"} {
		for _, tc := range []struct {
			exempt  []policy.Match
			limited bool
		}{
			{exactly(plain), true},
			{exactly(target), true},
			{append(exactly(plain), exactly(target)...), false},
		} {
			l := limitOf(t, func(p *policy.Policy) { p.Limits[0].Exempt = tc.exempt })
			if got := l.Matches(view(request("GET " + target))); got != tc.limited {
				t.Errorf("%s is limited beside the exemptions %v: %v", target, tc.exempt, got)
			}
		}
	}
}

// TestAConditionThatReadsNoPathIsEvaluatedOnce counts the allocations of an expression, which are about
// the same each time that it is evaluated: a pool may lose something in between.
func TestAConditionThatReadsNoPathIsEvaluatedOnce(t *testing.T) {
	const odd = "/a;x/b%2fc;y/d%3bz"
	no := expressing("request.headers.exists(h, h == 'x-a')")
	allocated := func(target string, ms ...policy.Match) float64 {
		limit := limitOf(t, matching(append(ms, exactly("/x")...)...))
		exempt := limitOf(t, func(p *policy.Policy) { p.Limits[0].Exempt = append(ms, below("/")...) })
		pool := poolOf(t, func(p *policy.Pool) { p.Exempt = append(ms, exactly("/x")...) })
		r := request("GET " + target)
		return testing.AllocsPerRun(100, func() {
			if limit.Matches(view(r)) || exempt.Matches(view(r)) || pool.Exempt(view(r)) {
				t.Fatalf("%s is judged by another entry", target)
			}
		})
	}
	plain, many := allocated("/a", no)-allocated("/a"), allocated(odd, no)-allocated(odd)
	if plain < 1 || many > plain*3/2 {
		t.Errorf("it allocates %v times for a path of one reading, %v for one of many", plain, many)
	}
	alone := limitOf(t, matching(no))
	ask := func(target string) float64 {
		r := request("GET " + target)
		return testing.AllocsPerRun(100, func() { alone.Matches(view(r)) })
	}
	if plain, many := ask("/a"), ask(odd); many > plain*3/2 {
		t.Errorf("alone it allocates %v times for a path of one reading, %v for one of many", plain, many)
	}
}

// TestAnExpressionThatMentionsThePathIsAskedAgain, wherever it does.
func TestAnExpressionThatMentionsThePathIsAskedAgain(t *testing.T) {
	for _, source := range []string{
		"request.path == '/login'",
		".request.path == '/login'",
		"request . path == '/login'",
		"request.method == 'PUT' || '/login' in [request.host, request.path]",
		"['/login'].exists(l, request.path == l)",
		"{'p': request.path}.p == '/login'",
		"['x'].exists(request, .request.path == '/login')",
		"[request.path].map(p, p + '/').exists(p, p == '/login/')",
		"request.method == 'GET' ? request.path.endsWith('login') : false",
	} {
		if !limitOf(t, matching(expressing(source))).Matches(view(request("GET /login;x"))) {
			t.Errorf("/login;x escapes %s", source)
		}
	}
}

func TestPlainPathsDoNotAllocate(t *testing.T) {
	exempt := limitOf(t, matching(exactly("/x")...), func(p *policy.Policy) { p.Limits[0].Exempt = below("/v1") })
	pool := poolOf(t, func(p *policy.Pool) { p.Exempt = below("/v1") })
	r := request("GET /v1/orders.list/7-a_b~c:d@e=f+g,h")
	if n := testing.AllocsPerRun(100, func() { exempt.Matches(view(r)); pool.Exempt(view(r)) }); n > 0 {
		t.Errorf("%v allocations", n)
	}
}

func BenchmarkReadings(b *testing.B) {
	l := limitOf(b, matching(exactly("/login")...))
	for name, target := range map[string]string{
		"plain":   "/v1/orders/7",
		"escaped": "/files/a%20b.txt",
		"hostile": "/x/..;/%2e%2e//..;/y%252f" + strings.Repeat("/a%2e;b", 700),
	} {
		b.Run(name, func(b *testing.B) {
			r := request("GET " + target)
			b.ReportAllocs()
			for b.Loop() {
				l.Matches(view(r))
			}
		})
	}
}
