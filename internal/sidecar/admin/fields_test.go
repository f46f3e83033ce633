package admin

import (
	"errors"
	"reflect"
	"testing"
	"time"

	"github.com/weir-dev/weir/internal/sidecar/count"
	"github.com/weir-dev/weir/internal/sidecar/enforce"
	"github.com/weir-dev/weir/internal/sidecar/pools"
	"github.com/weir-dev/weir/internal/testing/fieldtest"
	"github.com/weir-dev/weir/pkg/concurrency"
	"github.com/weir-dev/weir/pkg/concurrency/pool"
	"github.com/weir-dev/weir/pkg/policy"
	"github.com/weir-dev/weir/pkg/twotier"
)

func TestEveryFieldOfALimitIsShown(t *testing.T) {
	in := &enforce.LimitState{
		Name:      count.Name{Namespace: "n", Policy: "p", Limit: "l"},
		Algorithm: policy.FixedWindow, Consistency: policy.Leased, Mode: policy.Shadow, Budget: "b",
		Stats: twotier.Stats{RoundTrips: 1, ActiveKeys: 2, Full: twotier.MaxKeysBound, SharedKeys: 4, CutOffSince: time.Unix(3, 0), CutOff: errors.New("gone")},
	}
	fieldtest.Matter(t, []*enforce.LimitState{in}, func(l *enforce.LimitState) (any, error) { return limitStateOf(l), nil },
		"LimitState.Counts", "LimitState.Credits", "Stats.Errors", "Stats.Promised", "Stats.Slow", "Stats.Learning", "Stats.LearningFor") // which are metrics
}

func TestEveryFieldOfAPoolIsShown(t *testing.T) {
	in := &pools.State{
		Pool: &policy.Pool{
			Namespace: "n", Name: "p", Algorithm: policy.LimitAlgorithm{Type: policy.AIMD}, Coordinator: policy.Store{Type: policy.RedisStore},
		},
		Shadow: true, Spared: 1,
		Stats: concurrency.Stats{
			Share: 2, Ceiling: 3, Inferred: 4, InFlight: 5, Keys: 21, Queued: 6, Fenced: true, Local: true,
			Baseline: 7 * time.Microsecond, Latency: 8 * time.Microsecond, Admitted: 9, Refused: 10, Fences: 11, Aborted: 12, Beats: 13,
			CoordinatorError: errors.New("gone"), Grant: pool.Grant{Limit: 14, Holders: 15, Granted: 16, Quarantined: 17},
			Partitions: []concurrency.PartitionStats{{Name: "gold", Guaranteed: 18, InFlight: 19, Queued: 20, Refused: 21}},
		},
	}
	ignored := []string{
		"State.Tallies", // which are metrics
		"Grant.Seq", "Grant.Term", "Grant.Generation", "Grant.Share", "Grant.TTL", "Grant.InFlight", "Grant.Occupied", "Grant.Bound",
	}
	// The pool itself is shown with the snapshot.
	shown := map[string]bool{"Namespace": true, "Name": true, "Algorithm": true, "Coordinator": true}
	for _, f := range reflect.VisibleFields(reflect.TypeFor[policy.Pool]()) {
		if !shown[f.Name] {
			ignored = append(ignored, "Pool."+f.Name)
		}
	}
	for _, of := range []reflect.Type{reflect.TypeFor[policy.LimitAlgorithm](), reflect.TypeFor[policy.Store]()} {
		for _, f := range reflect.VisibleFields(of) {
			if f.Name != "Type" {
				ignored = append(ignored, of.Name()+"."+f.Name)
			}
		}
	}
	fieldtest.Matter(t, []*pools.State{in}, func(s *pools.State) (any, error) { return poolStateOf(s), nil }, ignored...)
}
