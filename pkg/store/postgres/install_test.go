package postgres

import (
	"context"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/weir-dev/weir/internal/testing/postgrestest"
	"github.com/weir-dev/weir/pkg/limiter"
	"github.com/weir-dev/weir/pkg/store"
)

var (
	counter  = store.Key{Scope: store.Scope{Cluster: "c", Namespace: "n", Policy: "p", Limit: "l"}}
	short    = limiter.Params{Generation: 1, Rates: []limiter.Rate{{Limit: 5, Window: limiter.MinWindow}}}
	oneToTen = limiter.Command{Min: 1, Want: 10}
)

func openAs(t *testing.T, server *postgrestest.Server, user, clock string) *Store {
	t.Helper()
	s, err := dialPatiently(Options{Address: server.Addr, Database: postgrestest.Database, User: user}, clock)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

// TestBuildsShareTheCounters lets two builds, whose functions differ, take turns.
func TestBuildsShareTheCounters(t *testing.T) {
	t.Parallel()
	server := postgrestest.Start(t)
	old := openAs(t, server, postgrestest.User, read("clock"))
	next := openAs(t, server, postgrestest.User, read("clock")+"-- of another build\n")
	if old.program.suffix == next.program.suffix {
		t.Fatal("both builds have the same functions")
	}
	granted := map[limiter.Instant]int64{} // by the end of the window
	for range 300 {
		for _, s := range []*Store{old, next} {
			res, err := s.Apply(t.Context(), counter, short, limiter.Command{Min: 1, Want: 1})
			if err != nil {
				t.Fatal(err)
			}
			granted[res.Windows.Open[0].End()] += res.Granted
		}
	}
	most := int64(0)
	for _, n := range granted {
		most = max(most, n)
	}
	if most != 5 {
		t.Errorf("a window of 5 granted %d", most)
	}
}

func TestManyInstallAtOnce(t *testing.T) {
	t.Parallel()
	server := postgrestest.Start(t)
	var stores sync.WaitGroup
	for range 8 {
		s := openAs(t, server, postgrestest.User, read("clock"))
		stores.Go(func() {
			if _, err := s.Apply(t.Context(), counter, short, oneToTen); err != nil {
				t.Error(err)
			}
		})
	}
	stores.Wait()
}

// TestNobodyElsesFunctionIsCalled puts a function in the way that fits a call better
// than the built-in one.
func TestNobodyElsesFunctionIsCalled(t *testing.T) {
	t.Parallel()
	server := postgrestest.Start(t)
	server.Do(`CREATE FUNCTION public.right(name, int) RETURNS text LANGUAGE plpgsql
		AS 'BEGIN RAISE EXCEPTION ''hijacked''; END'`)
	for _, clock := range []string{read("clock"), read("clock") + "-- of another build\n"} {
		s := openAs(t, server, postgrestest.User, clock)
		if _, err := s.Apply(t.Context(), counter, short, oneToTen); err != nil {
			t.Error(err)
		}
	}
}

// TestAUserWithoutRightsLearnsWhatToRun runs what the errors say.
func TestAUserWithoutRightsLearnsWhatToRun(t *testing.T) {
	t.Parallel()
	server := postgrestest.Start(t)
	for _, user := range []string{`"Shop"`, "other"} {
		server.Do("CREATE ROLE " + user + " LOGIN")
		s := openAs(t, server, strings.Trim(user, `"`), read("clock"))
		_, err := s.Apply(t.Context(), counter, short, oneToTen)
		if err == nil || !strings.Contains(err.Error(), "an administrator") {
			t.Fatalf("%s: error is %v, want one that says what an administrator has to run", user, err)
		}
		for grant := range strings.SplitSeq(regexp.MustCompile(`run: (.*?): `).FindStringSubmatch(err.Error())[1], "; ") {
			server.Do(grant)
		}
		if _, err := s.Apply(t.Context(), counter, short, oneToTen); err != nil {
			t.Errorf("%s after the grant: %v", user, err)
		}
		if err := s.Refresh(context.Background()); err != nil {
			t.Errorf("%s after the grant: %v", user, err)
		}
	}
}

// TestASchemaOfBeforeIsUpgraded finds the tables as the version before left them, in use,
// and goes on with what they know.
func TestASchemaOfBeforeIsUpgraded(t *testing.T) {
	t.Parallel()
	server := postgrestest.Start(t)
	server.Do("CREATE SCHEMA weir")
	for part := range strings.SplitSeq(read("schema"), ";\n\n") {
		server.Do(part)
	}
	const day = 24 * 3600 * limiter.Second
	now := limiter.Instant(server.Do("SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint")[0][0].(int64))
	p := limiter.Params{Generation: 1, Rates: []limiter.Rate{{Limit: 10, Window: day, Offset: 1}}}
	index := p.Rates[0].WindowAt(now).Index
	server.Do(`INSERT INTO weir.memory VALUES (true, pg_postmaster_start_time(), pg_current_xact_id()::xid, 5, 0)`)
	server.Do(`INSERT INTO weir.counters (key, keep_until, generation, rates, index, used, entries)
		VALUES ('c/n/p/l/', $1, 1, $2, $3, '{4}', '{0}')`,
		int64(now.Add(2*day)), []int64{10, int64(day), 0, 1, 0}, []int64{index})

	s := openAs(t, server, postgrestest.User, read("clock"))
	ask := func(p limiter.Params, want int64) {
		t.Helper()
		res, err := s.Apply(t.Context(), counter, p, limiter.Command{Min: 1, Want: 3})
		if err != nil || res.Granted != want {
			t.Errorf("granted %d (%v, %v), want %d", res.Granted, res.Reason, err, want)
		}
	}
	durable := p
	durable.Retention.Durable = true
	ask(durable, 3)
	ask(p, 3)       // as a sidecar of before asks: the counter moves back
	ask(durable, 0) // nothing is left
	for table, want := range map[string]int64{"counters": 0, "counters_durable": 1} {
		if n := server.Do("SELECT count(*) FROM weir." + table)[0][0]; n != want {
			t.Errorf("%s has %d rows, want %d", table, n, want)
		}
	}
}
