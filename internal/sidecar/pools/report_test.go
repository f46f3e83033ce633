package pools_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/testing/protocmp"

	"github.com/weir-dev/weir/internal/fleetpb"
	"github.com/weir-dev/weir/internal/sidecar/enforce"
	"github.com/weir-dev/weir/internal/sidecar/pools"
	"github.com/weir-dev/weir/pkg/concurrency"
	"github.com/weir-dev/weir/pkg/concurrency/pool"
	"github.com/weir-dev/weir/pkg/policy"
)

func TestAReportShowsTheStateOfThePool(t *testing.T) {
	inBubble(t, enforce.Enforce, func(t *testing.T, s *sidecar) {
		if r := s.Report(1); r != nil {
			t.Errorf("without a pool the report is %v", r)
		}
		s.apply(newPool(4, func(p *policy.Pool) {
			p.Partitions = []policy.Partition{{Name: "gold", GuaranteedPercent: 50, Match: path("/gold")}}
		}))
		slot, _ := s.enter("/gold")
		time.Sleep(30 * time.Millisecond)
		slot.Release(concurrency.Served)
		held := s.hold()
		s.hold()
		if _, refusal := s.enter("/"); refusal == nil {
			t.Error("a request has a slot that is kept for others")
		}
		held.Release(concurrency.Ignored)
		want := []*fleetpb.PoolReport{{
			Namespace: "shop", Pool: "checkout", Generation: 1,
			Share: 4, Ceiling: 4, Inferred: 4, InFlight: 1, Peak: 2, LatencyMicros: 30_000,
			AdmittedTotal: 3, RefusedTotal: 1, Limit: 4, Holders: 1, Occupied: 0, Bound: 4,
			Partitions: []*fleetpb.PoolReport_Partition{{Name: "gold", Guaranteed: 2}},
		}}
		if diff := cmp.Diff(want, s.Report(1), protocmp.Transform()); diff != "" {
			t.Errorf("report differs (-want +got):\n%s", diff)
		}
		s.world.set(func(w *world) { w.away = true })
		time.Sleep(2 * leaseTTL)
		r := s.Report(1)[0]
		if !r.GetFenced() || r.GetFencedTotal() != 1 || r.GetShare() != 0 || r.GetCoordinatorError() != errAway.Error() {
			t.Errorf("fenced, the report is %v", r)
		}
	})
}

// TestALimitIsOfTheGenerationThatItIsReportedUnder edits a pool while the coordinator
// is away: what it answered before is not of this generation.
func TestALimitIsOfTheGenerationThatItIsReportedUnder(t *testing.T) {
	inBubble(t, enforce.Enforce, func(t *testing.T, s *sidecar) {
		s.apply(newPool(4))
		s.world.set(func(w *world) { w.away = true })
		s.apply(newPool(8, func(p *policy.Pool) { p.Generation = 2 }))
		if r := s.Report(1)[0]; r.GetGeneration() != 2 || r.GetLimit() != 0 || r.GetHolders() != 0 {
			t.Errorf("before the coordinator answered the report is %v, want no limit", r)
		}
		s.world.set(func(w *world) { w.away = false })
		time.Sleep(2 * interval)
		if r := s.Report(1)[0]; r.GetLimit() != 8 || r.GetHolders() != 1 {
			t.Errorf("the report is %v, want limit 8", r)
		}
		s.apply(newPool(8, func(p *policy.Pool) { p.Generation = 2 }))
		if r := s.Report(1)[0]; r.GetLimit() != 8 {
			t.Errorf("after the same pool once more the report is %v, want limit 8", r)
		}
	})
}

// TestAdmissionsInShadowAreReported holds requests that find no slot, in Shadow and
// when the mode is Enforce again, until they end.
func TestAdmissionsInShadowAreReported(t *testing.T) {
	inBubble(t, enforce.Enforce, func(t *testing.T, s *sidecar) {
		s.apply(newPool(1, func(p *policy.Pool) { p.Mode = policy.Shadow }))
		slots := []pools.Slot{s.hold(), s.hold(), s.hold()}
		check := func(when string, inFlight, peak, spared int64) {
			t.Helper()
			if r := s.Report(1)[0]; r.GetInFlight() != inFlight || r.GetPeak() != peak || r.GetSpared() != spared {
				t.Errorf("%s: %d in flight, at most %d, of these without a slot %d; want %d, %d and %d",
					when, r.GetInFlight(), r.GetPeak(), r.GetSpared(), inFlight, peak, spared)
			}
		}
		check("in Shadow", 3, 3, 2)
		if state := s.State(); state.Spared != 2 || state.Stats.InFlight != 1 {
			t.Errorf("state = %+v, want one slot and two without", state)
		}
		s.apply(newPool(1, func(p *policy.Pool) { p.Generation = 2 }))
		if _, refusal := s.enter("/"); refusal == nil {
			t.Error("back in Enforce a request has a slot that is not there")
		}
		slots[1].Release(concurrency.Served)
		again := slots[1]
		again.Release(concurrency.Served)
		check("back in Enforce", 2, 3, 2)
		slots[0].Release(concurrency.Served)
		slots[2].Release(concurrency.Served)
		check("at their end", 0, 2, 1)
		check("after it", 0, 0, 0)
	})
}

// TestABrokenSessionLosesNoPeak reports over a session, and then over another that does
// not know whether the one before heard all.
func TestABrokenSessionLosesNoPeak(t *testing.T) {
	inBubble(t, enforce.Enforce, func(t *testing.T, s *sidecar) {
		s.apply(newPool(4))
		a, b := s.hold(), s.hold()
		a.Release(concurrency.Served)
		b.Release(concurrency.Served)
		for _, tc := range []struct {
			session uint64
			want    int64
		}{{1, 2}, {2, 2}, {2, 0}, {3, 0}} {
			if got := s.Report(tc.session)[0].GetPeak(); got != tc.want {
				t.Errorf("session %d was sent %d, want %d", tc.session, got, tc.want)
			}
		}
	})
}

// TestIgnoredRequestsAreNotMeasured: a request that waits for events says nothing of the
// backend.
func TestIgnoredRequestsAreNotMeasured(t *testing.T) {
	inBubble(t, enforce.Enforce, func(t *testing.T, s *sidecar) {
		s.apply(newPool(4, func(p *policy.Pool) {
			p.Algorithm = policy.LimitAlgorithm{
				Type: policy.Gradient2, SmoothingPercent: 20, TolerancePercent: 150,
				Baseline: &policy.Baseline{Type: policy.RollingBaseline, Samples: 100}, Ignore: path("/poll"),
			}
		}))
		slot, _ := s.enter("/poll")
		time.Sleep(30 * time.Millisecond)
		slot.Release(concurrency.Served)
		if got := s.Report(1)[0].GetLatencyMicros(); got != 0 {
			t.Errorf("a latency of %d µs", got)
		}
	})
}

// TestARefusalSaysWhenToComeBack compares the wait with what the pool is busy with.
func TestARefusalSaysWhenToComeBack(t *testing.T) {
	measured := func(s *sidecar) {
		slot := s.hold()
		time.Sleep(3 * time.Second)
		slot.Release(concurrency.Served)
	}
	for name, tc := range map[string]struct {
		before func(s *sidecar)
		want   time.Duration
	}{
		"no latency is known":      {func(s *sidecar) { s.hold() }, time.Second},
		"one latency":              {func(s *sidecar) { measured(s); s.hold() }, 3 * time.Second},
		"and those that wait":      {func(s *sidecar) { measured(s); s.hold(); s.queue(2) }, 9 * time.Second},
		"a minute at most":         {func(s *sidecar) { measured(s); s.hold(); s.queue(50) }, time.Minute},
		"the coordinator does not": {func(s *sidecar) { s.world.set(func(w *world) { w.away = true }); time.Sleep(2 * leaseTTL) }, interval},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, enforce.Enforce, func(t *testing.T, s *sidecar) {
				s.apply(newPool(1))
				tc.before(s)
				_, refusal := s.enter("/")
				if refusal == nil || refusal.RetryAfter != tc.want || refusal.Pool.Name != "checkout" {
					t.Fatalf("got %+v, want to come back after %v", refusal, tc.want)
				}
				ctx, cancel := context.WithCancel(t.Context())
				cancel()
				s.Close(ctx) // nobody releases
			})
		})
	}
}

// queue lets n requests wait.
func (s *sidecar) queue(n int) {
	s.apply(newPool(1, func(p *policy.Pool) {
		p.Generation, p.Queue = 2, &policy.Queue{MaxLength: n, MaxWait: pool.MaxTTL}
	}))
	for range n {
		go func() { _, _ = s.enter("/") }()
	}
	synctest.Wait()
}
