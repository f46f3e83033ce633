package pools

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-dev/weir/pkg/concurrency"
	"github.com/weir-dev/weir/pkg/concurrency/adaptive"
	"github.com/weir-dev/weir/pkg/concurrency/pool"
	"github.com/weir-dev/weir/pkg/concurrency/slots"
	"github.com/weir-dev/weir/pkg/limiter"
	"github.com/weir-dev/weir/pkg/policy"
)

func TestAGuardKeepsWhatThePoolSays(t *testing.T) {
	p := &policy.Pool{
		Namespace: "shop", Name: "checkout", Generation: 7, Mode: policy.Enforce,
		Coordinator: policy.Store{Type: policy.ControllerStore},
		Limit:       policy.LimitRange{Min: 2, Initial: 4, Max: 8},
		Algorithm: policy.LimitAlgorithm{
			Type: policy.Gradient2, SmoothingPercent: 20, TolerancePercent: 150,
			Baseline: &policy.Baseline{Type: policy.MeasuredBaseline, Interval: 60 * limiter.Second, ProbeLimit: 3, ProbeSamples: 5},
		},
		Aggregate: policy.Minimum, Allocation: policy.DemandProportional, Handoff: policy.Occupancy,
		Heartbeat:           policy.Heartbeat{Interval: limiter.Second, LeaseTTL: 2 * limiter.Second, MinInterval: 1000, Eager: true},
		SelfFence:           policy.SelfFence{Margin: 500_000, OnFenced: policy.Abort},
		OnCoordinatorOutage: policy.LocalOnly,
		Partitions:          []policy.Partition{{Name: "gold", GuaranteedPercent: 30}},
		Queue:               &policy.Queue{MaxLength: 9, MaxWait: 2000},
		StatusCode:          503,
	}
	want := concurrency.Config{
		Key: pool.Key{Cluster: "test", Namespace: "shop", Name: "checkout"}, Holder: "uid/nonce",
		Params: pool.Params{
			Min: 2, Max: 8, Initial: 4, Aggregate: pool.Min, Allocation: pool.DemandProportional, Handoff: pool.Occupancy,
			TTL: 2 * limiter.Second, Quarantine: 2 * limiter.Second, Generation: 7,
		},
		Law: adaptive.Config{
			Algorithm: adaptive.Gradient2, Min: 2, Initial: 4, Max: 8, Smoothing: 0.2, Tolerance: 1.5,
			Baseline: adaptive.Baseline{Type: adaptive.Measured, Interval: 60 * limiter.Second, ProbeLimit: 3, ProbeSamples: 5},
		},
		Slots: slots.Config{
			Partitions: []slots.Partition{{Name: "gold", GuaranteedPercent: 30}},
			Queue:      slots.Queue{MaxLength: 9, MaxWait: 2000},
		},
		Heartbeat: concurrency.Heartbeat{Interval: time.Second, MinInterval: time.Millisecond, Eager: true},
		Margin:    500 * time.Millisecond, OnFenced: concurrency.Abort, OnOutage: concurrency.LocalOnly,
	}
	got := guardConfig("test", "uid/nonce", p, false)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the guard's configuration differs (-want +got):\n%s", diff)
	}
	if err := got.Validate(); err != nil {
		t.Error(err)
	}
	want.Slots.Queue, want.OnFenced = slots.Queue{}, concurrency.Drain
	if diff := cmp.Diff(want, guardConfig("test", "uid/nonce", p, true)); diff != "" {
		t.Errorf("in shadow it differs (-want +got):\n%s", diff)
	}
	p.Algorithm = policy.LimitAlgorithm{Type: policy.AIMD, Baseline: &policy.Baseline{Type: policy.RollingBaseline, Samples: 100}, TolerancePercent: 200, BackoffPercent: 90}
	law := adaptive.Config{Algorithm: adaptive.AIMD, Min: 2, Initial: 4, Max: 8, Baseline: adaptive.Baseline{Type: adaptive.Rolling, Samples: 100}, Tolerance: 2, Backoff: 0.9}
	if diff := cmp.Diff(law, guardConfig("test", "uid/nonce", p, false).Law); diff != "" {
		t.Errorf("the law of AIMD differs (-want +got):\n%s", diff)
	}
}
