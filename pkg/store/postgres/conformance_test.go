package postgres_test

import (
	"testing"
	"time"

	"github.com/weir-dev/weir/pkg/limiter"
	"github.com/weir-dev/weir/pkg/store/storetest"
	"github.com/weir-dev/weir/pkg/store/storetest/postgrestest"
)

// TestConformance empties one server for each subject, which is faster than starting
// one.
func TestConformance(t *testing.T) {
	t.Parallel()
	server := postgrestest.Start(t)
	storetest.Run(t, func(t *testing.T) storetest.Subject {
		server.Do("DROP SCHEMA IF EXISTS weir CASCADE")
		s := dial(t, server)
		after := func(loss func()) func() storetest.Store {
			return func() storetest.Store { loss(); return s }
		}
		return storetest.Subject{
			Store: s,
			// The clock is the server's, so it can only be waited for.
			Advance:  func(d limiter.Micros) { <-time.After(time.Duration(d) * time.Microsecond) },
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
