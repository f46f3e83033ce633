package translate_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-dev/weir/internal/translate"
	"github.com/weir-dev/weir/pkg/limiter"
)

func TestRetention(t *testing.T) {
	durable, resuming := limiter.Retention{Durable: true}, limiter.Retention{Durable: true, Resume: true}
	const (
		short    = `rates: [{limit: 5, window: 1s}, {limit: 9, window: 1m}]`
		long     = `rates: [{limit: 5, window: 1s}, {limit: 9, window: 60001ms}]`
		month    = `algorithm: Quota, rates: [{limit: 5, cadence: Month}]`
		override = short + `, key: {parts: [{type: Path}]}, overrides: [{values: [{parts: [/a]}], rates: [{limit: 5, window: 1h}]}]`
		bucket   = `algorithm: TokenBucket, rates: [{limit: 5000, window: 1h}]`
		budget   = `scope: Federated, budgetRef: {name: world}`
	)
	yearly := defaultedBudget(t, []byte(`{metadata: {name: world, namespace: shop}, spec: {id: acme/world, rate: {limit: 100, window: 24h}, members: [{name: eu-west}]}}`))
	for name, tc := range map[string]struct {
		store, limit string // YAML
		want         limiter.Retention
	}{
		"windows up to a minute":      {``, short, limiter.Retention{}},
		"a window over a minute":      {``, long, durable},
		"a window of an override":     {``, override, durable},
		"a calendar":                  {``, month, durable},
		"what flows in over an hour":  {``, bucket, durable},
		"Auto is the default":         {`memory: Auto`, long, durable},
		"in Redis":                    {`type: Redis, redis: {address: "r:6379"}`, long, durable},
		"Durable keeps short windows": {`memory: Durable`, short, durable},
		"Volatile keeps no long ones": {`memory: Volatile`, long, limiter.Retention{}},
		"Resume":                      {`onMemoryLoss: Resume`, long, resuming},
		"Resume of what is not kept":  {`onMemoryLoss: Resume`, short, limiter.Retention{}},
		"Resume of short ones":        {`memory: Durable, onMemoryLoss: Resume`, short, resuming},
		"a budget is kept by its own": {`memory: Durable`, budget, limiter.Retention{}},
	} {
		t.Run(name, func(t *testing.T) {
			p := defaulted(t, []byte(`{metadata: {name: p, namespace: shop}, spec: {podSelector: {}, store: {`+tc.store+`}, limits: [{name: all, `+tc.limit+`}]}}`))
			translated, err := translate.Policy(p, counting(yearly))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, translated.Limits[0].Retention); diff != "" {
				t.Errorf("counters are kept by (-want +got):\n%s", diff)
			}
		})
	}
}
