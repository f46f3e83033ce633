package postgres

import (
	"context"
	_ "embed"
	"fmt"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"go.uber.org/goleak"

	"github.com/weir-dev/weir/internal/testing/pooltest"
	"github.com/weir-dev/weir/internal/testing/postgrestest"
	"github.com/weir-dev/weir/pkg/concurrency/pool"
	"github.com/weir-dev/weir/pkg/limiter"
	"github.com/weir-dev/weir/pkg/store/postgres"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

//go:embed testdata/clock.sql
var setClock string

// dial returns a store of the superuser that is closed when the test ends.
func dial(t testing.TB, server *postgrestest.Server) *postgres.Store {
	t.Helper()
	s, err := postgres.Dial(postgres.Options{
		Address: server.Addr, Database: postgrestest.Database, User: postgrestest.User,
		Timeout: 10 * time.Second, // 200 callers on a busy machine
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

func TestConformance(t *testing.T) {
	t.Parallel()
	server := postgrestest.Start(t)
	pooltest.Run(t, func(t *testing.T) pooltest.Subject {
		server.Do("DROP SCHEMA IF EXISTS weir CASCADE")
		c := New(dial(t, server))
		return pooltest.Subject{
			Coordinator: c,
			Advance:     func(d limiter.Micros) { <-time.After(time.Duration(d) * time.Microsecond) },
			Forget:      losses(server, c),
			Break: func() {
				server.Kill()
				t.Cleanup(server.Crash)
			},
		}
	})
}

// TestConformanceByAClockThatIsSet compares with the core what a clock decides, too.
func TestConformanceByAClockThatIsSet(t *testing.T) {
	t.Parallel()
	server := postgrestest.Start(t)
	pooltest.Run(t, func(t *testing.T) pooltest.Subject { return clocked(t, server) })
}

func FuzzStep(f *testing.F) {
	server := postgrestest.Start(f)
	pooltest.Fuzz(f, func(t testing.TB) pooltest.Subject { return clocked(t, server) })
}

// clocked returns a subject whose clock the test sets.
func clocked(t testing.TB, server *postgrestest.Server) pooltest.Subject {
	server.Do("DROP SCHEMA IF EXISTS weir CASCADE")
	server.Do("DROP TABLE IF EXISTS public.clock")
	server.Do("CREATE TABLE public.clock AS SELECT 0::bigint AS now")
	c := newCoordinator(dial(t, server), setClock)
	now := limiter.Instant(1_790_000_000_000_000)
	clock := connect(t, server)
	set := func(at limiter.Instant) {
		now = at
		if _, err := clock.Exec(context.Background(), "UPDATE public.clock SET now = $1", int64(now)); err != nil {
			panic(err) // a fuzz target may not use its parent
		}
	}
	set(now)
	return pooltest.Subject{
		Coordinator: c, Set: set,
		Advance: func(d limiter.Micros) { set(now.Add(d)) },
		Forget:  accidents(server, c),
		Break: func() {
			server.Kill()
			t.Cleanup(server.Crash)
		},
	}
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

// losses are the ways in which a server can lose what it knows.
func losses(server *postgrestest.Server, c *Coordinator) map[string]func() pooltest.Coordinator {
	all := accidents(server, c)
	all["a restart"] = func() pooltest.Coordinator { server.Restart(); return c }
	all["kill -9"] = func() pooltest.Coordinator { server.Crash(); return c }
	return all
}

// accidents are those that happen to a server that runs on.
func accidents(server *postgrestest.Server, c *Coordinator) map[string]func() pooltest.Coordinator {
	return map[string]func() pooltest.Coordinator{
		"TRUNCATE": func() pooltest.Coordinator { server.Do("TRUNCATE weir.holders"); return c },
		"DROP":     func() pooltest.Coordinator { server.Do("DROP SCHEMA weir CASCADE"); return c },
	}
}

var (
	web = pool.Key{Cluster: "c", Namespace: "n", Name: "web"}
	six = pool.Params{Min: 6, Max: 6, Initial: 6, TTL: limiter.Second, Quarantine: limiter.Second, Generation: 1}
)

func beat(t *testing.T, c *Coordinator, key pool.Key, seq int64) pool.Grant {
	t.Helper()
	g, err := c.Apply(t.Context(), key, six, pool.Command{Op: pool.Beat, Holder: "a", Seq: seq})
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// TestALoadedDumpBeginsAnew writes the pool's row as a dump does that is loaded.
func TestALoadedDumpBeginsAnew(t *testing.T) {
	t.Parallel()
	server := postgrestest.Start(t)
	c := New(dial(t, server))
	before := beat(t, c, web, 1)
	server.Do("CREATE TABLE dump AS SELECT * FROM weir.pools")
	server.Do("DELETE FROM weir.pools")
	server.Do("INSERT INTO weir.pools SELECT * FROM dump")
	if g := beat(t, c, web, 2); g.Term <= before.Term || g.Quarantined == 0 {
		t.Errorf("got %+v after %+v", g, before)
	}
}

// TestPoolsThatNobodyAsksForAreDropped lets hours pass.
func TestPoolsThatNobodyAsksForAreDropped(t *testing.T) {
	t.Parallel()
	server := postgrestest.Start(t)
	subject := clocked(t, server)
	c := subject.Coordinator.(*Coordinator)
	other, third := web, web
	other.Name, third.Name = "other", "third"
	beat(t, c, web, 1)
	beat(t, c, other, 1)
	subject.Advance(pool.MaxTTL)
	beat(t, c, other, 2)
	subject.Advance(1)
	release := server.Hold("SELECT pg_advisory_xact_lock(hashtext('weir.pools'), hashtext('c/n/web'))")
	beat(t, c, third, 1)
	if got := server.Do("SELECT count(*) FROM weir.pools")[0][0]; got != int64(3) {
		t.Errorf("%v pools are left while one of them is asked for, want 3", got)
	}
	release()
	third.Name = "fourth"
	beat(t, c, third, 1)
	for _, table := range []string{"pools WHERE key", "holders WHERE pool"} {
		if got := server.Do("SELECT count(*) FROM weir." + table + " = 'c/n/web'")[0][0]; got != int64(0) {
			t.Errorf("of %s %v rows are left", table, got)
		}
	}
	if g := beat(t, c, other, 3); g.Quarantined != 0 || g.Share != 6 {
		t.Errorf("a pool in use was dropped: %+v", g)
	}
}

// TestTheClockIsReadUnderTheLock lets a beat wait for its pool.
func TestTheClockIsReadUnderTheLock(t *testing.T) {
	t.Parallel()
	server := postgrestest.Start(t)
	subject := clocked(t, server)
	c := subject.Coordinator.(*Coordinator)
	beat(t, c, web, 1)
	release := server.Hold("SELECT pg_advisory_xact_lock(hashtext('weir.pools'), hashtext('c/n/web'))")
	answer := make(chan pool.Grant)
	go func() {
		g, err := c.Apply(t.Context(), web, six, pool.Command{Op: pool.Beat, Holder: "b", Seq: 1})
		if err != nil {
			t.Error(err)
		}
		answer <- g
	}()
	for server.Do("SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'")[0][0] == int64(0) {
		<-time.After(time.Millisecond)
	}
	subject.Advance(2 * limiter.Second)
	release()
	if g := <-answer; g.Holders != 1 || g.Quarantined != 0 {
		t.Errorf("decided before it had its pool: %+v", g)
	}
}
