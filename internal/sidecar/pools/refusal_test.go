package pools_test

import (
	"context"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/weir-dev/weir/internal/sidecar/enforce"
	"github.com/weir-dev/weir/internal/sidecar/pools"
	"github.com/weir-dev/weir/pkg/concurrency"
	"github.com/weir-dev/weir/pkg/policy"
)

// TestARefusalSaysWhatTheSlotsAreUsedFor asks a pool of five slots.
func TestARefusalSaysWhatTheSlotsAreUsedFor(t *testing.T) {
	live := []policy.Match{{Paths: []policy.PathMatch{{Type: policy.Exact, Value: "/live"}}}}
	away := func(s *sidecar) { s.world.set(func(w *world) { w.away = true }) }
	hold := func(paths ...string) func(s *sidecar) {
		return func(s *sidecar) {
			for _, path := range paths {
				if _, refusal := s.enter(path); refusal != nil {
					s.t.Fatalf("%s got no slot: %+v", path, refusal)
				}
			}
		}
	}
	for name, tc := range map[string]struct {
		partitions []policy.Partition
		unborn     bool // the coordinator is away from the start
		before     func(s *sidecar)
		want       pools.Refusal
	}{
		"all are in use": {
			before: hold("/", "/", "/", "/", "/"),
			want:   pools.Refusal{Verdict: concurrency.Full, Limit: 5, Holders: 1, Ceiling: 5, InFlight: 5},
		},
		"some are kept": {
			partitions: []policy.Partition{{Name: "live", GuaranteedPercent: 40, Match: live}},
			before:     hold("/", "/", "/"),
			want:       pools.Refusal{Verdict: concurrency.Full, Limit: 5, Holders: 1, Ceiling: 5, InFlight: 3, Kept: 2},
		},
		"a part of what was kept is in use": {
			partitions: []policy.Partition{{Name: "live", GuaranteedPercent: 40, Match: live}},
			before:     hold("/live", "/", "/", "/"),
			want:       pools.Refusal{Verdict: concurrency.Full, Limit: 5, Holders: 1, Ceiling: 5, InFlight: 4, Kept: 1},
		},
		"there never was a share": {
			unborn: true,
			before: func(*sidecar) {},
			want:   pools.Refusal{Verdict: concurrency.Unassigned, CoordinatorError: errAway},
		},
		"the share expired": {
			before: func(s *sidecar) { away(s); time.Sleep(2 * leaseTTL) },
			want:   pools.Refusal{Verdict: concurrency.Fenced, Limit: 5, Holders: 1, CoordinatorError: errAway},
		},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, enforce.Enforce, func(t *testing.T, s *sidecar) {
				if tc.unborn {
					away(s)
				}
				s.apply(newPool(5, func(p *policy.Pool) { p.Partitions = tc.partitions }))
				tc.before(s)
				_, got := s.enter("/")
				if got == nil {
					t.Fatal("it was admitted")
				}
				ignored := cmpopts.IgnoreFields(pools.Refusal{}, "Pool", "RetryAfter")
				if diff := cmp.Diff(&tc.want, got, ignored, cmpopts.EquateErrors()); diff != "" {
					t.Errorf("refusal (-want +got):\n%s", diff)
				}
				ctx, cancel := context.WithCancel(t.Context())
				cancel()
				s.Close(ctx) // nobody releases
			})
		})
	}
}
