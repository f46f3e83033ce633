package servers_test

import (
	"context"
	"net"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/weir-dev/weir/internal/testing/devcluster/servers"
)

func TestServersServeUntilKilled(t *testing.T) {
	for name, start := range map[string]func(context.Context, string) (*servers.Server, error){
		"redis": servers.Redis, "postgres": servers.Postgres,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, err := start(t.Context(), t.TempDir())
			if err != nil {
				t.Fatal(err)
			}
			s.Kill()
			if c, err := net.Dial("tcp", s.Address); err == nil {
				_ = c.Close()
				t.Error("it still listens")
			}
		})
	}
}

func TestAStandbyTakesOver(t *testing.T) {
	primary, standby := startPostgres(t), startPostgres(t)
	if err := standby.Follow(t.Context(), primary); err != nil {
		t.Fatal(err)
	}
	run(t, primary, "CREATE TABLE kept ()")
	run(t, standby, "SELECT pg_promote()")
	if err := primary.Follow(t.Context(), standby); err != nil {
		t.Fatal(err)
	}
	run(t, standby, "INSERT INTO kept DEFAULT VALUES")
	run(t, primary, "SELECT FROM kept")
	run(t, primary, "SELECT 1 / pg_is_in_recovery()::int")
}

func startPostgres(t *testing.T) *servers.Server {
	t.Helper()
	s, err := servers.PostgresWith(t.Context(), servers.Options{
		Logs: t.TempDir(), Args: []string{"-c", "fsync=off", "-c", "synchronous_standby_names=*"},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Kill)
	return s
}

func run(t *testing.T, s *servers.Server, sql string) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), "postgres://"+servers.PostgresUser+"@"+s.Address+"/"+servers.PostgresDatabase)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(t.Context())
	if _, err := conn.Exec(t.Context(), sql); err != nil {
		t.Errorf("%s: %v", sql, err)
	}
}

func TestAServerThatEndsAtItsStartIsAnError(t *testing.T) {
	t.Parallel()
	for name, start := range map[string]func(context.Context, servers.Options) (*servers.Server, error){
		"redis": servers.RedisWith, "postgres": servers.PostgresWith,
	} {
		_, err := start(t.Context(), servers.Options{Logs: t.TempDir(), Args: []string{"--nonsense", "yes"}})
		if err == nil || !strings.Contains(err.Error(), "nonsense") {
			t.Errorf("%s: the error is %v, want one with the log that names the argument", name, err)
		}
	}
}
