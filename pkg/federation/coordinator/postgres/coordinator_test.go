package postgres

import (
	"context"
	_ "embed"
	"fmt"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"go.uber.org/goleak"

	"github.com/weir-dev/weir/internal/testing/budgettest"
	"github.com/weir-dev/weir/internal/testing/postgrestest"
	"github.com/weir-dev/weir/pkg/federation/ledger"
	"github.com/weir-dev/weir/pkg/limiter"
	"github.com/weir-dev/weir/pkg/store/postgres"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

//go:embed testdata/clock.sql
var setClock string

// patience is the time-out where a server that is slow proves nothing: the machine is
// busy with other tests.
const patience = 30 * time.Second

// dial returns a store of the superuser that is closed when the test ends. Timeout 0 is
// the usual one.
func dial(t testing.TB, server *postgrestest.Server, timeout time.Duration) *postgres.Store {
	t.Helper()
	s, err := postgres.Dial(postgres.Options{Address: server.Addr, Database: postgrestest.Database, User: postgrestest.User, Timeout: timeout})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

func TestConformance(t *testing.T) {
	t.Parallel()
	server := postgrestest.Start(t)
	budgettest.Run(t, func(t *testing.T) budgettest.Subject {
		must(connect(t, server), "DROP SCHEMA IF EXISTS weir CASCADE")
		c := New(dial(t, server, 0))
		s := subject(t, server, c)
		s.Advance = func(d limiter.Micros) { <-time.After(time.Duration(d) * time.Microsecond) }
		s.Forget["a restart"] = func() budgettest.Coordinator { server.Restart(); return c }
		s.Forget["kill -9"] = func() budgettest.Coordinator { server.Crash(); return c }
		return s
	})
}

// TestConformanceByAClockThatIsSet compares with the core what a clock decides, too.
func TestConformanceByAClockThatIsSet(t *testing.T) {
	t.Parallel()
	server := postgrestest.Start(t)
	budgettest.Run(t, func(t *testing.T) budgettest.Subject { return clocked(t, server) })
}

func FuzzStep(f *testing.F) {
	server := postgrestest.Start(f)
	budgettest.Fuzz(f, func(t testing.TB) budgettest.Subject { return clocked(t, server) })
}

// clocked returns a subject whose clock the test sets.
func clocked(t testing.TB, server *postgrestest.Server) budgettest.Subject {
	clock := connect(t, server)
	must(clock, "DROP SCHEMA IF EXISTS weir CASCADE")
	must(clock, "DROP TABLE IF EXISTS public.clock")
	must(clock, "CREATE TABLE public.clock AS SELECT 0::bigint AS now")
	s := subject(t, server, newCoordinator(dial(t, server, patience), setClock))
	s.Suspend = nil // it waits for patience, where a coordinator waits for a second
	var now limiter.Instant
	s.Set = func(at limiter.Instant) {
		now = at
		must(clock, "UPDATE public.clock SET now = $1", int64(now))
	}
	s.Set(1_790_000_000_000_000)
	s.Advance = func(d limiter.Micros) { s.Set(now.Add(d)) }
	return s
}

// connect returns connections that are closed when the test ends.
func connect(t testing.TB, server *postgrestest.Server) *pgxpool.Pool {
	t.Helper()
	url := fmt.Sprintf("postgres://%s@%s/%s?sslmode=disable", postgrestest.User, server.Addr, postgrestest.Database)
	connections, err := pgxpool.New(context.Background(), url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(connections.Close)
	return connections
}

// must runs SQL, which may take as long as a busy machine does. It panics, because a fuzz
// target may not use its parent.
func must(c *pgxpool.Pool, sql string, args ...any) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if _, err := c.Exec(ctx, sql, args...); err != nil {
		panic(fmt.Errorf("%s: %w", sql, err))
	}
}

// subject returns one with what can happen to a server that runs on.
func subject(t testing.TB, server *postgrestest.Server, c *Coordinator) budgettest.Subject {
	connections := connect(t, server)
	after := func(sql string) func() budgettest.Coordinator {
		return func() budgettest.Coordinator {
			must(connections, sql)
			return c
		}
	}
	return budgettest.Subject{
		Coordinator: c,
		Memory: func(id string) (m ledger.Memory) {
			const sql = "SELECT memory, since FROM weir.budgets WHERE budget = $1"
			if err := connections.QueryRow(context.Background(), sql, []byte(id)).Scan(&m.Term, &m.Since); err != nil {
				panic(err)
			}
			return m
		},
		Forget: map[string]func() budgettest.Coordinator{
			"TRUNCATE of the members":  after("TRUNCATE weir.budget_members"),
			"TRUNCATE of the holders":  after("TRUNCATE weir.budget_holders"),
			"TRUNCATE of the budgets":  after("TRUNCATE weir.budgets"),
			"DROP of the holders":      after("DROP TABLE weir.budget_holders CASCADE"),
			"DROP of the schema":       after("DROP SCHEMA weir CASCADE"),
			"a dump, loaded once more": after("CREATE TABLE public.dump AS SELECT * FROM weir.budgets; DELETE FROM weir.budgets; INSERT INTO weir.budgets SELECT * FROM public.dump; DROP TABLE public.dump"),
		},
		Keep: map[string]func() budgettest.Coordinator{
			"another coordinator": func() budgettest.Coordinator { return &Coordinator{c.store, c.program, c.step, c.observe} },
		},
		Break: func() {
			server.Kill()
			t.Cleanup(server.Crash)
		},
		Suspend: func() func() { server.Pause(); return server.Resume },
	}
}
