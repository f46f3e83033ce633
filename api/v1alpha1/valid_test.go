package v1alpha1_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"
)

// validSpecs are at the edge of what the schema accepts.
var validSpecs = map[string]string{
	"a name of 63 characters":              withName(strings.Repeat("a", 63)),
	"a name of one digit":                  withName(`"1"`),
	"32 limits":                            withLimits(repeat(32, `{name: l%d, rates: [{limit: 1, window: 1s}]}`)),
	"four rates":                           withRates(repeat(4, `{limit: 1, window: 1%ds}`)),
	"the largest limit":                    withRates(`[{limit: 1000000000000, window: 1s}]`),
	"the shortest window":                  withWindow(`100ms`),
	"the longest window":                   withWindow(`744h`),
	"a window of several units":            withWindow(`1h30m5s250ms`),
	"eight matches of 16 of everything":    withLimit(`match: ` + repeat(8, `{methods: `+repeat(16, `M%d`)+`, paths: `+repeat(16, `{value: /%d}`)+`, headers: `+repeat(16, `{name: x-%d, value: live}`)+`}`)),
	"a method with a dash":                 withMatch(`methods: [M-SEARCH]`),
	"a path of 1024 characters":            withMatch(`paths: [{value: /` + strings.Repeat("a", 1023) + `}]`),
	"a path expression without a slash":    withMatch(`paths: [{type: RegularExpression, value: "[?].*#"}]`),
	"every character of a header name":     withMatch(`headers: [{type: Present, name: "!#$%&*+-.^_|~09AZaz"}]`),
	"four parts":                           withLimit(`key: {parts: [{type: Header, header: {name: a}}, {type: Header, header: {name: b}}, {type: ClientIP}, {type: Method}]}`),
	"a million keys":                       withLimit(`key: {parts: [{type: Path}], maxKeys: 1000000}`),
	"16 hops":                              withSpec(`clientIP: {trustedHops: 16}`),
	"64 networks":                          withSpec(`clientIP: {trustedCIDRs: ` + repeat(64, `10.%d.0.0/16`) + `}`),
	"networks of both families":            withSpec(`clientIP: {trustedCIDRs: [192.168.1.1/32, "fd00::/8", 0.0.0.0/0]}`),
	"a batch of one":                       withLease(`size: {type: Fixed, batch: 1}`),
	"a batch of a million":                 withLease(`size: {type: Fixed, batch: 1000000}, lowWater: 999999`),
	"a Redis server by name":               withRedis(`redis-0.redis.shop.svc.cluster.local:6379`),
	"a Redis server by IPv4 address":       withRedis(`10.0.0.1:65535`),
	"a Redis server by IPv6 address":       withRedis(`[fd00::1]:1`),
	"a service over HTTP":                  withREST(`https://eu1-name-12345.upstash.io`),
	"a service in the cluster":             withREST(`http://srh:8080/redis/v1`),
	"a service by IPv6 address":            withREST(`https://[fd00::1]:8443/`),
	"a size that is forecast":              withLease(`size: {type: Predictive, min: 1000000, max: 1000000}, returnIdleAfter: 744h`),
	"a low water below the default most":   withLease(`lowWater: 9999`),
	"the shortest lifetime":                leasing(`GCRA`, `lifetime: 5ms`),
	"the longest lifetime":                 leasing(`SlidingLog`, `lifetime: 60s`),
	"leases that carry over, with a quota": `{podSelector: {}, consistency: {lease: {expiry: CarryOver}}, limits: [{name: a, rates: [{limit: 1, window: 1s}]}, {name: b, algorithm: Quota, rates: [{limit: 1, cadence: Day}]}]}`,
	"a lifetime for one limit of two":      `{podSelector: {}, consistency: {lease: {lifetime: 1s}}, limits: [{name: a, rates: [{limit: 1, window: 1s}]}, {name: b, algorithm: GCRA, rates: [{limit: 1, window: 1s}]}]}`,
	"refusals that are remembered":         withSpec(`consistency: {mode: CachedDeny}`),
	"a sliding window in parts":            withAlgorithm(`SlidingWindow`, aRate+`, buckets: 1000`),
	"a sliding log":                        withAlgorithm(`SlidingLog`, aRate),
	"a token bucket with a burst":          withAlgorithm(`TokenBucket`, `rates: [{limit: 1, window: 1s, burst: 1000000000000}]`),
	"a leaky bucket":                       withAlgorithm(`LeakyBucket`, aRate+`, maxDelay: 1h`),
	"a leaky bucket for the impatient":     withAlgorithm(`LeakyBucket`, aRate+`, maxDelay: 1ms, cost: {max: 5, requestHeader: x-cost}`),
	"a quota of every period":              withAlgorithm(`Quota`, `rates: [{limit: 1, cadence: Hour}, {limit: 2, cadence: Day}, {limit: 3, cadence: Week}, {limit: 4, cadence: Month}]`),
	"a quota of a period and of a length":  withAlgorithm(`Quota`, `rates: [{limit: 1, window: 6h}, {limit: 2, cadence: Day}], utcOffset: "-14:00"`),
	"a quota where the day begins first":   withAlgorithm(`Quota`, `rates: [{limit: 2, cadence: Day}], utcOffset: "+14:00"`),
	"a quota in Nepal":                     withAlgorithm(`Quota`, `rates: [{limit: 2, cadence: Day}], utcOffset: "+05:45"`),
	"any of four rates":                    withLimits(`[{name: all, combine: Any, rates: ` + repeat(4, `{limit: 1, window: 1%ds}`) + `}]`),
	"a limit that only counts":             withLimit(`mode: Shadow`),
	"exemptions":                           withLimit(`exempt: ` + repeat(8, `{paths: [{type: Exact, value: /healthz}]}`)),
	"32 overrides of 64 values of four": withLimit(`key: {parts: [{type: Path}, {type: Method}, {type: ClientIP}, {type: Header, header: {name: a}}]}, overrides: ` +
		repeat(32, `{rates: `+strings.ReplaceAll(repeat(4, `{limit: 1, window: 1%ds}`), "%d", "1")+`, values: `+strings.Join([]string{"[", strings.TrimSuffix(strings.Repeat(`{parts: [/%d, GET, 192.0.2.1, x]}, `, 64), ", "), "]"}, "")+`}`)),
	"a fixed cost":                           withLimit(`cost: {default: 5}`),
	"a cost of every kind":                   withLimit(`cost: {default: 5, max: 5, requestHeader: x-cost, responseHeader: x-cost}`),
	"64 tenants":                             withLimit(`fairness: {` + aTenant + `, defaultWeight: 1000, weights: ` + repeat(64, `{tenant: t%d, weight: 1000}`) + `}`),
	"fairness of a quota":                    withAlgorithm(`Quota`, `rates: [{limit: 10, cadence: Day}], fairness: {`+aTenant+`}`),
	"16 Sentinels":                           withStore(`type: Redis, redis: {tls: Enabled, secretRef: {name: redis.example}, sentinel: {primary: my-master_1.a, addresses: ` + repeat(16, `"s%d:26379"`) + `}}`),
	"16 nodes of a cluster":                  withStore(`type: Redis, redis: {cluster: {addresses: ` + repeat(16, `"s%d:6379"`) + `}}`),
	"a Postgres server":                      withStore(`type: Postgres, postgres: {address: "[fd00::1]:5432", database: weir_2, tls: Enabled, secretRef: {name: pg}}`),
	"a Redis behind the controllers":         withStore(`type: Redis, access: Gateway, redis: {address: "redis:6379"}`),
	"a Postgres behind the controllers":      withStore(`type: Postgres, access: Gateway, postgres: {address: "pg:5432", database: weir}`),
	"a direct way to the controller":         withStore(`access: Direct`),
	"counters that outlive the store":        withStore(`memory: Durable, onMemoryLoss: Resume`),
	"counters that do not":                   withStore(`memory: Volatile, onMemoryLoss: Wait`),
	"every action, Deny":                     withSpec(`onStoreUnavailable: {action: Deny}`),
	"every action, Allow":                    withSpec(`onStoreUnavailable: {action: Allow}`),
	"a selector with expressions and labels": `{podSelector: {matchLabels: {app: a}, matchExpressions: [{key: tier, operator: Exists}]}, ` + oneLimit + `}`,
}

func TestValidPoliciesAreAccepted(t *testing.T) {
	for _, table := range []map[string]string{validSpecs, validMatches} {
		for name, spec := range table {
			t.Run(name, func(t *testing.T) {
				if err := server.Create(t.Context(), newPolicy(t, spec), client.DryRunAll, client.FieldValidation("Strict")); err != nil {
					t.Error(err)
				}
			})
		}
	}
}

func TestSamplesApply(t *testing.T) {
	files, err := filepath.Glob(filepath.Join("..", "..", "config", "samples", "*.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			sample := &unstructured.Unstructured{}
			if err := yaml.UnmarshalStrict(text, &sample.Object); err != nil {
				t.Fatal(err)
			}
			sample.SetNamespace("default")
			applied := client.ApplyConfigurationFromUnstructured(sample)
			if err := server.Apply(t.Context(), applied, client.FieldOwner("sample"), client.ForceOwnership); err != nil {
				t.Error(err)
			}
		})
	}
	if len(files) < 15 {
		t.Errorf("config/samples has %d policies, want one for each algorithm, mode and store", len(files))
	}
}

func TestUnknownFieldsAreRefused(t *testing.T) {
	for _, field := range []string{"targetRefs: []", "accuracy: {maxOvershoot: 2%}", "store: {type: Controller, etcd: {}}"} {
		t.Run(field, func(t *testing.T) {
			err := server.Create(t.Context(), newPolicy(t, withSpec(field)), client.DryRunAll, client.FieldValidation("Strict"))
			if err == nil || !strings.Contains(err.Error(), `unknown field "spec.`) {
				t.Errorf("Create = %v, want a refusal that names the unknown field", err)
			}
		})
	}
}
