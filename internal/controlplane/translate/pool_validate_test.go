package translate_test

import (
	"strings"
	"testing"

	"github.com/weir-dev/weir/api/v1alpha1"
	"github.com/weir-dev/weir/internal/controlplane/translate"
)

// checkoutPool returns a pool with that spec.
func checkoutPool(t *testing.T, spec string) *v1alpha1.ConcurrencyPool {
	t.Helper()
	return defaultedPool(t, []byte(`{metadata: {name: checkout, namespace: shop}, spec: `+spec+`}`))
}

// pooled returns the spec of a pool with more fields.
func pooled(fields string) string { return `{podSelector: {}, limit: {max: 100}, ` + fields + `}` }

var invalidPools = map[string]invalid{
	"a selector operator that does not exist": {
		`{podSelector: {matchExpressions: [{key: app, operator: Equals, values: [a]}]}, limit: {max: 1}}`,
		"spec.podSelector.matchExpressions[0].operator", `supported values: "In", "NotIn"`,
	},
	"a selected label value that no label can have": {
		`{podSelector: {matchLabels: {app: "a b"}}, limit: {max: 1}}`,
		"spec.podSelector.matchLabels", "or consist of alphanumeric characters",
	},
	"an exempt expression that does not compile": {
		pooled(`exempt: [{paths: [{type: RegularExpression, value: "/("}]}]`),
		"spec.exempt[0].paths[0].value", "missing closing ): `/(`): correct it",
	},
	"an expression to ignore that does not compile": {
		pooled(`algorithm: {ignore: [{headers: [{type: RegularExpression, name: x, value: "("}]}]}`),
		"spec.algorithm.ignore[0].headers[0].value", "not an RE2 expression",
	},
	"a partition's expression that does not compile": {
		pooled(`partitions: [{name: live, match: [{methods: [GET]}, {paths: [{type: RegularExpression, value: "(?=x)"}]}]}]`),
		"spec.partitions[0].match[1].paths[0].value", "not an RE2 expression",
	},
	"a value that takes more bytes than characters": {
		pooled(`exempt: [{headers: [{name: x, value: "` + strings.Repeat("ä", 600) + `"}]}]`),
		"spec.exempt[0].headers[0].value", "takes 1200 bytes: shorten it to at most 1024",
	},

	"a margin that leaves a beat no time": {
		pooled(`selfFence: {margin: 999ms}`), "spec.selfFence.margin", "since 1.4ms of a share are lost to clocks that run apart: shorten it to less than 998.6ms",
	},
	"a margin that cannot be short enough": {
		pooled(`selfFence: {margin: 1ms}, heartbeat: {interval: 1998ms}`), "spec.heartbeat.leaseTTL", "shorten interval, or raise it to twice interval, which cannot be undone",
	},
	"a lease that leaves a beat no time": {
		pooled(`heartbeat: {interval: 1998ms}`), "spec.heartbeat.leaseTTL", "shorten interval, or raise it to twice interval, which cannot be undone",
	},

	// The API server refuses these; a controller that reads what was stored before it
	// did has to, too.
	"a claim that is verified": {
		pooled(`exempt: [{jwtClaims: [{claim: a, value: b, verification: Verified, provider: accounts}]}]`),
		"spec.exempt[0].jwtClaims[0].provider", "which a RateLimitPolicy may have and a ConcurrencyPool has not",
	},
	"an interval without a unit":  {pooled(`heartbeat: {interval: "1"}`), "spec.heartbeat.interval", "not a duration"},
	"a lease that is a word":      {pooled(`heartbeat: {leaseTTL: long}`), "spec.heartbeat.leaseTTL", "not a duration"},
	"a minInterval with a sign":   {pooled(`heartbeat: {minInterval: "-1s"}`), "spec.heartbeat.minInterval", "not a duration"},
	"a margin with a fraction":    {pooled(`selfFence: {margin: 0.5s}`), "spec.selfFence.margin", "not a duration"},
	"a wait of nothing":           {pooled(`queue: {maxLength: 1, maxWait: ""}`), "spec.queue.maxWait", "not a duration"},
	"a baseline without units":    {pooled(`algorithm: {baseline: {interval: "60"}}`), "spec.algorithm.baseline.interval", "not a duration"},
	"a lease as long as interval": {pooled(`heartbeat: {interval: 2s}`), "spec", "pool.heartbeat.interval is 2000000, outside 1 to 1999999"},
	"a key of a claim that is verified": {
		pooled(`key: {limit: 1, parts: [{type: JWTClaim, jwtClaim: {claim: sub, verification: Verified, provider: accounts}}]}`),
		"spec.key.parts[0].jwtClaim.provider", "which a RateLimitPolicy may have and a ConcurrencyPool has not",
	},
	"a key of the client's address": {
		pooled(`key: {limit: 1, parts: [{type: ClientIP}]}`), "spec", "pool.key.parts[0].type is ClientIP, and a pool knows no proxy",
	},
	"a key of an expression that does not compile": {
		pooled(`key: {limit: 1, parts: [{type: Expression, expression: "requst.method"}]}`), "spec.key.parts[0].expression", "undeclared reference",
	},
	"min above max": {`{podSelector: {}, limit: {min: 2, max: 1}}`, "spec", "pool.limit.min is 2, outside 1 to 1"},
	"guarantees where demand decides": {
		pooled(`allocation: DemandProportional, partitions: [{name: a, guaranteedPercent: 80}]`), "spec", "pool.partitions guarantee 80 percent",
	},
	"more guarantees than all": {
		pooled(`partitions: [{name: a, guaranteedPercent: 51, match: [{methods: [GET]}]}, {name: b, guaranteedPercent: 50}]`), "spec", "pool.partitions guarantee 101 percent together",
	},
}

func TestValidatePoolRefuses(t *testing.T) {
	for name, tc := range invalidPools {
		t.Run(name, func(t *testing.T) {
			p := checkoutPool(t, tc.spec)
			warnings, errs := translate.ValidatePool(p)
			if len(errs) != 1 || errs[0].Field != tc.field || !strings.Contains(errs[0].Error(), tc.message) {
				t.Errorf("ValidatePool = %v, want one error about %s that says %q", errs, tc.field, tc.message)
			}
			if len(warnings) > 0 {
				t.Errorf("it warns of %q, too", warnings)
			}
			if _, err := translate.Pool(p); err == nil {
				t.Error("Pool translates what ValidatePool refuses")
			}
		})
	}
}

func TestValidatePoolNamesEveryFault(t *testing.T) {
	p := checkoutPool(t, `{podSelector: {matchExpressions: [{key: app, operator: Equals}]}, limit: {max: 1}, heartbeat: {interval: soon},
		exempt: [{paths: [{type: RegularExpression, value: "("}]}]}`)
	_, errs := translate.ValidatePool(p)
	want := "spec.podSelector.matchExpressions[0].operator spec.heartbeat.interval spec.exempt[0].paths[0].value"
	if got := strings.Join(fields(errs), " "); got != want {
		t.Errorf("faults in %q, want %q", got, want)
	}
}

// doubtfulPools are valid, and one warning names the field and the cure.
var doubtfulPools = map[string]invalid{
	"an inferred limit that cannot move": {`{podSelector: {}, limit: {min: 5, max: 5}}`, "spec.limit.min", "set algorithm.type to Fixed and remove it"},
	"an aggregate of nothing":            {pooled(`algorithm: {type: Fixed}, aggregate: Min`), "spec.aggregate", "remove it, or set algorithm.type to Gradient2"},
	"a probe of the whole load":          {`{podSelector: {}, limit: {max: 4}, algorithm: {baseline: {probeLimit: 4}}}`, "spec.algorithm.baseline.probeLimit", "it is not below limit.max (4)"},
	"a heartbeat that races":             {pooled(`heartbeat: {interval: 99ms}`), "spec.heartbeat.interval", "asks the coordinator 10 times a second"},
	"a lease that is long":               {pooled(`heartbeat: {leaseTTL: 30001ms}`), "spec.heartbeat.leaseTTL", "missing for 30.001s"},
	"a beat that must be quick":          {pooled(`heartbeat: {leaseTTL: 1099ms}`), "spec.selfFence.margin", "only 49.5ms are left"},
	"a margin that leaves little":        {pooled(`selfFence: {margin: 951ms}`), "spec.selfFence.margin", "only 49ms are left"},
	"an abort that never happens":        {pooled(`selfFence: {onFenced: Abort}, onCoordinatorOutage: {action: LocalOnly}`), "spec.selfFence.onFenced", "set it to Drain, or the action to FailClosed"},
	"pods that admit all by themselves":  {pooled(`algorithm: {type: Fixed}, onCoordinatorOutage: {action: LocalOnly}`), "spec.onCoordinatorOutage.action", "admits the whole limit (100) by itself"},
	"a guarantee of less than a slot":    {`{podSelector: {}, limit: {max: 9}, partitions: [{name: a, guaranteedPercent: 11}]}`, "spec.partitions[0].guaranteedPercent", "11 percent of at most 9 slots is less than one"},
	"a queue of a key in which nobody waits": {
		pooled(`mode: Shadow, key: {limit: 1, parts: [{type: Path}], queue: {maxLength: 1, maxWait: 1s}}`), "spec.key.queue", "so nobody waits: set mode to Enforce, or remove queue",
	},
	"a queue in which nobody waits":        {pooled(`mode: Shadow, queue: {maxLength: 1, maxWait: 1s}`), "spec.queue", "so nobody waits: set mode to Enforce, or remove queue"},
	"an exempt path that is encoded":       {pooled(`exempt: [{paths: [{value: "/a%20b"}]}]`), "spec.exempt[0].paths[0].value", `add "/a b"`},
	"a path to ignore that is encoded":     {pooled(`algorithm: {ignore: [{paths: [{value: "/a%20b"}]}]}`), "spec.algorithm.ignore[0].paths[0].value", `add "/a b"`},
	"a path of a partition that is, too":   {pooled(`partitions: [{name: a, match: [{paths: [{value: "/a%20b"}]}]}]`), "spec.partitions[0].match[0].paths[0].value", "compared decoded"},
	"a probe that is more than the limit":  {`{podSelector: {}, limit: {max: 3}, algorithm: {baseline: {probeLimit: 4}}}`, "spec.algorithm.baseline.probeLimit", "lower it, for example to 1"},
	"a heartbeat that could hardly be any": {pooled(`heartbeat: {interval: 10ms}`), "spec.heartbeat.interval", "asks the coordinator 100 times a second"},
}

func TestValidatePoolDoubts(t *testing.T) {
	for name, tc := range doubtfulPools {
		t.Run(name, func(t *testing.T) {
			warnings, errs := translate.ValidatePool(checkoutPool(t, tc.spec))
			if len(errs) > 0 {
				t.Fatalf("it is refused: %v", errs)
			}
			if len(warnings) != 1 || !strings.HasPrefix(warnings[0], tc.field+": ") || !strings.Contains(warnings[0], tc.message) {
				t.Errorf("ValidatePool warns of %q\nwant one warning of %s that says %q", warnings, tc.field, tc.message)
			}
		})
	}
}

// TestValidatePoolDoubtsNot shows the other side of the doubts that compare.
func TestValidatePoolDoubtsNot(t *testing.T) {
	for name, spec := range map[string]string{
		"a limit that moves by one":             `{podSelector: {}, limit: {min: 4, max: 5}}`,
		"a limit of one that is fixed":          `{podSelector: {}, limit: {max: 1}, algorithm: {type: Fixed}}`,
		"a probe below the limit":               `{podSelector: {}, limit: {max: 5}, algorithm: {baseline: {probeLimit: 4}}}`,
		"ten beats a second":                    pooled(`heartbeat: {interval: 100ms}`),
		"a lease that outlasts an election":     pooled(`heartbeat: {leaseTTL: 30s}`),
		"a lease of ten seconds":                pooled(`heartbeat: {leaseTTL: 10s}`),
		"a beat that may take a while":          pooled(`selfFence: {margin: 950ms}`),
		"an abort of pods that are fenced":      pooled(`selfFence: {onFenced: Abort}`),
		"pods that admit what they infer":       pooled(`onCoordinatorOutage: {action: LocalOnly}`),
		"a guarantee of one slot":               `{podSelector: {}, limit: {max: 10}, partitions: [{name: a, guaranteedPercent: 10}]}`,
		"a partition that has what others left": `{podSelector: {}, limit: {max: 1}, algorithm: {type: Fixed}, partitions: [{name: a}]}`,
		"a queue that is waited in":             pooled(`queue: {maxLength: 1, maxWait: 1s}`),
	} {
		t.Run(name, func(t *testing.T) {
			if warnings, errs := translate.ValidatePool(checkoutPool(t, spec)); len(errs) > 0 || len(warnings) > 0 {
				t.Errorf("ValidatePool = %q, %v; want neither warnings nor errors", warnings, errs)
			}
		})
	}
}
