package translate_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/weir-dev/weir/api/v1alpha1"
	"github.com/weir-dev/weir/internal/controlplane/translate"
	"github.com/weir-dev/weir/pkg/policy"
)

// doubtful is a policy that can be enforced and may not be what was meant.
type doubtful struct {
	spec    string // YAML
	field   string // of the only warning
	message string // a part of it that names the cure
}

func leased(lease, limit string) string {
	return `{podSelector: {}, consistency: {lease: {` + lease + `}}, limits: [{name: all, ` + limit + `}]}`
}

func asked(limit string) string {
	return `{podSelector: {}, consistency: {mode: Strict}, limits: [{name: all, ` + limit + `}]}`
}

func forgetting(limit string) string {
	return `{podSelector: {}, consistency: {mode: Strict}, store: {memory: Volatile}, limits: [{name: all, ` + limit + `}]}`
}

const aRate = `rates: [{limit: 100, window: 1s}]`

var doubtfulPolicies = map[string]doubtful{
	"clients that may be one gateway": {
		asked(aRate + `, key: {parts: [{type: ClientIP}]}`),
		"spec.clientIP", "Set trustedHops or trustedCIDRs, unless clients connect to the pods themselves",
	},
	"networks that may be those of a gateway": {
		asked(aRate + `, exempt: [{sourceCIDRs: [10.0.0.0/8]}]`),
		"spec.clientIP", "the same for all clients",
	},
	"a Postgres without a user": {
		`{podSelector: {}, store: {type: Postgres, postgres: {address: "postgres:5432", database: weir}}, limits: [{name: all, ` + aRate + `}]}`,
		"spec.store.postgres.secretRef", "name a Secret with the keys username and password",
	},
	"a batch of a whole window": {
		leased(`size: {type: Fixed, batch: 100}`, aRate),
		"spec.consistency.lease.size.batch", "one lease (100) can hold all that limit all admits at once (100), so that other pods refuse: lower it, for example to 10",
	},
	"a least of a whole window": {
		leased(`size: {min: 200}`, aRate),
		"spec.consistency.lease.size.min", "lower it, for example to 10",
	},
	"a low water of a whole window": {
		leased(`lowWater: 100`, aRate),
		"spec.consistency.lease.lowWater", "one pod (100) can hold all",
	},
	"a batch of a whole burst": {
		leased(`size: {type: Fixed, batch: 15}`, `algorithm: GCRA, rates: [{limit: 100, window: 1s, burst: 20}]`),
		"spec.consistency.lease.size.batch", "limit all admits at once (15)",
	},
	"credits that carry over as many as leases learn": {
		leased(`expiry: CarryOver, lowWater: 5`, `rates: [{limit: 1000000, window: 1s}]`),
		"spec.consistency.lease.expiry", "up to pods · 10004 more than the limit",
	},
	"idle credits that are dead by then": {
		leased(`returnIdleAfter: 1s`, aRate),
		"spec.consistency.lease.returnIdleAfter", "credits die after at most 1s anyway",
	},
	"idle credits of a bucket that are dead by then": {
		leased(`returnIdleAfter: 100ms`, `algorithm: GCRA, rates: [{limit: 100, window: 1s}]`),
		"spec.consistency.lease.returnIdleAfter", "credits die after at most 50ms anyway",
	},
	"a burst of one that is to be leased": {
		leased(``, `algorithm: GCRA, rates: [{limit: 100, window: 1s, burst: 1}]`),
		"spec.limits[0].rates", "raise burst to 4 or more, or set spec.consistency.mode to CachedDeny",
	},
	"a burst that one request may need": {
		leased(``, `algorithm: TokenBucket, rates: [{limit: 1000, window: 1s, burst: 50}], cost: {max: 50, requestHeader: x-cost}`),
		"spec.limits[0].rates", "raise burst to 56 or more",
	},
	"a cost that is never admitted": {
		asked(aRate + `, cost: {max: 101, requestHeader: x-cost}`),
		"spec.limits[0].cost.max", "costs more than 100 is always refused",
	},
	"a cost that is never admitted while credits live": {
		`{podSelector: {}, consistency: {lease: {lifetime: 100ms}}, limits: [{name: all, algorithm: GCRA, rates: [{limit: 100, window: 1s, burst: 50}], cost: {max: 45, requestHeader: x-cost}}]}`,
		"spec.limits[0].cost.max", "costs more than 40 is always refused",
	},
	"a response that may cost more than was reserved": {
		asked(aRate + `, cost: {max: 10, responseHeader: x-cost}`),
		"spec.limits[0].cost.responseHeader", "set default to max (10) without requestHeader to be exact",
	},
	"a limit that enforces in a policy that does not": {
		`{podSelector: {}, mode: Shadow, limits: [{name: all, mode: Enforce, ` + aRate + `}]}`,
		"spec.limits[0].mode", "set spec.mode to Enforce",
	},
	"one rate of any": {
		asked(aRate + `, combine: Any`),
		"spec.limits[0].combine", "add a rate, or remove combine",
	},
	"a queue in which nobody waits": {
		asked(`algorithm: LeakyBucket, maxDelay: 9ms, ` + aRate),
		"spec.limits[0].maxDelay", "the next turn comes later than 9ms",
	},
	"tenants that have counters of their own": {
		asked(aRate + `, key: {parts: [{type: Header, header: {name: X-Tenant}}]}, fairness: {tenant: {type: Header, header: {name: x-tenant}}}`),
		"spec.limits[0].fairness.tenant", "remove it from the key, or remove fairness",
	},
	"a match as in a URL": {
		asked(aRate + `, match: [{paths: [{value: /a%20b}]}]`),
		"spec.limits[0].match[0].paths[0].value", "write the character that",
	},
	"an exemption as in a URL": {
		asked(aRate + `, exempt: [{paths: [{value: /a%20b}]}]`),
		"spec.limits[0].exempt[0].paths[0].value", `add "/a b"`,
	},
	"an exemption that has to be escaped": {
		asked(aRate + `, exempt: [{paths: [{value: /größe}]}]`),
		"spec.limits[0].exempt[0].paths[0].value", `add "/gr%C3%B6%C3%9Fe"`,
	},
	"an exemption of a percent sign": {
		asked(aRate + `, exempt: [{paths: [{value: /100%}]}]`),
		"spec.limits[0].exempt[0].paths[0].value", `add "/100%25"`,
	},
	"an exemption of both, of different kinds": {
		asked(aRate + `, exempt: [{paths: [{value: /a%20b, type: Exact}, {value: /a%20b, type: PathPrefix}, {value: /a b, type: Exact}]}]`),
		"spec.limits[0].exempt[0].paths[1].value", `add "/a b"`,
	},
	"a log that forgets": {
		asked(`algorithm: SlidingLog, rates: [{limit: 1025, window: 1s}]`),
		"spec.limits[0].rates[0].limit", "set algorithm to SlidingWindow",
	},
	"a month that is forgotten": {
		forgetting(`algorithm: Quota, rates: [{limit: 1, cadence: Month}]`),
		"spec.limits[0].rates[0].cadence", "open window of Month ends: set spec.store.memory to Auto or Durable",
	},
	"a long window of an override that is forgotten": {
		forgetting(aRate + `, key: {parts: [{type: Path}]}, overrides: [{values: [{parts: [/a]}], rates: [{limit: 1, window: 1h}]}]`),
		"spec.limits[0].overrides[0].rates[0].window", "open window of 1h ends",
	},
	"going on with counts that none keeps": {
		`{podSelector: {}, store: {type: Redis, redis: {address: "redis:6379"}, onMemoryLoss: Resume}, limits: [{name: all, ` + aRate + `}]}`,
		"spec.store.onMemoryLoss", "set memory to Durable, or remove it",
	},
	"going on in the controller, which waits": {
		`{podSelector: {}, store: {memory: Durable, onMemoryLoss: Resume}, limits: [{name: all, ` + aRate + `}]}`,
		"spec.store.onMemoryLoss", "end a wait with the annotation weir.dev/reset; or set type to Redis or Postgres",
	},
	"a burst that a slower bucket keeps from ever being reached": {
		asked(`algorithm: TokenBucket, rates: [{limit: 10, window: 1s, burst: 5}, {limit: 600, window: 60s, burst: 6}]`),
		"spec.limits[0].rates[1]", "rates[0] alone keeps below it",
	},
	"a sliding window that shorter ones keep from ever being reached": {
		asked(`algorithm: SlidingWindow, rates: [{limit: 10, window: 1s}, {limit: 50, window: 5s}]`),
		"spec.limits[0].rates[1]", "rates[0] alone keeps below it",
	},
	"a token that is sent without encryption": {
		`{podSelector: {}, store: {type: Redis, redis: {rest: {url: "http://srh:8080"}, secretRef: {name: redis}}}, limits: [{name: all, ` + aRate + `}]}`,
		"spec.store.redis.rest.url", "write https",
	},
	"clients that nobody distinguishes": {
		`{podSelector: {}, clientIP: {trustedHops: 1}, consistency: {mode: Strict}, limits: [{name: all, ` + aRate + `}]}`,
		"spec.clientIP", "add one or remove clientIP",
	},
}

func TestValidateDoubts(t *testing.T) {
	for name, tc := range doubtfulPolicies {
		t.Run(name, func(t *testing.T) {
			p := defaulted(t, []byte(`{metadata: {name: checkout, namespace: shop}, spec: `+tc.spec+`}`))
			warnings, errs := translate.Validate(p, nil)
			if len(errs) > 0 {
				t.Fatalf("it is refused: %v", errs)
			}
			if len(warnings) != 1 || !strings.HasPrefix(warnings[0], tc.field+": ") || !strings.Contains(warnings[0], tc.message) {
				t.Errorf("Validate warns of %q\nwant one warning of %s that says %q", warnings, tc.field, tc.message)
			}
		})
	}
}

// TestObeyedWarningsExempt: adding the paths that warnings name gives the exemption, and
// no more warnings.
func TestObeyedWarningsExempt(t *testing.T) {
	for _, path := range []string{"/größe", "/gr%C3%B6%C3%9Fe", "/a b", "/a%20b", "/100%", "/100%25"} {
		listed := fmt.Sprintf("{value: %q}", path)
		var p *v1alpha1.RateLimitPolicy
		for warned := 0; ; warned++ {
			p = defaulted(t, []byte(`{metadata: {name: checkout, namespace: shop}, spec: `+asked(aRate+`, exempt: [{paths: [`+listed+`]}]`)+`}`))
			warnings, errs := translate.Validate(p, nil)
			if len(errs) > 0 || warned > 1 {
				t.Fatalf("%s: %v, %q", path, errs, warnings)
			}
			if len(warnings) == 0 {
				break
			}
			_, add, _ := strings.Cut(warnings[0], ": add ")
			listed += ", {value: " + add + "}"
		}
		translated, err := translate.Policy(p, nil)
		if err != nil {
			t.Fatal(err)
		}
		set, err := policy.Compile(policy.Snapshot{Cluster: "east", Policies: []policy.Policy{translated}})
		if err != nil {
			t.Fatal(err)
		}
		sent := path
		if _, err := url.PathUnescape(path); err != nil || !strings.Contains(path, "%") {
			sent = (&url.URL{Path: path}).EscapedPath()
		}
		r := policy.NewRequest(httptest.NewRequestWithContext(t.Context(), http.MethodGet, sent, nil))
		if set.Limits[0].Matches(&r) {
			t.Errorf("%s: with %s listed a request for %s is limited", path, listed, sent)
		}
	}
}

// TestValidateDoubtsNot shows the other side of the doubts that compare.
func TestValidateDoubtsNot(t *testing.T) {
	for name, spec := range map[string]string{
		"a batch of less than a window":            leased(`size: {type: Fixed, batch: 99}`, aRate),
		"a limit of one":                           leased(``, `rates: [{limit: 1, window: 1s}]`),
		"credits that carry over few":              leased(`expiry: CarryOver, size: {max: 50}`, aRate),
		"idle credits that still live":             leased(`returnIdleAfter: 999ms`, aRate),
		"a burst that can be leased":               leased(``, `algorithm: GCRA, rates: [{limit: 100, window: 1s, burst: 4}]`),
		"a cost of the whole limit":                asked(aRate + `, cost: {max: 100, requestHeader: x-cost}`),
		"a response that may cost less":            asked(aRate + `, cost: {default: 10, max: 10, responseHeader: x-cost}`),
		"a queue in which one waits":               asked(`algorithm: LeakyBucket, maxDelay: 10ms, ` + aRate),
		"a log that remembers":                     asked(`algorithm: SlidingLog, rates: [{limit: 1024, window: 1s}]`),
		"any of two rates, one never needed":       asked(`combine: Any, rates: [{limit: 10, window: 1s}, {limit: 600, window: 1m}]`),
		"a larger burst on a slower bucket":        asked(`algorithm: TokenBucket, rates: [{limit: 10, window: 1s, burst: 5}, {limit: 599, window: 60s, burst: 6}]`),
		"a sliding window just below shorter ones": asked(`algorithm: SlidingWindow, rates: [{limit: 10, window: 1s}, {limit: 49, window: 5s}]`),
		"a month that February may just touch once more": `{podSelector: {}, consistency: {mode: Strict}, store: {type: Redis, redis: {address: "r:1"}},
			limits: [{name: all, algorithm: Quota, rates: [{limit: 10, cadence: Month}, {limit: 29, window: 744h}]}]}`,
		"a plain exemption":        asked(aRate + `, exempt: [{paths: [{value: /healthz}, {value: /.well-known/, type: PathPrefix}, {value: "/a%20.*", type: RegularExpression}]}]`),
		"clients that are exempt":  `{podSelector: {}, clientIP: {trustedHops: 1}, consistency: {mode: Strict}, limits: [{name: all, ` + aRate + `, exempt: [{sourceCIDRs: [10.0.0.0/8]}]}]}`,
		"clients in an expression": `{podSelector: {}, clientIP: {trustedHops: 1}, consistency: {mode: Strict}, limits: [{name: all, ` + aRate + `, match: [{expression: "request.clientIP != ''"}]}]}`,
		"clients that are tenants": `{podSelector: {}, clientIP: {trustedHops: 1}, consistency: {mode: Strict}, limits: [{name: all, ` + aRate + `, fairness: {tenant: {type: ClientIP}}}]}`,
	} {
		t.Run(name, func(t *testing.T) {
			p := defaulted(t, []byte(`{metadata: {name: checkout, namespace: shop}, spec: `+spec+`}`))
			if warnings, errs := translate.Validate(p, nil); len(errs) > 0 || len(warnings) > 0 {
				t.Errorf("Validate = %q, %v; want neither warnings nor errors", warnings, errs)
			}
		})
	}
}
