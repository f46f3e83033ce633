package v1alpha1_test

import "testing"

func TestDefaultsOfPools(t *testing.T) {
	cases := map[string]struct {
		given string // YAML of a spec
		at    []string
		want  string // YAML of what is there after defaulting; empty: nothing
	}{
		"the whole of the smallest pool": {
			poolLimit(`max: 100`), nil,
			`{podSelector: {}, mode: Enforce, limit: {max: 100}, algorithm: {type: Gradient2}, aggregate: Median, allocation: EqualSplit, handoff: Acknowledged,
			  heartbeat: {interval: 1s, leaseTTL: 2s, eager: Enabled}, selfFence: {onFenced: Drain}, onCoordinatorOutage: {action: FailClosed},
			  coordinator: {type: Controller}, response: {statusCode: 503}}`,
		},
		"an empty algorithm is Gradient2":          {poolWith(`algorithm: {}`), []string{"algorithm"}, `{type: Gradient2}`},
		"an empty baseline is measured":            {poolAlgorithm(`baseline: {}`), []string{"algorithm", "baseline"}, `{type: Measured}`},
		"an empty heartbeat beats":                 {poolWith(`heartbeat: {}`), []string{"heartbeat"}, `{interval: 1s, leaseTTL: 2s, eager: Enabled}`},
		"a heartbeat that is longer stays eager":   {heartbeat(`interval: 2s, leaseTTL: 5s`), []string{"heartbeat"}, `{interval: 2s, leaseTTL: 5s, eager: Enabled}`},
		"a margin follows from the heartbeat":      {poolWith(`selfFence: {}`), []string{"selfFence"}, `{onFenced: Drain}`},
		"an empty onCoordinatorOutage fails":       {poolWith(`onCoordinatorOutage: {}`), []string{"onCoordinatorOutage"}, `{action: FailClosed}`},
		"an empty coordinator is the controller":   {poolWith(`coordinator: {}`), []string{"coordinator"}, `{type: Controller}`},
		"connections are not encrypted":            {coordinator(`type: Redis, redis: {address: "r:1"}`), []string{"coordinator"}, `{type: Redis, redis: {address: "r:1", tls: Disabled}}`},
		"a partition has what others leave":        {partitions(`[{name: a}]`), []string{"partitions"}, `[{name: a, guaranteedPercent: 0}]`},
		"a key shares what lacks it":               {poolKey(`limit: 4, parts: [{type: Path}]`), []string{"key"}, `{limit: 4, onMissing: Shared, parts: [{type: Path}]}`},
		"there is no key":                          {poolWith(``), []string{"key"}, ``},
		"there is no queue":                        {poolWith(``), []string{"queue"}, ``},
		"an empty response is 503":                 {poolWith(`response: {}`), []string{"response"}, `{statusCode: 503}`},
		"an empty selector stays one of every pod": {poolWith(``), []string{"podSelector"}, `{}`},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			requireDefaulted(t, newPool(t, tc.given), tc.at, tc.want)
		})
	}
}
