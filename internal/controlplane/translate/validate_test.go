package translate_test

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/weir-dev/weir/internal/controlplane/translate"
)

// invalid is a policy that the CRD's schema accepts and nobody can enforce.
type invalid struct {
	spec    string // YAML
	field   string // of the only error
	message string // a part of it that names the cure
}

// verified returns a policy with a provider of tokens, whose keys are there.
func verified(jwks string) string {
	return `{podSelector: {}, jwtProviders: [{name: accounts, issuer: accounts, jwks: {` + jwks + `}}]` + oneLimit + `}`
}

const oneLimit = `, limits: [{name: all, rates: [{limit: 1, window: 1s}]}]`

func matching(match string) string {
	return `{podSelector: {}, limits: [{name: all, match: [` + match + `], rates: [{limit: 1, window: 1s}]}]}`
}

var invalidPolicies = map[string]invalid{
	"a selector operator that does not exist": {
		`{podSelector: {matchExpressions: [{key: app, operator: Equals, values: [a]}]}` + oneLimit + `}`,
		"spec.podSelector.matchExpressions[0].operator", `supported values: "In", "NotIn"`,
	},
	"an identity that nobody vouches for": {
		`{podSelector: {}, limits: [{name: all, key: {parts: [{type: PeerIdentity}]}, rates: [{limit: 1, window: 1s}]}]}`,
		"spec.limits[0].key.parts[0].type", "set spec.clientIP, for a mesh trustedCIDRs to the address that its proxy calls from",
	},
	"a tenant by an identity that nobody vouches for": {
		`{podSelector: {}, limits: [{name: all, fairness: {tenant: {type: PeerIdentity}}, rates: [{limit: 1, window: 1s}]}]}`,
		"spec.limits[0].fairness.tenant.type", "set spec.clientIP",
	},
	"an operator that needs values and has none": {
		`{podSelector: {matchExpressions: [{key: app, operator: In}]}` + oneLimit + `}`,
		"spec.podSelector.matchExpressions[0].values", "must be specified when `operator` is 'In' or 'NotIn'",
	},
	"an operator with values it does not take": {
		`{podSelector: {matchExpressions: [{key: app, operator: Exists, values: [a]}]}` + oneLimit + `}`,
		"spec.podSelector.matchExpressions[0].values", "may not be specified when `operator` is 'Exists' or 'DoesNotExist'",
	},
	"a selected label key that no label can have": {
		`{podSelector: {matchLabels: {"a b": c}}` + oneLimit + `}`,
		"spec.podSelector.matchLabels", "must consist of alphanumeric characters",
	},
	"a selected label value that no label can have": {
		`{podSelector: {matchLabels: {app: "a b"}}` + oneLimit + `}`,
		"spec.podSelector.matchLabels", "or consist of alphanumeric characters",
	},
	"a selected value of an expression that no label can have": {
		`{podSelector: {matchExpressions: [{key: app, operator: In, values: ["a b"]}]}` + oneLimit + `}`,
		"spec.podSelector.matchExpressions[0].values[0]", "or consist of alphanumeric characters",
	},
	"a path expression that does not compile": {
		matching(`{paths: [{value: /}, {type: RegularExpression, value: "/("}]}`),
		"spec.limits[0].match[0].paths[1].value", "missing closing ): `/(`): correct it",
	},
	"a path expression in a dialect other than RE2": {
		matching(`{paths: [{type: RegularExpression, value: "/(?=x)"}]}`),
		"spec.limits[0].match[0].paths[0].value", "not an RE2 expression",
	},
	"a path expression whose brackets only balance within ours": {
		matching(`{paths: [{type: RegularExpression, value: "/a)(b"}]}`),
		"spec.limits[0].match[0].paths[0].value", "unexpected )",
	},
	"a header expression that does not compile": {
		matching(`{headers: [{type: RegularExpression, name: x-region, value: "[a"}]}`),
		"spec.limits[0].match[0].headers[0].value", "missing closing ]",
	},
	"a path of 1024 characters that takes more bytes": {
		matching(`{paths: [{type: Exact, value: "/` + strings.Repeat("é", 600) + `"}]}`),
		"spec.limits[0].match[0].paths[0].value", "takes 1201 bytes: shorten it to at most 1024",
	},
	"a header value of 1024 characters that takes more bytes": {
		matching(`{headers: [{name: x-region, value: "` + strings.Repeat("é", 600) + `"}]}`),
		"spec.limits[0].match[0].headers[0].value", "takes 1200 bytes: shorten it to at most 1024",
	},
	"a claim of a provider that there is not": {
		matching(`{jwtClaims: [{claim: a, value: b}, {claim: a, value: b, verification: Verified, provider: accounts}]}`),
		"spec.limits[0].match[0].jwtClaims[1].provider", "add it there, or set verification to Unverified",
	},
	"a key of a provider that there is not": {
		`{podSelector: {}, limits: [{name: all, key: {parts: [{type: JWTClaim, jwtClaim: {claim: a, verification: Verified, provider: accounts}}]}, rates: [{limit: 1, window: 1s}]}]}`,
		"spec.limits[0].key.parts[0].jwtClaim.provider", "is the name of no entry of spec.jwtProviders",
	},
	"keys that are not a set":       {verified(`inline: "{}"`), "spec.jwtProviders[0].jwks.inline", "the set is not a JSON Web Key Set: write an object"},
	"a symmetric key":               {verified(`inline: '{"keys": [{"kty": "oct", "k": "c2VjcmV0"}]}'`), "spec.jwtProviders[0].jwks.inline", "the set keys[0] is symmetric or private"},
	"a URL that is not one":         {verified(`url: "https://accounts example.com"`), "spec.jwtProviders[0].jwks.url", "write https, a host and a path"},
	"a URL with a password":         {verified(`url: "https://a:b@accounts.example.com/keys"`), "spec.jwtProviders[0].jwks.url", "write https, a host and a path"},
	"a URL of a file":               {verified(`url: "file:///etc/passwd"`), "spec.jwtProviders[0].jwks.url", "write https, a host and a path"},
	"a URL without a host":          {verified(`url: "https://:443/keys"`), "spec.jwtProviders[0].jwks.url", "write https, a host and a path"},
	"a skew that is not a duration": {`{podSelector: {}, jwtProviders: [{name: a, issuer: a, clockSkew: long, jwks: {url: "https://a.example.com"}}]` + oneLimit + `}`, "spec.jwtProviders[0].clockSkew", "not a duration"},
	"a skew of more than 5 minutes": {`{podSelector: {}, jwtProviders: [{name: a, issuer: a, clockSkew: 6m, jwks: {url: "https://a.example.com"}}]` + oneLimit + `}`, "spec", "jwtProviders[0].clockSkew is 360000000, outside 0 to 300000000"},
	"a host that only looks like one": {
		matching(`{hosts: [a, "a..b"]}`),
		"spec.limits[0].match[0].hosts[1]", "write a host in lower case and without a port",
	},
	"a parameter expression that does not compile": {
		matching(`{queryParams: [{type: RegularExpression, name: q, value: "("}]}`),
		"spec.limits[0].match[0].queryParams[0].value", "missing closing )",
	},
	"a claim expression that does not compile": {
		matching(`{jwtClaims: [{type: RegularExpression, claim: sub, value: "("}]}`),
		"spec.limits[0].match[0].jwtClaims[0].value", "missing closing )",
	},
	"a descriptor's value that takes more bytes": {
		matching(`{descriptors: [{key: k, value: "` + strings.Repeat("é", 600) + `"}]}`),
		"spec.limits[0].match[0].descriptors[0].value", "takes 1200 bytes: shorten it to at most 1024",
	},
	"a condition that does not compile": {
		matching(`{expression: "request.verb == 'GET'"}`),
		"spec.limits[0].match[0].expression", "is not an expression over request.method, path, host, clientIP, headers, query and jwt: character 1: undeclared reference",
	},
	"a condition that is a string": {
		`{podSelector: {}, limits: [{name: all, exempt: [{expression: request.path}], rates: [{limit: 1, window: 1s}]}]}`,
		"spec.limits[0].exempt[0].expression", "is of type string, not bool: compare it with a value",
	},
	"a key that is true or false": {
		`{podSelector: {}, limits: [{name: all, key: {parts: [{type: Path}, {type: Expression, expression: "true"}]}, rates: [{limit: 1, window: 1s}]}]}`,
		"spec.limits[0].key.parts[1].expression", "is of type bool, not string: convert it",
	},
	"a tenant of any type": {
		`{podSelector: {}, limits: [{name: all, fairness: {tenant: {type: Expression, expression: request.jwt.org}}, rates: [{limit: 1, window: 1s}]}]}`,
		"spec.limits[0].fairness.tenant.expression", "convert it, as in string(request.jwt.sub)",
	},
	"a window with a fraction, past the schema": {
		`{podSelector: {}, limits: [{name: all, rates: [{limit: 1, window: 1.5s}]}]}`,
		"spec.limits[0].rates[0].window", "write whole numbers of h, m, s and ms",
	},
	"a bucket that cannot be counted exactly": {
		asked(`algorithm: TokenBucket, rates: [{limit: 999999999999, window: 744h}]`),
		"spec.limits[0].rates", "choose a limit that divides the window evenly, a smaller burst or a shorter window",
	},
	"a wait that cannot be counted exactly": {
		asked(`algorithm: LeakyBucket, maxDelay: 1h, rates: [{limit: 9999999, window: 1s}]`),
		"spec.limits[0].rates", "choose a limit that divides the window evenly or a shorter wait",
	},
	"two windows of an override that are one": {
		asked(aRate + `, key: {parts: [{type: Path}]}, overrides: [{values: [{parts: [/a]}], rates: [{limit: 1, window: 1s}, {limit: 2, window: 1000ms}]}]`),
		"spec.limits[0].overrides[0].rates", "rates[1].window equals rates[0].window; keep the smaller limit of the two",
	},
	"a value in two overrides": {
		asked(aRate + `, key: {parts: [{type: Method}]}, overrides: [{values: [{parts: [GET]}], ` + aRate + `}, {values: [{parts: [PUT]}, {parts: [GET]}], ` + aRate + `}]`),
		"spec.limits[0].overrides[1].values[1]", "names the value of spec.limits[0].overrides[0].values[0] a second time: remove one",
	},
	"two addresses that are one client": {
		asked(aRate + `, key: {parts: [{type: ClientIP}]}, overrides: [{values: [{parts: ["2001:db8::1"]}, {parts: ["2001:db8::2"]}], ` + aRate + `}]`),
		"spec.limits[0].overrides[0].values[1]", "a second time: remove one",
	},
	"a value that is not a client": {
		asked(aRate + `, key: {parts: [{type: Path}, {type: ClientIP}]}, overrides: [{values: [{parts: [/a, 10.0.0.0/8]}], ` + aRate + `}]`),
		"spec.limits[0].overrides[0].values[0].parts[1]", "write an address such as 192.0.2.1",
	},
	"a value that is not a path": {
		asked(aRate + `, key: {parts: [{type: Path}]}, overrides: [{values: [{parts: [a]}], ` + aRate + `}]`),
		"spec.limits[0].overrides[0].values[0].parts[0]", "a path starts with a slash",
	},
	"a value of 1024 characters that takes more bytes": {
		asked(aRate + `, key: {parts: [{type: Header, header: {name: x}}]}, overrides: [{values: [{parts: ["` + strings.Repeat("é", 600) + `"]}], ` + aRate + `}]`),
		"spec.limits[0].overrides[0].values[0].parts[0]", "has 1200 bytes: write 1 to 1024",
	},
	"a tenant that is not a client": {
		asked(aRate + `, fairness: {tenant: {type: ClientIP}, weights: [{tenant: gold, weight: 1}]}`),
		"spec.limits[0].fairness.weights[0].tenant", "write an address such as 192.0.2.1",
	},
	"two tenants that are one client": {
		asked(aRate + `, fairness: {tenant: {type: ClientIP}, weights: [{tenant: "2001:db8::1", weight: 1}, {tenant: "2001:db8::/64", weight: 1}]}`),
		"spec.limits[0].fairness.weights[1].tenant", "names a tenant a second time: remove one",
	},
	"a default cost that no limit admits": {
		asked(aRate + `, cost: {default: 101}`),
		"spec.limits[0].cost.default", "is more than the limit admits at once (100), so every request would be refused: lower it",
	},
	"a lifetime of a whole burst": {
		leased(`lifetime: 100ms`, `algorithm: GCRA, rates: [{limit: 100, window: 1s, burst: 10}]`),
		"spec.consistency.lease.lifetime", "leaves too little of the burst of limit all (10 at 100 per 1s): shorten it to at most 90ms, or raise its burst to 12 or more",
	},
	"a lifetime of the burst of an override": {
		leased(`lifetime: 100ms`, `algorithm: GCRA, `+aRate+`, key: {parts: [{type: Path}]}, overrides: [{values: [{parts: [/a]}], rates: [{limit: 100, window: 1s, burst: 10}]}]`),
		"spec.consistency.lease.lifetime", "shorten it to at most 90ms",
	},
	"a lifetime of a burst that has no room at all": {
		leased(`lifetime: 5ms`, `algorithm: GCRA, rates: [{limit: 1000, window: 1s, burst: 1}]`),
		"spec.consistency.lease.lifetime", "raise its burst to 7 or more, or set mode to Strict",
	},
	"a lifetime that leaves less than a request costs": {
		leased(`lifetime: 100ms`, `algorithm: GCRA, rates: [{limit: 100, window: 1s, burst: 50}], cost: {default: 41}`),
		"spec.consistency.lease.lifetime", "shorten it to at most 90ms",
	},
	"a lifetime longer than a sliding window": {
		leased(`lifetime: 101ms`, `algorithm: SlidingLog, rates: [{limit: 100, window: 100ms}]`),
		"spec.consistency.lease.lifetime", "is longer than a window of limit all: shorten it to at most 100ms",
	},

	"a leaky bucket that is leased, past the schema": {
		leased(``, `algorithm: LeakyBucket, maxDelay: 1s, `+aRate),
		"spec", "algorithm is LeakyBucket, which delays each request by its place in the queue: that needs mode Strict",
	},
	"credits of a bucket that carry over, past the schema": {
		leased(`expiry: CarryOver`, `algorithm: GCRA, `+aRate),
		"spec", "credits cannot be carried over: it has no windows",
	},
	"fairness that carries over, past the schema": {
		leased(`expiry: CarryOver`, aRate+`, fairness: {tenant: {type: Path}}`),
		"spec", "credits that die with their window",
	},
	"a low water of a batch, past the schema": {
		leased(`size: {type: Fixed, batch: 5}, lowWater: 5`, aRate),
		"spec", "consistency.lowWater is 5, outside 0 to 4",
	},
	"overrides without a key, past the schema": {
		asked(aRate + `, overrides: [{values: [{parts: [a]}], ` + aRate + `}]`),
		"spec", "overrides are of a limit without a key",
	},
	"a clock by its zone, past the schema": {
		asked(`algorithm: Quota, utcOffset: CET, ` + aRate),
		"spec.limits[0].utcOffset", "such as +02:00",
	},
	"a clock beyond the earth, past the schema": {
		asked(`algorithm: Quota, utcOffset: "+14:30", ` + aRate),
		"spec.limits[0].utcOffset", "from -14:00 to +14:00",
	},
	"a delay in words, past the schema": {
		asked(`algorithm: LeakyBucket, maxDelay: long, ` + aRate),
		"spec.limits[0].maxDelay", "write whole numbers of h, m, s and ms",
	},
	"an idle time in words, past the schema": {
		leased(`returnIdleAfter: soon`, aRate),
		"spec.consistency.lease.returnIdleAfter", "write whole numbers of h, m, s and ms",
	},
	"a Redis without a server, past the schema": {
		`{podSelector: {}, store: {type: Redis, redis: {}}` + oneLimit + `}`,
		"spec", "store.address is \"\": write host:port",
	},
	"what only a sidecar would refuse": {
		`{podSelector: {}, limits: [{name: all, rates: [{limit: 0, window: 1s}]}]}`,
		"spec.limits[0].rates", "rates[0].limit is 0, outside 1 to 1000000000000",
	},
}

func TestValidateRefuses(t *testing.T) {
	for name, tc := range invalidPolicies {
		t.Run(name, func(t *testing.T) {
			p := defaulted(t, []byte(`{metadata: {name: checkout, namespace: shop}, spec: `+tc.spec+`}`))
			warnings, errs := translate.Validate(p, nil)
			if len(errs) != 1 || errs[0].Field != tc.field || !strings.Contains(errs[0].Error(), tc.message) {
				t.Errorf("Validate = %v\nwant one error about %s that says %q", errs, tc.field, tc.message)
			}
			if len(warnings) > 0 {
				t.Errorf("an invalid policy has warnings: %q", warnings)
			}
			if _, err := translate.Policy(p, nil); err == nil {
				t.Error("Policy translates what Validate refuses")
			}
		})
	}
}

func TestValidateNamesEveryFault(t *testing.T) {
	p := defaulted(t, []byte(`
metadata: {name: checkout, namespace: shop}
spec:
  podSelector: {matchExpressions: [{key: app, operator: Equals}]}
  limits:
  - name: first
    match: [{paths: [{type: RegularExpression, value: "("}], headers: [{type: RegularExpression, name: x, value: "("}]}]
    rates: [{limit: 1, window: 1s}]
  - name: second
    rates: [{limit: 1, window: soon}]
`))
	want := []string{
		"spec.podSelector.matchExpressions[0].operator",
		"spec.limits[0].match[0].paths[0].value",
		"spec.limits[0].match[0].headers[0].value",
		"spec.limits[1].rates[0].window",
	}
	_, errs := translate.Validate(p, nil)
	if got := fields(errs); strings.Join(got, " ") != strings.Join(want, " ") {
		t.Errorf("faults in %q, want %q", got, want)
	}
}

func fields(errs field.ErrorList) []string {
	var names []string
	for _, err := range errs {
		names = append(names, err.Field)
	}
	return names
}
