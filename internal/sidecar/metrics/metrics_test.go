package metrics_test

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/weir-dev/weir/internal/sidecar/enforce"
	"github.com/weir-dev/weir/internal/sidecar/fleet"
	"github.com/weir-dev/weir/internal/sidecar/metrics"
	"github.com/weir-dev/weir/internal/sidecar/pools"
	"github.com/weir-dev/weir/pkg/limiter"
	"github.com/weir-dev/weir/pkg/policy"
	"github.com/weir-dev/weir/pkg/store"
	"github.com/weir-dev/weir/pkg/twotier"
)

type source struct{ *enforce.Enforcer }

func (source) Fleet() *fleet.State { return &fleet.State{Connected: true, Streams: 2} }

func (source) Pools() []pools.State { return nil }

func (s source) Limits() []enforce.LimitState {
	if s.Enforcer == nil {
		return nil
	}
	return s.Enforcer.Limits()
}

// open is an engine that admits everything.
type open struct{ enforce.Limiter }

func (open) Acquire(context.Context, twotier.Request) (twotier.Decision, error) {
	return twotier.Decision{Allowed: true}, nil
}

func (open) Stats() twotier.Stats {
	return twotier.Stats{RoundTrips: 3, ActiveKeys: 2, Full: twotier.MaxKeysBound, Promised: 5}
}
func (open) Credits() int64        { return 7 }
func (open) Close(context.Context) {}

type noStores struct{}

func (noStores) Open(policy.Store) (twotier.Store, error) { return nil, nil }
func (noStores) Budget() twotier.Store                    { return nil }
func (noStores) Retain(map[policy.Store]bool)             {}

// TestKeysAddNoSeries sends requests with ever new keys: the number of series
// depends on policies alone.
func TestKeysAddNoSeries(t *testing.T) {
	e := enforce.New(enforce.Config{
		Mode: enforce.Enforce, Stores: noStores{}, Log: slog.New(slog.DiscardHandler),
		NewLimiter: func(twotier.Config, twotier.Store) (enforce.Limiter, error) { return open{}, nil },
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
	m.Refilled(store.Scope{Cluster: "test", Namespace: "shop", Policy: "checkout", Limit: "all"}, time.Millisecond)
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
	const want = `# HELP weir_keys_full 1 while values of the key that are asked for have no counter of their own here, because of the bound; absent otherwise.
# TYPE weir_keys_full gauge
weir_keys_full{bound="maxKeys",limit="all",namespace="shop",policy="checkout"} 1
# HELP weir_lease_credits Units in hand that requests are admitted from without a call to the store.
# TYPE weir_lease_credits gauge
weir_lease_credits{limit="all",namespace="shop",policy="checkout"} 7
# HELP weir_limit_info 1 for each limit in force, with how it works; budget names the FederatedBudget that it draws from.
# TYPE weir_limit_info gauge
weir_limit_info{algorithm="FixedWindow",budget="",consistency="Strict",limit="all",mode="Enforce",namespace="shop",policy="checkout"} 1
# HELP weir_promised_refusals_total Requests refused that the local share had room for, because the sidecar had promised a leader to begin no window by itself.
# TYPE weir_promised_refusals_total counter
weir_promised_refusals_total{limit="all",namespace="shop",policy="checkout"} 5
# HELP weir_store_round_trips_total Calls to the store.
# TYPE weir_store_round_trips_total counter
weir_store_round_trips_total{limit="all",namespace="shop",policy="checkout"} 3
# HELP weir_store_up 1 while the limit's store is thought reachable.
# TYPE weir_store_up gauge
weir_store_up{limit="all",namespace="shop",policy="checkout"} 1
`
	if err := testutil.GatherAndCompare(m.Registry, strings.NewReader(want), "weir_keys_full", "weir_lease_credits", "weir_limit_info", "weir_promised_refusals_total", "weir_store_round_trips_total", "weir_store_up"); err != nil {
		t.Error(err)
	}
	if n, err := testutil.GatherAndCount(m.Registry, "weir_build_info"); err != nil || n != 1 {
		t.Errorf("%d series of the build, %v; want one", n, err)
	}
	if n, err := testutil.GatherAndCount(m.Registry, "weir_lease_refill_seconds"); err != nil || n != 1 {
		t.Errorf("%d series of refills, %v; want that of the limit", n, err)
	}
	if err := e.Apply(new(policy.Set), "none"); err != nil {
		t.Fatal(err)
	}
	if n, err := testutil.GatherAndCount(m.Registry, "weir_lease_refill_seconds", "weir_lease_credits"); err != nil || n != 0 {
		t.Errorf("%d series of a limit that is gone, %v", n, err)
	}
	if problems, err := testutil.GatherAndLint(m.Registry, "weir_requests_total", "weir_active_keys", "weir_fleet_connected", "weir_fleet_streams_total", "weir_store_call_seconds"); err != nil || len(problems) > 0 {
		t.Errorf("%v, %v", problems, err)
	}
}

// TestCallsAreObservedByStore also sees that a store that is no longer used leaves no
// series behind.
func TestCallsAreObservedByStore(t *testing.T) {
	m := metrics.New(source{})
	cache := policy.Store{Type: policy.RedisStore, Address: "cache:6379"}
	controller := policy.Store{Type: policy.ControllerStore}
	m.Called(cache, time.Millisecond, nil)
	m.Called(cache, time.Second, &store.UnavailableError{Store: "redis at cache:6379", Cause: errors.New("gone")})
	m.Called(cache, time.Second, errors.New("defect"))
	m.Called(controller, time.Millisecond, nil)
	series := func() int {
		n, err := testutil.GatherAndCount(m.Registry, "weir_store_call_seconds")
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	if n := series(); n != 4 {
		t.Errorf("%d series, want one for each store and outcome, 4", n)
	}
	m.Closed(cache)
	if n := series(); n != 1 {
		t.Errorf("%d series, want that of the store in use", n)
	}
}
