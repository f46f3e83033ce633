package pools

import (
	"context"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/weir-dev/weir/internal/sidecar/enforce"
	"github.com/weir-dev/weir/pkg/concurrency"
	"github.com/weir-dev/weir/pkg/concurrency/pool"
	"github.com/weir-dev/weir/pkg/limiter"
	"github.com/weir-dev/weir/pkg/policy"
)

// nobody grants nothing.
type nobody struct{}

func (n nobody) Coordinator(policy.Store) (concurrency.Coordinator, error) { return n, nil }
func (nobody) Retain(map[policy.Store]bool)                                {}

func (nobody) Apply(ctx context.Context, _ pool.Key, _ pool.Params, c pool.Command) (pool.Grant, error) {
	if c.Op == pool.Beat {
		<-ctx.Done()
	}
	return pool.Grant{}, ctx.Err()
}

// TestAGuardThatWasClosedDecidesNothing asks one that a request found before the pool
// went, and one that was closed because the sidecar stops.
func TestAGuardThatWasClosedDecidesNothing(t *testing.T) {
	k := New(Config{Holder: "uid/nonce", Mode: enforce.Enforce, Coordinators: nobody{}})
	set, err := policy.Compile(policy.Snapshot{Cluster: "test", Pool: &policy.Pool{
		Namespace: "shop", Name: "checkout", Mode: policy.Enforce,
		Coordinator: policy.Store{Type: policy.ControllerStore},
		Limit:       policy.LimitRange{Min: 1, Initial: 1, Max: 1}, Algorithm: policy.LimitAlgorithm{Type: policy.FixedLimit},
		Aggregate: policy.Median, Allocation: policy.EqualSplit, Handoff: policy.Acknowledged,
		Heartbeat:           policy.Heartbeat{Interval: limiter.Second, LeaseTTL: 2 * limiter.Second, MinInterval: limiter.Second},
		SelfFence:           policy.SelfFence{OnFenced: policy.Drain},
		OnCoordinatorOutage: policy.FailClosed, StatusCode: http.StatusServiceUnavailable,
	}})
	if err != nil {
		t.Fatal(err)
	}
	if err := k.Apply(set); err != nil {
		t.Fatal(err)
	}
	found, r := k.current.Load(), httptest.NewRequest(http.MethodGet, "/", http.NoBody)
	if err := k.Apply(new(policy.Set)); err != nil {
		t.Fatal(err)
	}
	k.closing.Wait()
	if _, refusal, decided := k.askAll(found, r); decided || found.pools[0].tallies[0].Answered(concurrency.Closed) > 0 {
		t.Errorf("decided %v, %+v", decided, refusal)
	}
	if slot, refusal := k.Acquire(r); slot.Held() || refusal != nil {
		t.Errorf("without a pool the request got %+v", refusal)
	}
	if err := k.Apply(set); err != nil {
		t.Fatal(err)
	}
	k.Close(t.Context())
	if _, refusal := k.Acquire(r); refusal == nil || refusal.Verdict != concurrency.Closed {
		t.Errorf("when the sidecar stops the request got %+v", refusal)
	}
}
