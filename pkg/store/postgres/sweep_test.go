package postgres_test

import (
	"context"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/weir-dev/weir/pkg/limiter"
	"github.com/weir-dev/weir/pkg/store/storetest/postgrestest"
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

// TestANewCounterReadsFewOthers makes counters where plans were made when there were none, and
// thousands have ended meanwhile.
func TestANewCounterReadsFewOthers(t *testing.T) {
	t.Parallel()
	const counters, ended, each = 100, 5000, 50
	for _, table := range []string{"counters", "counters_durable"} {
		server := postgrestest.Start(t, "autovacuum=off")
		s := dial(t, server)
		p := perWindow(5, limiter.MaxWindow)
		p.Retention.Durable = table == "counters_durable"
		for i := range counters {
			apply(t, s, counterOf(strconv.Itoa(i)), p, lease)
			if i == 0 {
				server.Do("INSERT INTO weir." + table + " (key, keep_until) SELECT 'c/n/p/l/ended' || i, i FROM generate_series(1, " + strconv.Itoa(ended) + ") i")
			}
		}
		if err := s.Close(); err != nil { // the server counts what a connection did when it ends
			t.Fatal(err)
		}
		var rows []any
		for rows == nil || rows[0].(int64) < counters+ended {
			rows = server.Do("SELECT n_tup_ins, (seq_tup_read + idx_tup_fetch)::bigint FROM pg_stat_user_tables WHERE schemaname = 'weir' AND relname = '" + table + "'")[0]
			<-time.After(10 * time.Millisecond)
		}
		if read := rows[1].(int64); read > counters*each {
			t.Errorf("%d new rows of %s read %d, want at most %d each", counters, table, read, each)
		}
	}
}
