package postgres_test

import (
	"testing"
	"time"

	"github.com/weir-dev/weir/internal/testing/postgrestest"
	"github.com/weir-dev/weir/pkg/limiter"
	"github.com/weir-dev/weir/pkg/store/postgres"
)

// clockLease is how far the server's clock is leased ahead: for that long after a loss no
// window that begins is served.
const clockLease = time.Second

// TestALossIsNoticed grants a part of a window and lets the server forget that in every
// way it can, then asks again in the same window. The server before the grant prepares;
// after it the loss happens, and says where to go on.
func TestALossIsNoticed(t *testing.T) {
	nothing := func(*postgrestest.Server) any { return nil }
	stays := func(loss func(*postgrestest.Server)) func(*postgrestest.Server, any) *postgrestest.Server {
		return func(s *postgrestest.Server, _ any) *postgrestest.Server { loss(s); return s }
	}
	for name, c := range map[string]struct {
		prepare func(*postgrestest.Server) any
		lose    func(*postgrestest.Server, any) *postgrestest.Server
	}{
		"a restart":                      {nothing, stays((*postgrestest.Server).Restart)},
		"a kill of the server":           {nothing, stays((*postgrestest.Server).Crash)},
		"a kill of one of its processes": {nothing, stays((*postgrestest.Server).KillOne)},
		"TRUNCATE":                       {nothing, stays(func(s *postgrestest.Server) { s.Do("TRUNCATE weir.counters") })},
		"DROP SCHEMA":                    {nothing, stays(func(s *postgrestest.Server) { s.Do("DROP SCHEMA weir CASCADE") })},
		"DROP TABLE":                     {nothing, stays(func(s *postgrestest.Server) { s.Do("DROP TABLE weir.counters CASCADE") })},
		"a dump that is loaded into the running server": {
			func(s *postgrestest.Server) any {
				s.Do("CREATE TABLE public.counters AS SELECT * FROM weir.counters")
				s.Do("CREATE TABLE public.memory AS SELECT * FROM weir.memory")
				return nil
			},
			stays(func(s *postgrestest.Server) {
				s.Do("DELETE FROM weir.memory")
				s.Do("DELETE FROM weir.counters")
				s.Do("INSERT INTO weir.counters SELECT * FROM public.counters")
				s.Do("INSERT INTO weir.memory SELECT * FROM public.memory")
			}),
		},
		"a base backup that is restored": {
			func(s *postgrestest.Server) any { return s.Backup(false) },
			func(s *postgrestest.Server, backup any) *postgrestest.Server {
				s.Kill()
				s.Replace(backup.(string))
				return s
			},
		},
		"a copy of a stopped server that is restored": {
			func(s *postgrestest.Server) any {
				s.Stop()
				defer s.Crash()
				return s.Copy()
			},
			func(s *postgrestest.Server, dir any) *postgrestest.Server {
				s.Stop()
				s.Replace(dir.(string))
				return s
			},
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
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel() // it waits for windows
			server := postgrestest.Start(t)
			s := dial(t, server)
			p := perWindow(10, freshWindow(t, s))
			apply(t, s, counterOf("a"), p, lease)
			prepared := c.prepare(server)
			grant := answered(t, s, p)
			after := c.lose(server, prepared)
			if after != server {
				s = dial(t, after)
			}
			res := answered(t, s, p)
			if !res.Windows.SameWindows(grant.Windows) || res.Granted > 0 || res.Reason != limiter.Amnesia {
				t.Errorf("in a window with %d granted: %d, %v", grant.Windows.Open[0].Granted, res.Granted, res.Reason)
			}
			<-time.After(clockLease)
			if res := apply(t, s, counterOf("b"), perWindow(10, freshWindow(t, s)), lease); res.Granted != 5 {
				t.Errorf("a later window grants %d, want 5", res.Granted)
			}
		})
	}
}

// answered asks until there is an answer: a connection may break with the server.
func answered(t *testing.T, s *postgres.Store, p limiter.Params) limiter.Result {
	t.Helper()
	return answeredOf(t, s, "a", p)
}

func answeredOf(t *testing.T, s *postgres.Store, hash string, p limiter.Params) limiter.Result {
	t.Helper()
	for {
		res, err := s.Apply(t.Context(), counterOf(hash), p, lease)
		if err == nil {
			return res
		}
		wantUnavailable(t, err)
		<-time.After(time.Millisecond)
	}
}

// freshWindow returns the length of a window that has just begun, inside the server's
// memory, and that ends long after the test: among the lengths just below the longest,
// one that begins in a moment.
func freshWindow(t *testing.T, s *postgres.Store) limiter.Micros {
	t.Helper()
	const soon = 20 * limiter.Millisecond
	now := apply(t, s, counterOf("clock"), perWindow(1, limiter.MinWindow), lease).Now
	index := int64(now)/int64(limiter.MaxWindow) + 1
	length := (int64(now.Add(soon)) + index - 1) / index
	<-time.After(time.Duration(index*length-int64(now)) * time.Microsecond)
	return limiter.Micros(length)
}

// TestARefreshKeepsALossFromTheNextWindow lets a server forget a window in which nobody
// asks again.
func TestARefreshKeepsALossFromTheNextWindow(t *testing.T) {
	t.Parallel() // it waits for windows
	server := postgrestest.Start(t)
	s := dial(t, server)
	p := perWindow(5, 5*limiter.Second)
	grant, granted := untilGranted(t, s, counterOf("a"), p), time.Now()
	server.Restart()
	if err := s.Refresh(t.Context()); err != nil {
		t.Fatal(err)
	}
	<-time.After(time.Duration(grant.ExpiresIn)*time.Microsecond - time.Since(granted))
	if res := apply(t, s, counterOf("a"), p, lease); res.Granted != 5 {
		t.Errorf("the next window grants %d (%v), want 5", res.Granted, res.Reason)
	}
}
