package v1alpha1_test

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

func TestDefaults(t *testing.T) {
	cases := map[string]struct {
		given string // YAML of a spec
		at    []string
		want  string // YAML of what is there after defaulting; empty: nothing
	}{
		"the whole of the smallest policy": {
			`{` + selectAll + `, ` + oneLimit + `}`, nil,
			`{podSelector: {}, mode: Enforce, limits: [{name: all, algorithm: FixedWindow, combine: All, rates: [{limit: 1, window: 1s}]}],
			  consistency: {mode: Leased}, store: {type: Controller, access: Direct, memory: Auto, onMemoryLoss: Wait}, onStoreUnavailable: {action: LocalShare},
			  response: {headers: [IETF], quotaFields: NearLimit, retryAfterJitterPercent: 10, statusCode: 429, grpcStatus: ResourceExhausted, body: {type: ProblemJSON}}}`,
		},
		"a response keeps what is given": {
			withSpec(`response: {headers: [], retryAfterJitterPercent: 0, body: {type: None}}`),
			[]string{"response"},
			`{headers: [], quotaFields: NearLimit, retryAfterJitterPercent: 0, statusCode: 429, grpcStatus: ResourceExhausted, body: {type: None}}`,
		},
		"a token is in Authorization, and values are exact": {
			withLimit(`match: [{queryParams: [{name: a, value: b}], jwtClaims: [{claim: a, value: b}]}], key: {parts: [{type: JWTClaim, jwtClaim: {claim: sub}}]}`),
			[]string{"limits"},
			`[{name: all, algorithm: FixedWindow, combine: All, rates: [{limit: 1, window: 1s}],
			   match: [{queryParams: [{type: Exact, name: a, value: b}], jwtClaims: [{header: Authorization, type: Exact, claim: a, value: b, verification: Unverified}]}],
			   key: {parts: [{type: JWTClaim, jwtClaim: {claim: sub, header: Authorization, verification: Unverified}}], onMissing: Shared, maxKeys: 100000}}]`,
		},
		"a provider of tokens knows no shared secrets, and a minute": {
			withProvider(`jwks: {url: "https://accounts.example.com/keys"}`),
			[]string{"jwtProviders"},
			`[{name: accounts, issuer: accounts, algorithms: [RS256, PS256, ES256, EdDSA], clockSkew: 1m, jwks: {url: "https://accounts.example.com/keys"}}]`,
		},
		"a mode that is given stays": {withSpec(`mode: Shadow`), []string{"mode"}, `Shadow`},
		"a path is a prefix, a header exact, keys are bounded and shared when missing": {
			withLimit(`match: [{paths: [{value: /v1}], headers: [{name: x, value: live}]}], key: {parts: [{type: Path}]}`),
			[]string{"limits"},
			`[{name: all, algorithm: FixedWindow, combine: All, rates: [{limit: 1, window: 1s}],
			   match: [{paths: [{type: PathPrefix, value: /v1}], headers: [{type: Exact, name: x, value: live}]}],
			   key: {parts: [{type: Path}], onMissing: Shared, maxKeys: 100000}}]`,
		},
		"an empty consistency leases": {withSpec(`consistency: {}`), []string{"consistency"}, `{mode: Leased}`},
		"Strict has no lease":         {withSpec(`consistency: {mode: Strict}`), []string{"consistency"}, `{mode: Strict}`},
		"a lease has a size that is learned and dies with its window": {
			withLease(``),
			[]string{"consistency"},
			`{mode: Leased, lease: {size: {type: Adaptive}, expiry: Coupled}}`,
		},
		"a size is learned": {
			withLease(`size: {max: 7}`),
			[]string{"consistency", "lease", "size"},
			`{type: Adaptive, max: 7}`,
		},
		"a cost is one": {
			withLimit(`cost: {max: 5, requestHeader: x-cost}`),
			[]string{"limits"},
			`[{name: all, algorithm: FixedWindow, combine: All, rates: [{limit: 1, window: 1s}], cost: {default: 1, max: 5, requestHeader: x-cost}}]`,
		},
		"a tenant weighs one": {
			withLimit(`fairness: {tenant: {type: Path}}`),
			[]string{"limits"},
			`[{name: all, algorithm: FixedWindow, combine: All, rates: [{limit: 1, window: 1s}], fairness: {tenant: {type: Path}, defaultWeight: 1}}]`,
		},
		"connections are not encrypted": {
			withStore(`type: Postgres, postgres: {address: "pg:5432", database: weir}`),
			[]string{"store"},
			`{type: Postgres, access: Direct, memory: Auto, onMemoryLoss: Wait, postgres: {address: "pg:5432", database: weir, tls: Disabled}}`,
		},
		"an empty store is the controller":         {withSpec(`store: {}`), []string{"store"}, `{type: Controller, access: Direct, memory: Auto, onMemoryLoss: Wait}`},
		"an empty onStoreUnavailable shares":       {withSpec(`onStoreUnavailable: {}`), []string{"onStoreUnavailable"}, `{action: LocalShare}`},
		"clientIP has no default":                  {withSpec(``), []string{"clientIP"}, ``},
		"an empty selector stays one of every pod": {withSpec(``), []string{"podSelector"}, `{}`},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			requireDefaulted(t, newPolicy(t, tc.given), tc.at, tc.want)
		})
	}
}

// requireDefaulted creates the object and compares a part of its spec with YAML.
func requireDefaulted(t *testing.T, object *unstructured.Unstructured, at []string, want string) {
	t.Helper()
	if err := server.Create(t.Context(), object); err != nil {
		t.Fatal(err)
	}
	got, _, err := unstructured.NestedFieldCopy(object.Object, append([]string{"spec"}, at...)...)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(parse(t, want), plain(t, got)); diff != "" {
		t.Errorf("after defaulting (-want +got):\n%s", diff)
	}
}

func parse(t *testing.T, text string) any {
	t.Helper()
	var value any
	if err := yaml.Unmarshal([]byte(text), &value); err != nil {
		t.Fatal(err)
	}
	return value
}

// plain returns value with the number types of parse.
func plain(t *testing.T, value any) any {
	t.Helper()
	text, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	return parse(t, string(text))
}
