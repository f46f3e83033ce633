package pools

import (
	"errors"
	"reflect"
	"testing"
	"time"

	"github.com/weir-dev/weir/internal/testing/fieldtest"
	"github.com/weir-dev/weir/pkg/concurrency"
	"github.com/weir-dev/weir/pkg/concurrency/pool"
	"github.com/weir-dev/weir/pkg/policy"
)

// A reported is all that a report is made of.
type reported struct {
	Pool                policy.Pool
	Stats               concurrency.Stats
	Worst               concurrency.Worst
	Spared, WorstSpared int64
	KeyMissing          int64
	Answered            bool
}

func TestEveryFieldOfAPoolIsReported(t *testing.T) {
	in := &reported{
		Pool: policy.Pool{Namespace: "n", Name: "p", Generation: 1},
		Stats: concurrency.Stats{
			Share: 2, Ceiling: 3, Inferred: 4, InFlight: 5, Queued: 6, Fenced: true, Baseline: 7 * time.Microsecond, Latency: 8 * time.Microsecond,
			Admitted: 9, Refused: 10, Fences: 11, Aborted: 12, CoordinatorError: errors.New("away"),
			Grant:      pool.Grant{Limit: 13, Holders: 14, Quarantined: 15},
			Partitions: []concurrency.PartitionStats{{Name: "gold", Guaranteed: 16, InFlight: 17, Refused: 18}},
		},
		Worst: concurrency.Worst{Peak: 19, Occupied: 20, Bound: 21}, Spared: 22, WorstSpared: 23, KeyMissing: 24, Answered: true,
	}
	ignored := []string{
		"Stats.Local", "Stats.Beats", "Stats.Keys", "PartitionStats.Queued", // which are metrics
		"Grant.Seq", "Grant.Term", "Grant.Generation", "Grant.Share", "Grant.TTL", "Grant.Granted", "Grant.InFlight", "Grant.Occupied", "Grant.Bound",
		"PoolReport.BeatsTotal", // which older sidecars send
	}
	for _, f := range reflect.VisibleFields(reflect.TypeFor[policy.Pool]()) {
		if f.Name != "Namespace" && f.Name != "Name" && f.Name != "Generation" {
			ignored = append(ignored, "Pool."+f.Name) // which the controller knows
		}
	}
	fieldtest.Matter(t, []*reported{in}, func(r *reported) (any, error) {
		return reportOf(&r.Pool, &r.Stats, worst{r.Worst, r.WorstSpared}, r.Spared, r.KeyMissing, r.Answered), nil
	}, ignored...)
}

// TestTheWorse of two answers is the one further beyond its bound.
func TestTheWorse(t *testing.T) {
	of := func(peak, occupied, bound, spared int64) worst {
		return worst{concurrency.Worst{Peak: peak, Occupied: occupied, Bound: bound}, spared}
	}
	for name, tc := range map[string]struct{ a, b, want worst }{
		"peaks and answers are apart": {of(5, 9, 8, 1), of(3, 7, 4, 2), of(5, 7, 4, 2)},
		"the first is":                {of(1, 9, 4, 3), of(2, 7, 6, 1), of(2, 9, 4, 3)},
		"the first had no answer":     {of(1, 0, 0, 0), of(0, 3, 6, 0), of(1, 3, 6, 0)},
		"the second had no answer":    {of(1, 3, 6, 0), of(0, 0, 0, 0), of(1, 3, 6, 0)},
	} {
		if got := worse(tc.a, tc.b); got != tc.want {
			t.Errorf("%s: got %+v, want %+v", name, got, tc.want)
		}
	}
}
