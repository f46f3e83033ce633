package plugin

import (
	"context"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strconv"
	"strings"
	"testing"

	"github.com/weir-dev/weir/internal/controlplane/translate"
	"github.com/weir-dev/weir/internal/sidecar/admin"
	"github.com/weir-dev/weir/internal/sidecar/check"
	"github.com/weir-dev/weir/internal/sidecar/enforce"
	control "github.com/weir-dev/weir/internal/sidecar/fleet"
	"github.com/weir-dev/weir/internal/sidecar/metrics"
	"github.com/weir-dev/weir/internal/sidecar/pools"
	"github.com/weir-dev/weir/pkg/concurrency"
	"github.com/weir-dev/weir/pkg/limiter"
	"github.com/weir-dev/weir/pkg/policy"
	"github.com/weir-dev/weir/pkg/store/memory"
	"github.com/weir-dev/weir/pkg/twotier"
)

// A source is a sidecar with the real engine, over one store whose time stands still.
type source struct {
	*enforce.Enforcer

	pools []pools.State
}

func (source) Refused() policy.Refusals { return nil }
func (s source) Pools() []pools.State   { return s.pools }
func (source) Fleet() *control.State    { return nil }

// one is the only store.
type one struct{ store twotier.Store }

func (o one) Open(policy.Store) (twotier.Store, error) { return o.store, nil }
func (o one) Budget() twotier.Store                    { return o.store }
func (one) Retain(map[policy.Store]bool)               {}

// An answering sidecar: its enforcer, and what listens where only its pod should reach it.
type answering struct {
	enforcer *enforce.Enforcer
	handler  http.Handler
}

// answer runs a sidecar with these policies and pools, 18 seconds into a minute.
func answer(t *testing.T, mode enforce.Mode, snapshot policy.Snapshot, states ...pools.State) *answering {
	t.Helper()
	at := limiter.Instant(30_000_000*60+18) * limiter.Instant(limiter.Second)
	log := slog.New(slog.DiscardHandler)
	e := enforce.New(enforce.Config{
		Namespace: "shop", Mode: mode, Log: log,
		Stores:     one{twotier.NewBreaker(memory.New(memory.Options{Clock: func() limiter.Instant { return at }, First: true}))},
		NewLimiter: func(c twotier.Config, s twotier.Store) (enforce.Limiter, error) { return twotier.New(c, s) },
	})
	t.Cleanup(func() { e.Close(context.Background()) })
	set, err := policy.Compile(snapshot)
	if err != nil {
		t.Fatal(err)
	}
	if err := e.Apply(set, "version"); err != nil {
		t.Fatal(err)
	}
	mux, from := http.NewServeMux(), source{e, states}
	mux.Handle("/", &check.Handler{Checker: e, Metrics: metrics.New(from), Log: log})
	mux.Handle("GET "+admin.ConfigPath, &admin.Config{Mode: mode, Source: from})
	return &answering{enforcer: e, handler: mux}
}

// spend sends requests, and returns how many are admitted.
func (a *answering) spend(t *testing.T, n int, line string, headers ...string) (admitted int) {
	t.Helper()
	tries, err := readTries([]string{line}, headers, "")
	if err != nil {
		t.Fatal(err)
	}
	for range n {
		r, err := tries[0].http(t.Context(), "192.0.2.1")
		if err != nil {
			t.Fatal(err)
		}
		v, err := a.enforcer.Decide(t.Context(), r)
		if err != nil {
			t.Fatal(err)
		}
		if v.Allowed {
			admitted++
		}
	}
	return admitted
}

// ask explains a request without a cluster.
func (a *answering) ask(t *testing.T, line string, headers ...string) *explanation {
	t.Helper()
	server := httptest.NewServer(a.handler)
	defer server.Close()
	tries, err := readTries([]string{line}, headers, "")
	if err != nil {
		t.Fatal(err)
	}
	r, err := tries[0].http(t.Context(), "192.0.2.1")
	if err != nil {
		t.Fatal(err)
	}
	found, err := explain(t.Context(), reach(t, server), r)
	if err != nil {
		t.Fatal(err)
	}
	return found
}

func minutely(n int64) []limiter.Rate {
	return []limiter.Rate{{Limit: n, Window: 60 * limiter.Second}}
}

func byUser(onMissing policy.OnMissing) *policy.Key {
	return &policy.Key{Parts: []policy.KeyPart{{Type: policy.HeaderKey, Header: "x-user"}}, OnMissing: onMissing, MaxKeys: 100}
}

// checkout is a policy of the sidecar with these limits.
func checkout(limits ...policy.Limit) policy.Snapshot {
	return policy.Snapshot{Cluster: "test", Policies: []policy.Policy{{
		Namespace: "shop", Name: "checkout", Generation: 1, Mode: policy.Enforce, Store: policy.Store{Type: policy.ControllerStore},
		Consistency:        policy.Consistency{Mode: policy.Leased, Size: policy.Fixed, Batch: 10, Expiry: policy.Coupled},
		OnStoreUnavailable: policy.Deny, Limits: limits,
	}}}
}

// withPool adds the pool of a sample, and returns its state.
func withPool(t *testing.T, s *policy.Snapshot, share, inFlight int64) pools.State {
	t.Helper()
	m, err := readManifest(t.Context(), samplePath("pool-quickstart.yaml"), strings.NewReader(""))
	if err != nil {
		t.Fatal(err)
	}
	p, err := translate.Pool(m.pools[0])
	if err != nil {
		t.Fatal(err)
	}
	p.Namespace, s.Pool = "shop", &p
	return pools.State{Pool: &p, Stats: concurrency.Stats{Share: share, Ceiling: share, InFlight: inFlight}}
}

// TestExplainTakesNothing: the same questions have the same answers, and requests the same units
// after them.
func TestExplainTakesNothing(t *testing.T) {
	a := answer(t, enforce.Enforce, checkout(policy.Limit{Name: "per-user", Rates: minutely(20), Key: byUser(policy.Shared)}))
	for range 3 {
		found := a.ask(t, "GET /", "x-user: ann")
		if row := found.Items[0]; found.Answer != admits || row.Answer != admits || *row.Left != 20 || *row.Of != 20 || *row.Cost != 1 || *row.Value != "ann" {
			t.Errorf("it says %+v", row)
		}
	}
	if n := a.spend(t, 30, "GET /", "x-user: ann"); n != 20 {
		t.Errorf("%d requests are admitted after it, want 20", n)
	}
}

func TestExplainedResults(t *testing.T) {
	long := strings.Repeat("u", 200)
	put := []policy.Match{{Methods: []string{"PUT"}}}
	anyOf := checkout(policy.Limit{Name: "few", Rates: minutely(1)}, policy.Limit{Name: "more", Rates: minutely(2)})
	anyOf.Policies[0].AnyOf = [][]string{{"few", "more"}}
	fair := checkout(policy.Limit{Name: "all", Rates: minutely(8), Fairness: &policy.Fairness{
		Tenant: policy.KeyPart{Type: policy.HeaderKey, Header: "x-user"}, DefaultWeight: 1,
		Weights: []policy.Weight{{Tenant: "ann", Weight: 3}}, Reserve: true,
	}})
	many := checkout()
	for i := range 20 {
		many.Policies[0].Limits = append(many.Policies[0].Limits, policy.Limit{Name: "l" + strconv.Itoa(i), Rates: minutely(int64(i + 1))})
	}
	for name, tc := range map[string]struct {
		mode     enforce.Mode
		snapshot policy.Snapshot
		spent    int // requests of the same kind before
		headers  []string
		want     func(*explanation) bool
	}{
		"a limit that does not match": {enforce.Enforce, checkout(policy.Limit{Name: "l", Rates: minutely(1), Match: put}), 1, nil, func(e *explanation) bool {
			return e.Answer == admits && e.Items[0].Result == "unmatched" && e.Items[0].Answer == ""
		}},
		"a limit that is used up": {enforce.Enforce, checkout(policy.Limit{Name: "l", Rates: minutely(1)}), 1, nil, func(e *explanation) bool {
			return e.Answer == refuses && e.Items[0].Answer == refuses && strings.HasPrefix(e.Items[0].Reason, "Exhausted for ")
		}},
		"in Shadow": {enforce.Enforce, checkout(policy.Limit{Name: "l", Rates: minutely(1), Mode: policy.Shadow}), 1, nil, func(e *explanation) bool {
			return e.Answer == admits && e.Items[0].Answer == refuses && strings.HasSuffix(e.Items[0].Reason, "in Shadow, so the request passes")
		}},
		"in a pod in shadow": {enforce.Shadow, checkout(policy.Limit{Name: "l", Rates: minutely(1)}), 1, nil, func(e *explanation) bool {
			return e.Answer == admits && e.Items[0].Answer == refuses
		}},
		"in a pod that bypasses": {enforce.Bypass, checkout(policy.Limit{Name: "l", Rates: minutely(1), Key: byUser(policy.Reject)}), 0, nil, func(e *explanation) bool {
			return e.Answer == admits && len(e.warnings) == 1 && strings.Contains(e.warnings[0], "bypass")
		}},
		"one of two that admits": {enforce.Enforce, anyOf, 1, nil, func(e *explanation) bool {
			return e.Answer == admits && e.Items[0].Answer == refuses && e.Items[1].Answer == admits
		}},
		"none of two": {enforce.Enforce, anyOf, 3, nil, func(e *explanation) bool { return e.Answer == refuses }},
		"a key that is missing and refused": {enforce.Enforce, checkout(policy.Limit{Name: "l", Rates: minutely(1), Key: byUser(policy.Reject)}), 0, nil, func(e *explanation) bool {
			return e.Answer == refuses && e.Items[0].Result == "rejected" && e.Items[0].Answer == refuses
		}},
		"a key that is missing and shared": {enforce.Enforce, checkout(policy.Limit{Name: "l", Rates: minutely(1), Key: byUser(policy.Shared)}), 0, nil, func(e *explanation) bool {
			return e.Answer == unclear && e.Items[0].Answer == unclear && *e.Items[0].Value == "(missing)"
		}},
		"a long value": {enforce.Enforce, checkout(policy.Limit{Name: "l", Rates: minutely(9), Key: byUser(policy.Shared)}), 4, []string{"x-user: " + long}, func(e *explanation) bool {
			return e.Answer == admits && *e.Items[0].Left == 5
		}},
		"a tenant": {enforce.Enforce, fair, 6, []string{"x-user: ann"}, func(e *explanation) bool {
			return *e.Items[0].Left == 2 && *e.Items[0].Of == 8
		}},
		"more limits than one peek may name": {enforce.Enforce, many, 0, nil, func(e *explanation) bool {
			return len(e.Items) == 20 && *e.Items[19].Left == 20 && *e.Items[3].Left == 4
		}},
		"no policies": {enforce.Enforce, policy.Snapshot{Cluster: "test"}, 0, nil, func(e *explanation) bool {
			return e.Answer == admits && len(e.Items) == 0 && len(e.warnings) == 1
		}},
	} {
		t.Run(name, func(t *testing.T) {
			a := answer(t, tc.mode, tc.snapshot)
			a.spend(t, tc.spent, "GET /", tc.headers...)
			if found := a.ask(t, "GET /", tc.headers...); !tc.want(found) {
				t.Errorf("it says %+v", found)
			}
		})
	}
}

func TestExplainedPools(t *testing.T) {
	for name, tc := range map[string]struct {
		share, inFlight int64
		known           bool
		want            string
	}{
		"a free slot":         {4, 3, true, admits},
		"no free slot":        {4, 4, true, unclear},
		"no share":            {0, 0, true, refuses},
		"not taking part yet": {4, 0, false, unclear},
	} {
		t.Run(name, func(t *testing.T) {
			snapshot := policy.Snapshot{Cluster: "test"}
			states := []pools.State{withPool(t, &snapshot, tc.share, tc.inFlight)}
			if !tc.known {
				states = nil
			}
			found := answer(t, enforce.Enforce, snapshot, states...).ask(t, "GET /")
			if row := found.Items[0]; found.Answer != tc.want || row.Answer != tc.want || row.Object != "concurrencypool/checkout" {
				t.Errorf("it says %v, %+v", found.Answer, row)
			}
			snapshot.Pool.Mode = policy.Shadow
			if found := answer(t, enforce.Enforce, snapshot, states...).ask(t, "GET /"); found.Answer != admits {
				t.Errorf("in Shadow it says %+v", found)
			}
		})
	}
}

func TestExplainedLimitsPerKey(t *testing.T) {
	for name, tc := range map[string]struct {
		onMissing      policy.OnMissing
		inFlight       int64
		headers        []string
		answer, result string
		value          *string
	}{
		"a value below the limit":            {policy.Shared, 1, []string{"x-tenant: gold"}, admits, "counted", new("gold")},
		"some value at the limit":            {policy.Shared, 2, []string{"x-tenant: gold"}, unclear, "counted", new("gold")},
		"some value at the limit, and waits": {policy.Shared, 2, []string{"x-tenant: gold"}, unclear, "counted", new("gold")},
		"the key is missing and skips":       {policy.Skip, 2, nil, "", "skipped", nil},
		"the key is missing, refused":        {policy.Reject, 0, nil, refuses, "rejected", nil},
		"the key is missing, shared":         {policy.Shared, 0, nil, admits, "counted", new("(missing)")},
	} {
		t.Run(name, func(t *testing.T) {
			snapshot := policy.Snapshot{Cluster: "test"}
			all := withPool(t, &snapshot, 4, 0)
			snapshot.Pool.Key = &policy.PoolKey{Parts: []policy.KeyPart{{Type: policy.HeaderKey, Header: "x-tenant"}}, OnMissing: tc.onMissing, Limit: 2}
			waits := strings.HasSuffix(name, "waits")
			if waits {
				snapshot.Pool.Key.Queue = &policy.Queue{MaxLength: 1, MaxWait: 1}
			}
			perKey := pools.State{Pool: snapshot.Pool.PerKey(), Stats: concurrency.Stats{Share: 2, Ceiling: 2, InFlight: tc.inFlight}}
			found := answer(t, enforce.Enforce, snapshot, perKey, all).ask(t, "GET /", tc.headers...)
			row := found.Items[0]
			if len(found.Items) != 2 || row.Object != "concurrencypool/checkout" || row.Limit != "(per key)" || row.Answer != tc.answer || row.Result != tc.result || !reflect.DeepEqual(row.Value, tc.value) {
				t.Errorf("it says %+v", found.Items)
			}
			if tc.answer == unclear && strings.Contains(row.Reason, "in the queue of the key") != waits {
				t.Errorf("it says %q", row.Reason)
			}
			if other := found.Items[1]; other.Limit != "" || other.Answer != admits || *other.Left != 4 {
				t.Errorf("of the pool it says %+v", other)
			}
		})
	}
}
