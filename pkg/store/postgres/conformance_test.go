package postgres_test

import (
	"testing"
	"time"

	"github.com/weir-dev/weir/pkg/limiter"
	"github.com/weir-dev/weir/pkg/store/postgres"
	"github.com/weir-dev/weir/pkg/store/storetest"
	"github.com/weir-dev/weir/pkg/store/storetest/postgrestest"
)

func dial(t testing.TB, server *postgrestest.Server) *postgres.Store {
	t.Helper()
	s, err := postgres.Dial(postgres.Options{Address: server.Addr, Database: postgrestest.Database, User: postgrestest.User})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

func TestStorePassesTheSuite(t *testing.T) {
	storetest.Run(t, func(t *testing.T) storetest.Subject {
		server := postgrestest.Start(t)
		s := dial(t, server)
		after := func(loss func()) func() storetest.Store {
			return func() storetest.Store { loss(); return s }
		}
		return storetest.Subject{
			Store: s,
			// The clock is the server's, so it can only be waited for.
			Advance:  func(d limiter.Micros) { <-time.After(time.Duration(d) * time.Microsecond) },
			Counters: func() int { return int(server.Do("SELECT count(*) FROM weir.counters")[0][0].(int64)) },
			Break:    server.Kill,
			Forget: map[string]func() storetest.Store{
				"restart": after(server.Restart),
				"crash":   after(server.Crash),
			},
		}
	})
}
