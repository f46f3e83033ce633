package translate_test

import (
	"strings"
	"testing"

	"github.com/weir-dev/weir/api/v1alpha1"
	"github.com/weir-dev/weir/internal/controlplane/translate"
	"github.com/weir-dev/weir/pkg/policy"
)

func nothingKnown(policy.Store) v1alpha1.StoreRestart { return "" }

func TestRestartDoubts(t *testing.T) {
	const (
		redis    = `type: Redis, redis: {address: "redis:6379"}`
		day      = `rates: [{limit: 5, window: 1s}, {limit: 9, window: 24h}]`
		minute   = `rates: [{limit: 9, window: 1m}]`
		override = aRate + `, key: {parts: [{type: Path}]}, overrides: [{values: [{parts: [/a]}], rates: [{limit: 5, window: 1h}]}]`
	)
	for name, tc := range map[string]struct {
		store, limit string // YAML
		known        v1alpha1.StoreRestart
		want         []string // parts of the only warning; none: no warning
	}{
		"a day": {redis, day, "", []string{
			"spec.store.redis: it is not known yet", "limit all admits nothing until its open window of 24h ends", "set appendonly yes and appendfsync always",
			"spec.store.onMemoryLoss to Resume", "status.store.restart says which it is",
		}},
		"a day that is kept": {redis, day, v1alpha1.LosslessRestart, nil},
		"a day that is lost": {redis, day, v1alpha1.LossyRestart, []string{
			"spec.store.redis: as this Redis is configured a restart may lose counters", "window of 24h", "set appendonly yes and appendfsync always", "status.guarantee says what is missing",
		}},
		"a calendar":                  {redis, `algorithm: Quota, rates: [{limit: 9, cadence: Month}]`, "", []string{"window of Month ends"}},
		"a window of an override":     {redis, override, "", []string{"window of 1h ends"}},
		"a second limit":              {redis, minute + `}, {name: other, ` + day, "", []string{"limit other admits nothing until its open window of 24h"}},
		"a minute":                    {redis, minute, v1alpha1.LossyRestart, nil},
		"a minute that is to be kept": {redis + `, memory: Durable`, minute, v1alpha1.LossyRestart, []string{"window of 1m ends"}},
		"a day that need not be kept": {redis + `, memory: Volatile`, day, v1alpha1.LossyRestart, nil}, // which Validate warns of
		"a day that goes on":          {redis + `, onMemoryLoss: Resume`, day, v1alpha1.LossyRestart, nil},
		"a day in Postgres":           {`type: Postgres, postgres: {address: "postgres:5432", database: weir}`, day, v1alpha1.LossyRestart, nil},
		"a day in the controller":     {``, day, v1alpha1.LossyRestart, nil},
		"a day over HTTP": {`type: Redis, redis: {rest: {url: "https://a.example.com"}, secretRef: {name: r}}`, day, v1alpha1.LossyRestart, []string{
			"spec.store.redis.rest: when the service fails over counters may be lost", "name a single server in address", "spec.store.onMemoryLoss to Resume",
		}},
		"a day in a cluster": {`type: Redis, redis: {cluster: {addresses: ["redis:6379"]}}`, day, "", []string{
			"spec.store.redis.cluster: when a node restarts or fails over", "name a single server in address", "spec.store.onMemoryLoss to Resume",
		}},
	} {
		t.Run(name, func(t *testing.T) {
			p := defaulted(t, []byte(`{metadata: {name: p, namespace: shop}, spec: {podSelector: {}, store: {`+tc.store+`}, limits: [{name: all, `+tc.limit+`}]}}`))
			if _, errs := translate.Validate(p, nil); len(errs) > 0 {
				t.Fatal(errs)
			}
			got := translate.RestartDoubts(p, func(policy.Store) v1alpha1.StoreRestart { return tc.known })
			if len(got) != min(1, len(tc.want)) {
				t.Fatalf("warnings %q, want %d", got, min(1, len(tc.want)))
			}
			for _, part := range tc.want {
				if !strings.Contains(got[0], part) {
					t.Errorf("warning %q does not say %q", got[0], part)
				}
			}
		})
	}
}

// TestRestartDoubtsAskOfTheStoreThatIsWanted, not of the one that still serves, and only
// when something depends on it.
func TestRestartDoubtsAskOfTheStoreThatIsWanted(t *testing.T) {
	const spec = `{metadata: {name: p, namespace: shop}, spec: {podSelector: {}, store: {type: Redis, redis: {address: "new:6379"}}, limits: [{name: all, rates: [{limit: 9, window: `
	for window, want := range map[string]string{"24h": "new.shop.svc:6379", "1s": ""} {
		p := defaulted(t, []byte(spec+window+`}]}]}}`))
		p.Status.Store = &v1alpha1.StoreStatus{Active: v1alpha1.Store{Type: v1alpha1.RedisStoreType, Redis: &v1alpha1.RedisStore{Address: "old:6379"}}}
		var asked string
		translate.RestartDoubts(p, func(of policy.Store) v1alpha1.StoreRestart { asked += of.Address; return "" })
		if asked != want {
			t.Errorf("with windows of %s it asks of %q, want %q", window, asked, want)
		}
	}
}
