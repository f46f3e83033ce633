package concurrency

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-dev/weir/pkg/concurrency/pool"
	"github.com/weir-dev/weir/pkg/limiter"
)

func TestWorstIsOfTheTimeSinceItWasTaken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		occupied := []int64{8, 9, 13, 12, 20, 3}
		bound := []int64{8, 8, 10, 8, 20, 8}
		g := open(t, fixed("a", 8), answers(func(c pool.Command) (pool.Grant, error) {
			grant, err := constant(8)(c)
			grant.Occupied, grant.Bound = occupied[(c.Seq-1)%6], bound[(c.Seq-1)%6]
			return grant, err
		}))
		see := func(want Worst) {
			t.Helper()
			if diff := cmp.Diff(want, g.TakeWorst()); diff != "" {
				t.Errorf("worst (-want +got):\n%s", diff)
			}
		}
		see(Worst{0, 8, 8})
		s := take(t, g, 5)
		release(s[:3])
		see(Worst{5, 0, 0})
		pass(4 * time.Second)
		see(Worst{2, 12, 8})
		pass(time.Second)
		see(Worst{2, 3, 8})
		release(s)
	})
}

func TestQuarantineCountsFromNow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := open(t, fixed("a", 8), answers(func(c pool.Command) (pool.Grant, error) {
			grant, err := constant(0)(c)
			if c.Seq == 1 {
				grant.Quarantined = limiter.Second / 2
			}
			return grant, err
		}))
		for _, want := range []limiter.Micros{500_000, 300_000, 100_000, 0} {
			if got := g.Stats().Grant.Quarantined; got != want {
				t.Errorf("quarantined for %dµs more, want %d", got, want)
			}
			pass(200 * time.Millisecond)
		}
	})
}
