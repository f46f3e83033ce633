package policy_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/weir-dev/weir/pkg/policy"
)

func jsonOf(value any) (string, error) {
	data, err := json.Marshal(value)
	return string(data), err
}

func expressing(source string) policy.Match { return policy.Match{Expression: source} }

func TestExpressions(t *testing.T) {
	r := calling("POST", "http://Shop.example.com:80/v1//orders?a=1&a=2&b=%20", "X-Plan", "gold", "X-Tag", "a", "X-Tag", "b",
		"Authorization", "Bearer "+tokenOf(`{"sub":"alice","level":7,"ratio":0.5,"id":9007199254740993,"realm":{"roles":["admin","dev"]}}`))
	for source, want := range map[string]bool{
		"request.method == 'POST'":                                    true,
		"request.path == '/v1/orders'":                                true,
		"request.host == 'shop.example.com'":                          true,
		"request.clientIP == '192.0.2.7'":                             true,
		"request.clientIP == '192.0.2.8'":                             false,
		"request.headers['x-plan'] == 'gold'":                         true,
		"request.headers['x-tag'] == 'a, b'":                          true,
		"request.headers['host'] == 'Shop.example.com:80'":            true,
		"'x-other' in request.headers":                                false,
		"request.query['a'] == '1' && request.query['b'] == ' '":      true,
		"'c' in request.query":                                        false,
		"request.jwt.sub == 'alice'":                                  true,
		"request.jwt.level > 6 && request.jwt.level < 8":              true,
		"request.jwt.ratio == 0.5":                                    true,
		"request.jwt.id == 9007199254740992":                          false,
		"'admin' in request.jwt.realm.roles":                          true,
		"request.jwt.realm.roles.exists(r, r.startsWith('de'))":       true,
		"has(request.jwt.plan)":                                       false,
		"request.path.matches('^/v[0-9]+/') && size(request.jwt) > 3": true,
	} {
		t.Run(source, func(t *testing.T) {
			if got := limitOf(t, matching(expressing(source))).Matches(view(r)); got != want {
				t.Errorf("got %v, want %v", got, want)
			}
		})
	}
}

// TestARequestThatCannotBeJudgedIsLimited checks that an expression without a value errs
// on the side of the limit wherever it stands.
func TestARequestThatCannotBeJudgedIsLimited(t *testing.T) {
	large := calling("GET", "/", "X-Long", strings.Repeat("a", 1<<20))
	for name, tc := range map[string]struct {
		source  string
		request *policy.Request
	}{
		"what it reads is missing":  {"request.headers['x-plan'] == 'gold'", view(calling("GET", "/"))},
		"no token":                  {"request.jwt.plan == 'gold'", view(calling("GET", "/"))},
		"a claim of another type":   {"request.jwt.level > 1", view(calling("GET", "/", "Authorization", "Bearer "+tokenOf(`{"level":"x"}`)))},
		"a request that is too big": {"request.headers['x-long'].contains('b')", view(large)},
	} {
		t.Run(name, func(t *testing.T) {
			if !limitOf(t, matching(expressing(tc.source))).Matches(tc.request) {
				t.Error("a match leaves it out")
			}
			exempt := limitOf(t, func(p *policy.Policy) { p.Limits[0].Exempt = []policy.Match{expressing(tc.source)} })
			if !exempt.Matches(tc.request) {
				t.Error("it is exempt")
			}
			other := matching(policy.Match{Methods: []string{"PUT"}, Expression: tc.source})
			if limitOf(t, other).Matches(tc.request) {
				t.Error("a match takes it in that says no by another field")
			}
			pool := compilePool(t, expressing(tc.source))
			if pool.Exempt(tc.request) || pool.Ignore(tc.request) || pool.Partition(tc.request) == 0 {
				t.Error("a pool spares it")
			}
		})
	}
}

// compilePool returns a pool in which all that m matches is exempt, ignored and of the
// first partition.
func compilePool(t *testing.T, m policy.Match) *policy.CompiledPool {
	t.Helper()
	set, err := policy.Compile(pooled(func(p *policy.Pool) {
		p.Exempt, p.Algorithm.Ignore = []policy.Match{m}, []policy.Match{m}
		p.Partitions = []policy.Partition{{Name: "first", Match: []policy.Match{m}}}
	}))
	if err != nil {
		t.Fatal(err)
	}
	return set.Pools()[0]
}

func TestExpressionsAreRefused(t *testing.T) {
	for source, want := range map[string]string{
		"request.method ==":      "character 18: Syntax error",
		"request.plan == 'gold'": "undeclared reference",
		"request.method == 1":    "character 16: found no matching overload",
		"request.path":           "is of type string, not bool: compare it with a value",
		"request.jwt.admin":      "is of type dyn, not bool: compare it with a value",
		"true || " + strings.Repeat("request.path.matches('a.*b') || ", 40) + "true":        "size exceeds limit",
		"request.headers.exists(a, request.query.exists(b, request.query.exists(c, true)))": "avoid nested searches such as exists(… exists(…))",
	} {
		err := policy.ValidateCondition(source)
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%.60s: got %v, want an error of one line that says %q", source, err, want)
		}
	}
	if err := policy.ValidateValue("request.jwt.sub"); err == nil || !strings.Contains(err.Error(), "convert it, as in string(request.jwt.sub)") {
		t.Errorf("got %v", err)
	}
}

func BenchmarkExpression(b *testing.B) {
	l := limitOf(b, matching(expressing("request.headers['x-plan'] == 'gold'")))
	r := calling("GET", "/v1/orders", "X-Plan", "gold")
	b.ReportAllocs()
	for b.Loop() {
		if !l.Matches(view(r)) {
			b.Fatal("it does not match")
		}
	}
}

func BenchmarkClaim(b *testing.B) {
	l := limitOf(b, keyed(policy.Reject, policy.KeyPart{Type: policy.JWTClaimKey, Header: "authorization", Name: "sub"}))
	r := calling("GET", "/v1/orders", "Authorization", "Bearer "+tokenOf(`{"iss":"https://issuer.example.com","sub":"alice","exp":1800000000}`))
	b.ReportAllocs()
	for b.Loop() {
		if value, _, _ := l.Value(view(r)); value != "alice" {
			b.Fatalf("it claims %q", value)
		}
	}
}

// TestExpressionsFindClientsAsThePolicySays, in a match and in a key.
func TestExpressionsFindClientsAsThePolicySays(t *testing.T) {
	r := view(calling("GET", "/", "X-Forwarded-For", "203.0.113.9"))
	for hops, want := range []string{"192.0.2.7", "203.0.113.9"} {
		trusted := func(p *policy.Policy) { p.ClientIP.TrustedHops = hops }
		for _, ip := range []string{"192.0.2.7", "203.0.113.9"} {
			if got := limitOf(t, trusted, matching(expressing("request.clientIP == '"+ip+"'"))).Matches(r); got != (ip == want) {
				t.Errorf("behind %d hops it is %s: %v", hops, ip, got)
			}
		}
		part := policy.KeyPart{Type: policy.ExpressionKey, Expression: "request.clientIP"}
		if got, _, _ := limitOf(t, trusted, keyed(policy.Reject, part)).Value(r); got != want {
			t.Errorf("behind %d hops the key is %q, want %q", hops, got, want)
		}
	}
}

// TestATokenIsReadOnce: two expressions that read one token both find its claims, and so
// does one that reads another header.
func TestATokenIsReadOnce(t *testing.T) {
	r := view(calling("GET", "/", "Authorization", "Bearer "+tokenOf(`{"sub":"alice"}`), "X-Token", tokenOf(`{"sub":"bob"}`)))
	claim := func(header, value string) policy.Match {
		return policy.Match{JWTClaims: []policy.ClaimMatch{{Type: policy.Exact, Header: header, Claim: "sub", Value: value}}}
	}
	for _, m := range []policy.Match{claim("Authorization", "alice"), claim("X-Token", "bob"), claim("Authorization", "alice"), claim("X-Token", "bob")} {
		if !limitOf(t, matching(m)).Matches(r) {
			t.Errorf("%+v does not match", m.JWTClaims[0])
		}
	}
}
