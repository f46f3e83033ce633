package redis_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weir-dev/weir/internal/testing/redistest"
	"github.com/weir-dev/weir/pkg/limiter"
	"github.com/weir-dev/weir/pkg/store"
	"github.com/weir-dev/weir/pkg/store/redis"
)

func TestAClusterSharesTheCounters(t *testing.T) {
	t.Parallel()
	cluster := redistest.StartCluster(t, 3)
	for _, node := range cluster.Nodes {
		node.Do(append([]any{"ACL", "SETUSER", "weir", "on", ">secret"}, permissions...)...)
		node.Do("ACL", "SETUSER", "weir", "+cluster|slots")
	}
	s := open(t, redis.Options{Addresses: cluster.Addrs()[:1], Cluster: true, User: "weir", Password: "secret"})
	everything(t, s)
	p := perWindow(5, limiter.MinWindow)
	for i := range 50 {
		if res := untilGranted(t, s, counterOf(fmt.Sprint(i)), p); res.Granted != 5 {
			t.Errorf("counter %d grants %d, want 5", i, res.Granted)
		}
	}
	total := 0
	for _, node := range cluster.Nodes {
		n := guards(node)
		if total += n; n == 0 {
			t.Errorf("the node at %s keeps no partition", node.Addr)
		}
	}
	if total != 64 {
		t.Errorf("%d partitions know since when they remember, want 64", total)
	}
}

// TestEveryNodeOfAClusterIsGraded weakens one node of three.
func TestEveryNodeOfAClusterIsGraded(t *testing.T) {
	t.Parallel()
	cluster := redistest.StartCluster(t, 3)
	s := open(t, redis.Options{Addresses: cluster.Addrs(), Cluster: true})
	grade := func() store.Guarantee {
		t.Helper()
		f, err := s.Probe(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return f.Volatile.Guarantee
	}
	if g := grade(); g != (store.Guarantee{Grade: store.Hard}) {
		t.Errorf("three primaries: %+v", g)
	}
	cluster.StartReplica(cluster.Nodes[1])
	if g := grade(); g.Grade != store.HardExceptSplitBrain || !strings.Contains(g.Reason, "replica") {
		t.Errorf("with a replica of one: %+v", g)
	}
	cluster.Nodes[2].Do("CONFIG", "SET", "maxmemory-policy", "allkeys-lru")
	if g := grade(); g.Grade != store.BestEffort || !strings.Contains(g.Reason, "allkeys-lru") {
		t.Errorf("with eviction in another: %+v", g)
	}
	cluster.Nodes[2].Kill()
	_, err := s.Probe(t.Context())
	wantUnavailable(t, err)
}

// TestANodeThatHangsHoldsUpNobodyElse lets calls crowd in front of one node.
func TestANodeThatHangsHoldsUpNobodyElse(t *testing.T) {
	t.Parallel()
	cluster := redistest.StartCluster(t, 3)
	s := open(t, redis.Options{Addresses: cluster.Addrs(), Cluster: true})
	p := perWindow(1000, limiter.Second)
	hanging, served := map[string]bool{}, []string{}
	for i := range 60 {
		hash := fmt.Sprint(i)
		apply(t, s, counterOf(hash), p, lease)
		if len(cluster.Nodes[0].Do("KEYS", "weir:*c/n/p/l/"+hash).([]any)) > 0 {
			hanging[hash] = true
		} else {
			served = append(served, hash)
		}
	}
	if len(hanging) == 0 || len(served) == 0 {
		t.Fatalf("%d of 60 counters are on one node of three", len(hanging))
	}
	cluster.Nodes[0].Pause()
	defer cluster.Nodes[0].Resume()
	ctx, cancel := context.WithCancel(t.Context())
	var crowd sync.WaitGroup
	var waiting atomic.Int64
	for hash := range hanging {
		for range 10 {
			waiting.Add(1)
			crowd.Go(func() {
				_, _ = s.Apply(ctx, counterOf(hash), p, lease)
				waiting.Add(-1)
			})
		}
	}
	for _, hash := range served[:len(served)/4] {
		if _, err := s.Apply(t.Context(), counterOf(hash), p, lease); err != nil {
			t.Errorf("counter %s: %v", hash, err)
		}
	}
	speaksForItsPart(t, s, hanging, served)
	if waiting.Load() == 0 {
		t.Error("calls to nodes that serve waited until none was left for the one that hangs")
	}
	cancel()
	crowd.Wait()
}

// speaksForItsPart asks for a counter that hangs, and wants an error that speaks for none
// that is served.
func speaksForItsPart(t *testing.T, s *redis.Store, hanging map[string]bool, served []string) {
	t.Helper()
	for hash := range hanging {
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		defer cancel()
		_, err := s.Apply(ctx, counterOf(hash), perWindow(1000, limiter.Second), lease)
		away, _ := errors.AsType[*store.UnavailableError](err)
		if away == nil || away.Part == nil || !away.Part.Has(counterOf(hash)) {
			t.Fatalf("the error of counter %s is %v, want one of its part", hash, err)
		}
		for _, other := range served {
			if away.Part.Has(counterOf(other)) {
				t.Errorf("the error of counter %s speaks for %s, which another node serves", hash, other)
			}
		}
		return
	}
}
