package postgres_test

import (
	"testing"
	"time"

	"github.com/weir-dev/weir/internal/testing/postgrestest"
	"github.com/weir-dev/weir/pkg/limiter"
	"github.com/weir-dev/weir/pkg/store/postgres"
)

// lazy lets a server lose what was not committed synchronously.
var lazy = []string{"synchronous_commit=off", "wal_writer_delay=10s"}

// daily returns the parameters of a durable limit a day that is born in the present
// memory.
func daily(t *testing.T, s *postgres.Store, limit int64) limiter.Params {
	t.Helper()
	f, err := s.Probe(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return limiter.Params{
		Generation: 1,
		Rates:      []limiter.Rate{{Limit: limit, Window: 24 * 3600 * limiter.Second, Offset: midday(f.Now)}},
		Retention:  limiter.Retention{Durable: true, Born: f.Durable.Memories},
	}
}

// midday returns the offset by which it is noon, so that no window ends in a test.
func midday(now limiter.Instant) limiter.Micros {
	const day = 24 * 3600 * limiter.Second
	return (day/2 - limiter.Micros(int64(now)%int64(day))) % limiter.MaxOffset
}

// TestAFreshServerServesLongWindows asks a server that is new for its first units of
// windows that began long before it.
func TestAFreshServerServesLongWindows(t *testing.T) {
	t.Parallel()
	s := dial(t, postgrestest.Start(t))
	p := daily(t, s, 10)
	f, err := s.Probe(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	month := p
	month.Rates = []limiter.Rate{{Limit: 10, Window: limiter.MaxWindow, Monthly: true}}
	volatile := p
	volatile.Retention = limiter.Retention{Born: f.Volatile.Memories}
	for name, c := range map[string]struct {
		p    limiter.Params
		want limiter.Reason
	}{
		"a day":               {p, limiter.Granted},
		"a month":             {month, limiter.Granted},
		"a day, not durable":  {volatile, limiter.Granted},
		"born somewhere else": {without(p), limiter.Amnesia},
		"never born":          {without(volatile), limiter.Amnesia},
	} {
		for range 2 { // by the functions, and by what they prepared
			key := counterOf("")
			key.Scope.Limit = name
			if res := apply(t, s, key, c.p, lease); res.Reason != c.want {
				t.Errorf("%s: %v, want %v", name, res.Reason, c.want)
			}
		}
	}
}

// without returns parameters that are born in another memory than the present one.
func without(p limiter.Params) limiter.Params {
	p.Retention.Born = []limiter.MemoryID{p.Retention.Born[0] + 1}
	return p
}

// TestDurableCountersOutliveTheServer grants a part of a day, ends the server in every
// way that loses nothing, and asks for the rest.
func TestDurableCountersOutliveTheServer(t *testing.T) {
	for name, end := range map[string]func(*postgrestest.Server){
		"an orderly restart":             (*postgrestest.Server).Restart,
		"an immediate stop":              (*postgrestest.Server).Abort,
		"a kill of the server":           (*postgrestest.Server).Crash,
		"a kill of one of its processes": (*postgrestest.Server).KillOne,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := postgrestest.Start(t, lazy...)
			s := dial(t, server)
			p := daily(t, s, 12)
			bucket := p
			bucket.Algorithm, bucket.Rates = limiter.TokenBucket, []limiter.Rate{{Limit: 12, Window: limiter.MaxWindow}}
			for _, c := range []string{"a", "a"} { // the second by count.sql
				if res := apply(t, s, counterOf(c), p, lease); res.Granted != 5 {
					t.Fatalf("before: %v of %d, want 5", res.Reason, res.Granted)
				}
			}
			if res := apply(t, s, counterOf("bucket"), bucket, lease); res.Granted != 5 {
				t.Fatalf("a bucket before: %v of %d, want 5", res.Reason, res.Granted)
			}
			end(server)
			came := time.Now()
			if res := answered(t, s, p); res.Granted != 2 || res.Remaining != 0 {
				t.Errorf("after: %v of %d and %d remain, want the 2 that were left", res.Reason, res.Granted, res.Remaining)
			}
			if took := time.Since(came); took > 5*time.Second {
				t.Errorf("the first answer took %v", took)
			}
			if res := apply(t, s, counterOf("bucket"), bucket, limiter.Command{Min: 1, Want: 12}); res.Granted != 7 {
				t.Errorf("the bucket grants %d (%v), want the 7 that were left", res.Granted, res.Reason)
			}
			if res := apply(t, s, counterOf("never asked"), p, lease); res.Granted != 5 {
				t.Errorf("a new key grants %d (%v), want 5", res.Granted, res.Reason)
			}
		})
	}
}

// TestALossOfDurableCountersIsNoticed grants a part of a day and lets the server go back,
// then asks again. A holder that resumes goes on, with the counts that are left.
func TestALossOfDurableCountersIsNoticed(t *testing.T) {
	nothing := func(*postgrestest.Server) any { return nil }
	does := func(sql ...string) func(*postgrestest.Server, any) *postgrestest.Server {
		return func(s *postgrestest.Server, _ any) *postgrestest.Server {
			for _, sql := range sql {
				s.Do(sql)
			}
			return s
		}
	}
	for name, c := range map[string]struct {
		prepare func(*postgrestest.Server) any
		lose    func(*postgrestest.Server, any) *postgrestest.Server
		left    int64 // units that the counts which are left leave of 10
	}{
		"TRUNCATE":    {nothing, does("TRUNCATE weir.counters_durable"), 10},
		"DROP SCHEMA": {nothing, does("DROP SCHEMA weir CASCADE"), 10},
		"DROP TABLE":  {nothing, does("DROP TABLE weir.counters_durable"), 10},
		"a dump that is loaded": {nothing, does(
			"CREATE TABLE public.counters AS SELECT * FROM weir.counters_durable",
			"CREATE TABLE public.memory AS SELECT * FROM weir.memory_durable",
			"DELETE FROM weir.memory_durable", "DELETE FROM weir.counters_durable",
			"INSERT INTO weir.counters_durable SELECT * FROM public.counters",
			"INSERT INTO weir.memory_durable SELECT * FROM public.memory"), 5},
		"a dump of the counters that is loaded in their place": {nothing, does(
			"CREATE TABLE public.counters AS SELECT * FROM weir.counters_durable",
			"ALTER TABLE weir.counters_durable RENAME TO gone",
			"CREATE TABLE weir.counters_durable (LIKE weir.gone INCLUDING ALL)",
			"INSERT INTO weir.counters_durable SELECT * FROM public.counters",
			"DROP TABLE weir.gone"), 5},
		"a recovery to a point in time": {
			func(s *postgrestest.Server) any { return s.Backup(false) },
			func(s *postgrestest.Server, backup any) *postgrestest.Server {
				s.Kill()
				s.Set([]string{"restore_command=false", "recovery_target=immediate", "recovery_target_action=promote"}, nil)
				s.Recover(backup.(string))
				return s
			}, 10,
		},
		"the promotion of a standby that is behind": {
			func(s *postgrestest.Server) any {
				standby := postgrestest.StartIn(t, s.Backup(true))
				standby.Pause()
				return standby
			},
			func(s *postgrestest.Server, standby any) *postgrestest.Server {
				promoted := standby.(*postgrestest.Server)
				s.Kill()
				promoted.Resume()
				promoted.Do("SELECT pg_promote()")
				return promoted
			}, -1, // it may have had the grant in its socket
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := postgrestest.Start(t)
			s := dial(t, server)
			p := daily(t, s, 10)
			prepared := c.prepare(server)
			if res := apply(t, s, counterOf("a"), p, lease); res.Granted != 5 {
				t.Fatalf("before: %v of %d, want 5", res.Reason, res.Granted)
			}
			after := c.lose(server, prepared)
			if after != server {
				s = dial(t, after)
			}
			for range 2 {
				if res := answered(t, s, p); res.Granted > 0 || res.Reason != limiter.Amnesia {
					t.Errorf("on a day with 5 granted: %d, %v", res.Granted, res.Reason)
				}
			}
			resume := p
			resume.Retention.Resume = true
			if res := apply(t, s, counterOf("a"), resume, limiter.Command{Min: 1, Want: 20}); res.Granted != c.left && c.left >= 0 {
				t.Errorf("a holder that resumes is granted %d (%v), want %d", res.Granted, res.Reason, c.left)
			}
			if res := apply(t, s, counterOf("b"), daily(t, s, 10), lease); res.Granted != 5 {
				t.Errorf("a limit that was born after it grants %d (%v), want 5", res.Granted, res.Reason)
			}
		})
	}
}
