package postgres_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/weir-dev/weir/internal/testing/postgrestest"
	"github.com/weir-dev/weir/pkg/limiter"
	"github.com/weir-dev/weir/pkg/store"
	"github.com/weir-dev/weir/pkg/store/postgres"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var lease = limiter.Command{Min: 1, Want: 5}

func counterOf(hash string) store.Key {
	return store.Key{Scope: store.Scope{Cluster: "c", Namespace: "n", Policy: "p", Limit: "l"}, Hash: hash}
}

func perWindow(limit int64, window limiter.Micros) limiter.Params {
	return limiter.Params{Generation: 1, Rates: []limiter.Rate{{Limit: limit, Window: window}}}
}

// dial returns a store of the superuser that is closed when the test ends.
func dial(t testing.TB, server *postgrestest.Server) *postgres.Store {
	t.Helper()
	return dialAs(t, optionsOf(server))
}

func optionsOf(server *postgrestest.Server) postgres.Options {
	return postgres.Options{Address: server.Addr, Database: postgrestest.Database, User: postgrestest.User}
}

func dialAs(t testing.TB, o postgres.Options) *postgres.Store {
	t.Helper()
	s, err := postgres.DialPatiently(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

func apply(t *testing.T, s *postgres.Store, key store.Key, p limiter.Params, c limiter.Command) limiter.Result {
	t.Helper()
	res, err := s.Apply(t.Context(), key, p, c)
	if err != nil {
		t.Fatalf("Apply: %v", err)
	}
	return res
}

// untilGranted waits for the first window inside the store's memory.
func untilGranted(t *testing.T, s *postgres.Store, key store.Key, p limiter.Params) limiter.Result {
	t.Helper()
	for {
		res := apply(t, s, key, p, lease)
		if res.Granted > 0 {
			return res
		}
		<-time.After(time.Duration(res.RetryAfter) * time.Microsecond)
	}
}

// wantUnavailable fails unless err is a *store.UnavailableError that says all of
// words, and no password.
func wantUnavailable(t *testing.T, err error, words ...string) {
	t.Helper()
	if _, ok := errors.AsType[*store.UnavailableError](err); !ok {
		t.Fatalf("error is %v (%T), want a *store.UnavailableError", err, err)
	}
	for _, w := range words {
		if !strings.Contains(err.Error(), w) {
			t.Errorf("error %q does not say %q", err, w)
		}
	}
	if strings.Contains(err.Error(), password) {
		t.Errorf("error %q shows the password", err)
	}
}

const password = "open-sesame"

func TestOptionsThatCannotWorkAreRefused(t *testing.T) {
	for name, o := range map[string]postgres.Options{
		"no address":        {User: "u"},
		"no host":           {Address: ":5432", User: "u"},
		"no port number":    {Address: "db:http", User: "u"},
		"port 0":            {Address: "db:0", User: "u"},
		"no user":           {Address: "db:5432"},
		"negative number":   {Address: "db:5432", User: "u", Connections: -1},
		"port out of range": {Address: "db:70000", User: "u"},
	} {
		o.Password = password
		if s, err := postgres.Dial(o); err == nil {
			_ = s.Close()
			t.Errorf("%s: no error", name)
		} else if strings.Contains(err.Error(), password) {
			t.Errorf("%s: error %q shows the password", name, err)
		}
	}
}

func TestEndedCountersAreDroppedByARefresh(t *testing.T) {
	t.Parallel() // it waits for windows
	server := postgrestest.Start(t)
	s := dial(t, server)
	for _, hash := range []string{"a", "b", "c"} {
		apply(t, s, counterOf(hash), perWindow(5, limiter.MinWindow), lease)
	}
	apply(t, s, counterOf("long"), perWindow(5, limiter.MaxWindow), lease)
	<-time.After(300 * time.Millisecond)
	if err := s.Refresh(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := server.Do("SELECT string_agg(key, ' ') FROM weir.counters")[0][0]; got != "c/n/p/l/long" {
		t.Errorf("the counters are %v, want the one whose window is open", got)
	}
}

// TestAClockSetBackGrantsNothing lets the server have dropped counters at a later
// instant than its clock shows.
func TestAClockSetBackGrantsNothing(t *testing.T) {
	t.Parallel()
	server := postgrestest.Start(t)
	s := dial(t, server)
	bucket := limiter.Params{Algorithm: limiter.TokenBucket, Generation: 1, Rates: []limiter.Rate{{Limit: 10, Window: limiter.MinWindow}}}
	untilGranted(t, s, counterOf("window"), perWindow(5, limiter.MinWindow))
	untilGranted(t, s, counterOf("bucket"), bucket)
	server.Do("UPDATE weir.memory SET latest = latest + 60000000, writer = pg_current_xact_id()::xid")
	for hash, p := range map[string]limiter.Params{
		"window": perWindow(5, limiter.MinWindow), "bucket": bucket, "never asked": perWindow(5, limiter.MinWindow),
	} {
		if res := apply(t, s, counterOf(hash), p, lease); res.Reason != limiter.ClockBehind || res.RetryAfter <= 0 {
			t.Errorf("%s: got %v, retry after %d", hash, res.Reason, res.RetryAfter)
		}
	}
}

// TestTheClockIsReadUnderTheLock lets decisions wait for their counter.
func TestTheClockIsReadUnderTheLock(t *testing.T) {
	t.Parallel()
	server := postgrestest.Start(t)
	s := dial(t, server)
	p := perWindow(100, freshWindow(t, s))
	apply(t, s, counterOf("a"), p, lease)
	for name, c := range map[string]limiter.Command{"take": lease, "peek": {Op: limiter.Peek, Min: 1, Want: 1}} {
		release := server.Hold("SELECT 1 FROM weir.counters WHERE key = 'c/n/p/l/a' FOR UPDATE")
		answer := make(chan limiter.Result)
		go func() {
			res, err := s.Apply(t.Context(), counterOf("a"), p, c)
			if err != nil {
				t.Error(err)
			}
			answer <- res
		}()
		for server.Do("SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'")[0][0] == int64(0) {
			<-time.After(time.Millisecond)
		}
		released := limiter.Instant(server.Do("SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint")[0][0].(int64))
		release()
		if res := <-answer; res.Now < released {
			t.Errorf("a %s decided at %d, before it had its counter at %d", name, res.Now, released)
		}
	}
}

func TestProbeGradesTheServer(t *testing.T) {
	t.Parallel() // it starts a standby
	server := postgrestest.Start(t)
	s := dial(t, server)
	grade := func() store.Guarantee {
		t.Helper()
		f, err := s.Probe(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return f.Volatile.Guarantee
	}
	if g := grade(); g != (store.Guarantee{Grade: store.Hard}) {
		t.Errorf("alone: %+v", g)
	}
	postgrestest.StartIn(t, server.Backup(true))
	for grade().Grade == store.Hard {
		<-time.After(10 * time.Millisecond)
	}
	if g := grade(); g.Grade != store.HardExceptSplitBrain || !strings.Contains(g.Reason, "1 standbys") {
		t.Errorf("with a standby: %+v", g)
	}
	server.Do("ALTER TABLE weir.memory SET LOGGED")
	if g := grade(); g.Grade != store.BestEffort || !strings.Contains(g.Reason, "SET UNLOGGED") {
		t.Errorf("with a logged table: %+v", g)
	}
}
