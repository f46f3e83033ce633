package v1alpha1_test

import (
	"strings"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

// validPools are at the edge of what the schema accepts.
var validPools = map[string]string{
	"the smallest pool":               poolLimit(`max: 1`),
	"the largest limit":               poolLimit(`min: 1000000, initial: 1000000, max: 1000000`),
	"a range that begins at its end":  poolLimit(`min: 10, initial: 20, max: 20`),
	"Fixed with a max alone":          poolAlgorithm(`type: Fixed`),
	"the least of Gradient2":          poolAlgorithm(`baseline: {type: Rolling, samples: 1}, smoothingPercent: 1, tolerancePercent: 100`),
	"the most of Gradient2":           poolAlgorithm(`baseline: {type: Rolling, samples: 10000}, smoothingPercent: 100, tolerancePercent: 1000`),
	"the least of AIMD":               poolAlgorithm(`type: AIMD, backoffPercent: 50`),
	"the most of AIMD":                poolAlgorithm(`type: AIMD, backoffPercent: 99, baseline: {}, tolerancePercent: 1000`),
	"a baseline that is measured":     poolAlgorithm(`baseline: {interval: 744h, probeLimit: 1000000, probeSamples: 1000}`),
	"eight requests to ignore":        poolAlgorithm(`ignore: ` + repeat(8, `{paths: [{value: /poll/%d}]}`)),
	"demand and no guarantee":         poolWith(`allocation: DemandProportional, partitions: [{name: a, guaranteedPercent: 0}]`),
	"every other way":                 poolWith(`mode: Shadow, aggregate: Min, allocation: DemandProportional, handoff: Occupancy, onCoordinatorOutage: {action: LocalOnly}`),
	"the shortest of everything":      poolWith(`heartbeat: {interval: 10ms, leaseTTL: 100ms, minInterval: 1ms}, selfFence: {margin: 1ms}`),
	"the longest of everything":       poolWith(`heartbeat: {interval: 59999ms, leaseTTL: 1m, minInterval: 59999ms}`),
	"the longest margin":              poolWith(`heartbeat: {interval: 10ms, leaseTTL: 60s}, selfFence: {margin: 59989ms, onFenced: Abort}`),
	"the longest margin as usual":     poolWith(`selfFence: {margin: 999ms}`),
	"a lease just above the interval": heartbeat(`interval: 1999ms`),
	"a pace of repetitions only":      heartbeat(`eager: Disabled, minInterval: 1s`),
	"a Redis coordinator":             coordinator(`type: Redis, redis: {address: "redis:6379", tls: Enabled, secretRef: {name: redis}}`),
	"a coordinator behind Sentinels":  coordinator(`type: Redis, redis: {sentinel: {primary: mymaster, addresses: ` + repeat(16, `"s%d:26379"`) + `}}`),
	"a coordinator in a cluster":      coordinator(`type: Redis, redis: {cluster: {addresses: ` + repeat(16, `"s%d:6379"`) + `}}`),
	"a Postgres coordinator":          coordinator(`type: Postgres, postgres: {address: "pg:5432", database: weir}`),
	"the smallest limit per key":      poolKey(`limit: 1, parts: [{type: Path}]`),
	"the largest limit per key":       poolKey(`limit: 1000000, onMissing: Reject, parts: [{type: Header, header: {name: x-tenant}}, {type: JWTClaim, jwtClaim: {claim: sub}}, {type: Expression, expression: "request.method"}, {type: QueryParam, queryParam: {name: model}}]`),
	"eight matches":                   poolWith(`match: ` + repeat(8, `{methods: `+repeat(16, `M%d`)+`, paths: `+repeat(16, `{value: /%d}`)+`, headers: `+repeat(16, `{name: x-%d, value: live}`)+`}`)),
	"eight exemptions":                poolWith(`exempt: ` + repeat(8, `{methods: `+repeat(16, `M%d`)+`, paths: `+repeat(16, `{value: /%d}`)+`, headers: `+repeat(16, `{name: x-%d, value: live}`)+`}`)),
	"16 partitions of everything": partitions(repeat(16, `{name: p%d, guaranteedPercent: 6, match: `+
		strings.ReplaceAll(repeat(8, `{methods: [GET], paths: [{value: /a}], headers: [{name: x, value: live}]}`), "%d", "0")+`}`)),
	"guarantees of 100 percent":         partitions(`[{name: live, guaranteedPercent: 80, match: [{methods: [GET]}]}, {name: batch, guaranteedPercent: 20}]`),
	"a partition of all that is left":   partitions(`[{name: live, guaranteedPercent: 80, match: [{methods: [GET]}]}, {name: rest}]`),
	"one partition of all":              partitions(`[{name: rest, guaranteedPercent: 100}]`),
	"an exemption of every other match": poolWith(`exempt: [{` + strings.ReplaceAll(aMatch, "%d", "0") + `}]`),
	"a queue of one for a moment":       poolWith(`queue: {maxLength: 1, maxWait: 1ms}`),
	"a long queue for an hour":          poolWith(`queue: {maxLength: 10000, maxWait: 1h}`),
	"a refusal that blames the client":  poolWith(`response: {statusCode: 429}`),
	"a selector with expressions, only": `{podSelector: {matchExpressions: [{key: tier, operator: Exists}]}, limit: {max: 1}}`,
}

func TestValidPoolsAreAccepted(t *testing.T) {
	for name, spec := range validPools {
		t.Run(name, func(t *testing.T) {
			if err := server.Create(t.Context(), newPool(t, spec), client.DryRunAll, client.FieldValidation("Strict")); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestUnknownFieldsOfPoolsAreRefused(t *testing.T) {
	for _, field := range []string{"targetRefs: []", "scope: Fleet", "limits: []", "coordinator: {type: Controller, etcd: {}}", "key: {limit: 1, parts: [{type: Path}], maxKeys: 1}"} {
		t.Run(field, func(t *testing.T) {
			err := server.Create(t.Context(), newPool(t, poolWith(field)), client.DryRunAll, client.FieldValidation("Strict"))
			if err == nil || !strings.Contains(err.Error(), `unknown field "spec.`) {
				t.Errorf("Create = %v, want a refusal that names the unknown field", err)
			}
		})
	}
}
