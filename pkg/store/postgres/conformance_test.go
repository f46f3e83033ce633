package postgres

import (
	"context"
	_ "embed"
	"fmt"
	"testing"
	"time"

	"github.com/weir-dev/weir/internal/testing/postgrestest"
	"github.com/weir-dev/weir/pkg/limiter"
	"github.com/weir-dev/weir/pkg/store/storetest"
)

// shiftedClock takes the place of sql/clock.sql, so that time can step back. All other
// text is what runs in production.
//
//go:embed testdata/shifted.sql
var shiftedClock string

// TestConformance empties one server for each subject, which is faster than starting
// one.
func TestConformance(t *testing.T) {
	t.Parallel()
	server := postgrestest.Start(t)
	storetest.Run(t, func(t *testing.T) storetest.Subject {
		server.Do("DROP SCHEMA IF EXISTS weir CASCADE")
		server.Do("ALTER DATABASE " + postgrestest.Database + " RESET ALL")
		s := openAs(t, server, postgrestest.User, shiftedClock)
		warm(t, s)
		server.Do("DELETE FROM weir.counters")
		after := func(loss func()) func() storetest.Store {
			return func() storetest.Store {
				loss()
				<-time.After(time.Second) // the lease of the clock is over
				return s
			}
		}
		return storetest.Subject{
			Store: s,
			// The clock is the server's, so it can only be waited for.
			Advance: func(d limiter.Micros) { <-time.After(time.Duration(d) * time.Microsecond) },
			StepBack: func(d limiter.Micros) {
				server.Do(fmt.Sprintf("ALTER DATABASE %s SET weir.shift = '%d'", postgrestest.Database, -d))
				s.pool.Reset() // the setting holds for new connections
				warm(t, s)
			},
			Counters: func() int { return int(server.Do("SELECT count(*) FROM weir.counters")[0][0].(int64)) },
			Break: func() {
				server.Kill()
				t.Cleanup(server.Crash)
			},
			Forget: map[string]func() storetest.Store{
				"restart": after(server.Restart),
				"crash":   after(server.Crash),
			},
		}
	})
}

// warm runs every algorithm on every connection. A connection compiles a function when
// it first runs it, which on a busy machine takes longer than the windows of the suite.
func warm(t *testing.T, s *Store) {
	t.Helper()
	if err := s.Refresh(context.Background()); err != nil {
		t.Fatal(err)
	}
	for range defaultConnections {
		conn, err := s.pool.Acquire(context.Background())
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Release()
		for algorithm := limiter.FixedWindow; algorithm <= limiter.LeakyBucket; algorithm++ {
			p := limiter.Params{Algorithm: algorithm, Rates: short.Rates, Buckets: 1}
			for _, c := range []limiter.Command{oneToTen, oneToTen, {Op: limiter.Return, Want: 1}} {
				args := encode("warm "+algorithm.String(), p, c)
				if _, err := conn.Exec(context.Background(), s.program.call(p, c), args...); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
}
