package revision_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/weir-dev/weir/pkg/limiter"
	"github.com/weir-dev/weir/pkg/policy"
	"github.com/weir-dev/weir/pkg/policy/revision"
)

// named returns a policy of one limit.
func named(name string, generation int64) policy.Policy {
	return policy.Policy{
		Namespace: "shop", Name: name, Generation: generation, Mode: policy.Enforce,
		Store:              policy.Store{Type: policy.ControllerStore},
		Consistency:        policy.Consistency{Mode: policy.Strict},
		OnStoreUnavailable: policy.Deny,
		Limits:             []policy.Limit{{Name: "all", Rates: []limiter.Rate{{Limit: 100 + generation, Window: limiter.Second}}}},
	}
}

// pool returns a pool, of all requests or of those below its path.
func pool(name string, generation int64, some bool) policy.Pool {
	p := policy.Pool{
		Namespace: "shop", Name: name, Generation: generation, Mode: policy.Enforce, StatusCode: 503,
		Coordinator: policy.Store{Type: policy.ControllerStore},
		Limit:       policy.LimitRange{Min: 10, Initial: 10, Max: 10}, Algorithm: policy.LimitAlgorithm{Type: policy.FixedLimit},
		Aggregate: policy.Median, Allocation: policy.EqualSplit, Handoff: policy.Acknowledged,
		Heartbeat: policy.Heartbeat{Interval: limiter.Second, LeaseTTL: 2 * limiter.Second, MinInterval: limiter.Second / 10},
		SelfFence: policy.SelfFence{Margin: limiter.Second / 2, OnFenced: policy.Drain}, OnCoordinatorOutage: policy.FailClosed,
	}
	if some {
		p.Match = []policy.Match{{Paths: []policy.PathMatch{{Type: policy.PathPrefix, Value: "/" + name}}}}
	}
	return p
}

// draw returns any snapshot of a few policies and pools. Most pairs have something in common.
func draw(r *rand.Rand) policy.Snapshot {
	s := policy.Snapshot{Cluster: "test"}
	for i := range 6 {
		if r.IntN(3) > 0 {
			s.Policies = append(s.Policies, named(fmt.Sprint("p", i), r.Int64N(3)))
		}
	}
	for i := range 3 {
		switch r.IntN(4) {
		case 0:
			s.Pools = append(s.Pools, pool(fmt.Sprint("q", i), r.Int64N(2), true))
		case 1:
			if s.Pool == nil {
				p := pool(fmt.Sprint("q", i), r.Int64N(2), false)
				s.Pool = &p
			}
		}
	}
	return s
}

// A version is a snapshot as it is published.
type version struct {
	name string
	data []byte
}

func published(t testing.TB, s policy.Snapshot) version {
	t.Helper()
	data, name, err := policy.Encode(s)
	if err != nil {
		t.Fatal(err)
	}
	return version{name, data}
}

// editOf returns what makes one version of the other.
func editOf(t testing.TB, from, to version) revision.Edit {
	t.Helper()
	var of [2]*revision.Content
	for i, v := range []version{from, to} {
		var err error
		if of[i], err = revision.ContentOf(v.data); err != nil {
			t.Fatal(err)
		}
	}
	e, err := revision.Between(of[0], of[1])
	if err != nil {
		t.Fatal(err)
	}
	e.Base, e.Version = from.name, to.name
	return e
}

// whole returns what a holder that has h makes of a whole version.
func whole(t testing.TB, h *revision.Held, v version) *revision.Held {
	t.Helper()
	next, err := h.Whole(v.name, v.data)
	if err != nil {
		t.Fatal(err)
	}
	return next
}

// enforced returns what a holder enforces, as text.
func enforced(t testing.TB, h *revision.Held) string {
	t.Helper()
	data, err := json.Marshal(h.Set.Snapshot)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}
