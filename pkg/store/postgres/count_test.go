package postgres

import (
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-dev/weir/internal/testing/postgrestest"
	"github.com/weir-dev/weir/pkg/limiter"
)

// TestTakesAtOnceAreCounted lets many transactions wait for one counter: each has to
// judge the row that the one before left, and needs no function for that.
func TestTakesAtOnceAreCounted(t *testing.T) {
	t.Parallel()
	const callers, takes, limit = 8, 40, 300
	s := openAs(t, postgrestest.Start(t), postgrestest.User, read("clock"))
	p := limiter.Params{Generation: 1, Rates: []limiter.Rate{{Limit: limit, Window: limiter.MaxWindow}}}
	one := limiter.Command{Min: 1, Want: 1}
	if err := s.Refresh(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := s.pool.Exec(t.Context(), "UPDATE weir.memory SET since = 0, named = 0, writer = pg_current_xact_id()::xid"); err != nil {
		t.Fatal(err)
	}
	if _, err := Run[[]int64](t.Context(), s, s.program.Program, s.program.volatile.step, encode("a", p, one)...); err != nil {
		t.Fatal(err)
	}
	var counted atomic.Int64
	var all sync.WaitGroup
	for range callers {
		all.Go(func() {
			for range takes {
				res, done, err := s.count(t.Context(), "a", p, one)
				if err != nil {
					t.Error(err)
				}
				if done {
					counted.Add(res.Granted)
				}
			}
		})
	}
	all.Wait()
	if counted := counted.Load(); counted != limit-1 {
		t.Errorf("%d of %d takes were counted, want all that were left, %d", counted, callers*takes, limit-1)
	}
}

// TestACountIsAnsweredInItsWindow gives the clock of the answer, which is read after
// that of the decision.
func TestACountIsAnsweredInItsWindow(t *testing.T) {
	p := limiter.Params{Rates: []limiter.Rate{{Limit: 10, Window: limiter.Second}}}
	at := func(now int64) time.Time { return time.UnixMicro(now) }
	for name, c := range map[string]struct{ now, want int64 }{
		"in the window":      {5_500_000, 5_500_000},
		"at its end":         {6_000_000, 5_999_999},
		"set back meanwhile": {4_000_000, 5_000_000},
	} {
		res, err := count{used: 7, ends: at(6_000_000), now: at(c.now)}.result(p, limiter.Command{Min: 1, Want: 3})
		if err != nil {
			t.Fatal(err)
		}
		want := limiter.Result{
			Granted: 3, Remaining: 3, Limit: 10, Now: limiter.Instant(c.want),
			ResetAfter: limiter.Micros(6_000_000 - c.want), ExpiresIn: limiter.Micros(6_000_000 - c.want),
		}
		want.Windows.N, want.Windows.Open[0] = 1, limiter.OpenWindow{Rate: p.Rates[0], Index: 5, Granted: 7}
		if diff := cmp.Diff(want, res); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}
