package counters_test

import (
	"testing"
	"time"

	"github.com/weir-dev/weir/internal/testing/postgrestest"
	"github.com/weir-dev/weir/internal/testing/redistest"
	"github.com/weir-dev/weir/internal/testing/redistest/dial"
	"github.com/weir-dev/weir/pkg/federation/coordinator/counters"
	"github.com/weir-dev/weir/pkg/store/postgres"
)

// TestRegionsShareARealServer is TestRegionsShareTheStore with a Redis and a Postgres.
func TestRegionsShareARealServer(t *testing.T) {
	for name, open := range map[string]func(t *testing.T) counters.Store{
		"Redis": func(t *testing.T) counters.Store {
			return dial.Server(t, redistest.Start(t))
		},
		"Postgres": func(t *testing.T) counters.Store {
			server := postgrestest.Start(t)
			return redistest.Opened[*postgres.Store](t)(postgres.Dial(postgres.Options{
				Address: server.Addr, Database: postgrestest.Database, User: postgrestest.User, Timeout: 10 * time.Second,
			}))
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			requireShared(t, open(t))
		})
	}
}
