package postgres_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/weir-dev/weir/internal/testing/postgrestest"
	"github.com/weir-dev/weir/pkg/limiter"
)

// TestASweepRefusesNobody takes of a counter with several rates, which step decides, while
// others sweep. A sweep notes the instant that it went by, which may be later than the one
// that a take beside it has read.
func TestASweepRefusesNobody(t *testing.T) {
	const takers, lasts = 4, 5 * time.Second
	s := dial(t, postgrestest.Start(t))
	p := limiter.Params{Algorithm: limiter.FixedWindow, Generation: 1, Rates: []limiter.Rate{
		{Limit: 1e12, Window: limiter.Second}, {Limit: 1e12, Window: 60 * limiter.Second},
	}}
	apply(t, s, counterOf("a"), p, limiter.Command{Min: 1, Want: 1}) // installs what it needs
	ctx, stop := context.WithTimeout(t.Context(), lasts)
	defer stop()
	var working sync.WaitGroup
	working.Go(func() {
		for ctx.Err() == nil {
			if err := s.Refresh(ctx); err != nil && ctx.Err() == nil {
				t.Error(err)
			}
		}
	})
	for range takers {
		working.Go(func() {
			for ctx.Err() == nil {
				got, err := s.Apply(ctx, counterOf("a"), p, limiter.Command{Min: 1, Want: 1})
				if err != nil {
					if ctx.Err() == nil {
						t.Error(err)
					}
					return
				}
				if got.Reason == limiter.ClockBehind { // of windows older than the server nothing is granted
					t.Errorf("refused: %+v", got)
					return
				}
			}
		})
	}
	working.Wait()
}

// TestANewCounterIsDecidedInItsPlace: no index has a second entry of it.
func TestANewCounterIsDecidedInItsPlace(t *testing.T) {
	const made = int64(20)
	server := postgrestest.Start(t)
	s := dial(t, server)
	p := limiter.Params{Algorithm: limiter.FixedWindow, Generation: 1, Rates: []limiter.Rate{{Limit: 100, Window: limiter.Day}}}
	for i := range made {
		apply(t, s, counterOf(fmt.Sprint(i)), p, limiter.Command{Min: 1, Want: 1})
	}
	// A connection reports what it did when it ends at the latest.
	server.Do("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()")
	for deadline := time.Now().Add(30 * time.Second); ; {
		row := server.Do("SELECT n_tup_ins, n_tup_upd - n_tup_hot_upd FROM pg_stat_user_tables WHERE relid = 'weir.counters'::regclass")[0]
		if row[0] != made && time.Now().Before(deadline) {
			continue
		}
		if row[0] != made || row[1] != int64(0) {
			t.Errorf("%v of %d counters are there, and %v were updated elsewhere than in their place", row[0], made, row[1])
		}
		return
	}
}
