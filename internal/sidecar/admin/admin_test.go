package admin_test

import (
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/weir-dev/weir/internal/sidecar/admin"
	"github.com/weir-dev/weir/internal/sidecar/count"
	"github.com/weir-dev/weir/internal/sidecar/enforce"
	"github.com/weir-dev/weir/internal/sidecar/fleet"
	"github.com/weir-dev/weir/internal/sidecar/pools"
	"github.com/weir-dev/weir/pkg/concurrency"
	"github.com/weir-dev/weir/pkg/concurrency/pool"
	"github.com/weir-dev/weir/pkg/policy"
	"github.com/weir-dev/weir/pkg/twotier"
)

// source is a sidecar whose only store went away.
type source struct{ since time.Time }

func (source) Set() (*policy.Set, string) {
	return &policy.Set{Snapshot: policy.Snapshot{Cluster: "test"}}, "sha256:1"
}

func (source) Refused() policy.Refusals {
	return policy.Refusals{{Part: policy.PolicyPart, Namespace: "shop", Name: "new", Cause: errors.New("too new")}}
}

func (s source) Limits() []enforce.LimitState {
	return []enforce.LimitState{{
		Name:  count.Name{Namespace: "shop", Policy: "checkout", Limit: "all"},
		Stats: twotier.Stats{CutOffSince: s.since, CutOff: errors.New("redis at cache:6379: gone")},
	}}
}

func (source) Pools() []pools.State {
	return []pools.State{{
		Pool: &policy.Pool{Namespace: "shop", Name: "checkout", Algorithm: policy.LimitAlgorithm{Type: policy.AIMD}},
		Stats: concurrency.Stats{
			Share: 3, Fenced: true, Latency: 2 * time.Millisecond, CoordinatorError: errors.New("gone"),
			Grant:      pool.Grant{Limit: 12, Holders: 4, Quarantined: 5},
			Partitions: []concurrency.PartitionStats{{Name: "gold", InFlight: 1}},
		},
	}}
}

func (source) Fleet() *fleet.State { return &fleet.State{Address: "weir:15030", Error: "refused"} }

func ask(s http.Handler, method, path string) *httptest.ResponseRecorder {
	w := httptest.NewRecorder()
	s.ServeHTTP(w, httptest.NewRequest(method, path, nil))
	return w
}

func TestReadinessFollowsTheSidecarAndLivenessDoesNot(t *testing.T) {
	s := admin.New(prometheus.NewRegistry())
	for _, ready := range []bool{false, true, false} {
		want := http.StatusServiceUnavailable
		if s.SetReady(ready); ready {
			want = http.StatusOK
		}
		if got := ask(s, http.MethodGet, "/readyz").Code; got != want {
			t.Errorf("ready %v: got %d, want %d", ready, got, want)
		}
		if got := ask(s, http.MethodGet, "/livez").Code; got != http.StatusOK {
			t.Errorf("livez: got %d", got)
		}
	}
}

func TestConfigShowsWhatIsInForceAndWhichStoreIsAway(t *testing.T) {
	since := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	w := ask(&admin.Config{Mode: enforce.Shadow, Source: source{since}}, http.MethodGet, admin.ConfigPath)
	var got struct {
		Mode, Version string
		Refused       []string
		Fleet         fleet.State
		Limits        []struct {
			Limit, StoreError string
			StoreAwaySince    time.Time
		}
		Pools []struct {
			Name, Algorithm, CoordinatorError                       string
			Share, Limit, Holders, LatencyMicros, QuarantinedMicros int64
			Fenced                                                  bool
			Partitions                                              []struct{ InFlight int64 }
		}
		Snapshot policy.Snapshot
	}
	if err := json.Unmarshal(w.Body.Bytes(), &got); err != nil {
		t.Fatal(err)
	}
	if got.Mode != "shadow" || got.Version != "sha256:1" || got.Fleet.Error != "refused" || got.Snapshot.Cluster != "test" {
		t.Errorf("got %+v", got)
	}
	if r := got.Refused; len(r) != 1 || !strings.Contains(r[0], "shop/new") || !strings.Contains(r[0], "too new") {
		t.Errorf("got refused %q", r)
	}
	if len(got.Pools) != 1 {
		t.Fatalf("got %d pools", len(got.Pools))
	}
	p := got.Pools[0]
	if p.Name != "checkout" || p.Algorithm != "AIMD" || p.Share != 3 || p.Limit != 12 || p.Holders != 4 || !p.Fenced ||
		p.LatencyMicros != 2000 || p.QuarantinedMicros != 5 || p.CoordinatorError != "gone" || len(p.Partitions) != 1 {
		t.Errorf("got pool %+v", p)
	}
	if l := got.Limits; len(l) != 1 || l[0].StoreError != "redis at cache:6379: gone" || !l[0].StoreAwaySince.Equal(since) {
		t.Errorf("got %+v", l)
	}
}

// TestNothingElseIsServed: the port is open to every pod, so it shows no configuration.
func TestNothingElseIsServed(t *testing.T) {
	s := admin.New(prometheus.NewRegistry())
	for _, path := range []string{"/", "/debug/pprof/", "/debug", admin.ConfigPath} {
		if got := ask(s, http.MethodGet, path).Code; got != http.StatusNotFound {
			t.Errorf("%s: got %d", path, got)
		}
	}
	if got := ask(s, http.MethodPost, "/readyz").Code; got != http.StatusMethodNotAllowed {
		t.Errorf("POST: got %d", got)
	}
}
