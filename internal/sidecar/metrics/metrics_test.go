package metrics_test

import (
	"context"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/weir-dev/weir/internal/sidecar/enforce"
	"github.com/weir-dev/weir/internal/sidecar/metrics"
	"github.com/weir-dev/weir/pkg/limiter"
	"github.com/weir-dev/weir/pkg/policy"
	"github.com/weir-dev/weir/pkg/twotier"
)

type source struct{ *enforce.Enforcer }

func (source) Connected() bool { return true }

// open is an engine that admits everything.
type open struct{ enforce.Limiter }

func (open) Acquire(context.Context, twotier.Request) (twotier.Decision, error) {
	return twotier.Decision{Allowed: true}, nil
}
func (open) Stats() twotier.Stats  { return twotier.Stats{RoundTrips: 3, ActiveKeys: 2} }
func (open) Close(context.Context) {}

type noStores struct{}

func (noStores) Open(policy.Store) (twotier.Store, error) { return nil, nil }
func (noStores) Retain(map[policy.Store]bool)             {}

// TestKeysAddNoSeries sends requests with ever new keys: the number of series
// depends on policies alone.
func TestKeysAddNoSeries(t *testing.T) {
	e := enforce.New(enforce.Config{
		Mode: enforce.Enforce, Stores: noStores{}, Log: slog.New(slog.DiscardHandler),
		NewLimiter: func(twotier.Config, twotier.Store) enforce.Limiter { return open{} },
	})
	defer e.Close(t.Context())
	set, err := policy.Compile(policy.Snapshot{Cluster: "test", Policies: []policy.Policy{{
		Namespace: "shop", Name: "checkout", Mode: policy.Enforce, Store: policy.Store{Type: policy.ControllerStore},
		Consistency: policy.Consistency{Mode: policy.Strict}, OnStoreUnavailable: policy.Deny,
		Limits: []policy.Limit{{
			Name: "all", Rates: []limiter.Rate{{Limit: 1, Window: limiter.Second}},
			Key: &policy.Key{Parts: []policy.KeyPart{{Type: policy.PathKey}}, OnMissing: policy.Shared, MaxKeys: 10},
		}},
	}}})
	if err != nil {
		t.Fatal(err)
	}
	if err := e.Apply(set, "v"); err != nil {
		t.Fatal(err)
	}
	m := metrics.New(source{e})
	before, err := testutil.GatherAndCount(m.Registry)
	if err != nil {
		t.Fatal(err)
	}
	for i := range 100 {
		if _, err := e.Decide(t.Context(), httptest.NewRequest(http.MethodGet, "/"+strings.Repeat("x", i), nil)); err != nil {
			t.Fatal(err)
		}
	}
	after, err := testutil.GatherAndCount(m.Registry)
	if err != nil || after != before {
		t.Errorf("%d series became %d, %v", before, after, err)
	}
	const want = `# HELP weir_store_round_trips_total Calls to the store.
# TYPE weir_store_round_trips_total counter
weir_store_round_trips_total{limit="all",namespace="shop",policy="checkout"} 3
# HELP weir_store_up 1 while the limit's store is thought reachable.
# TYPE weir_store_up gauge
weir_store_up{limit="all",namespace="shop",policy="checkout"} 1
`
	if err := testutil.GatherAndCompare(m.Registry, strings.NewReader(want), "weir_store_round_trips_total", "weir_store_up"); err != nil {
		t.Error(err)
	}
	if problems, err := testutil.GatherAndLint(m.Registry, "weir_requests_total", "weir_active_keys", "weir_fleet_connected"); err != nil || len(problems) > 0 {
		t.Errorf("%v, %v", problems, err)
	}
}
