package postgres_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/weir-dev/weir/internal/testing/postgrestest"
	"github.com/weir-dev/weir/pkg/limiter"
	"github.com/weir-dev/weir/pkg/store"
	"github.com/weir-dev/weir/pkg/store/postgres"
	"github.com/weir-dev/weir/pkg/store/storetest"
)

func TestServersThatCannotDecideAreUnavailable(t *testing.T) {
	for name, c := range map[string]struct {
		prepare func(*testing.T, *postgrestest.Server) *postgrestest.Server
		options postgres.Options
		words   []string
	}{
		"a standby": {
			func(t *testing.T, s *postgrestest.Server) *postgrestest.Server {
				apply(t, dial(t, s), counterOf("a"), perWindow(1, limiter.Second), lease)
				return postgrestest.StartIn(t, s.Backup(true))
			},
			postgres.Options{},
			[]string{"standby"},
		},
		"a standby that was never used": {
			func(t *testing.T, s *postgrestest.Server) *postgrestest.Server {
				return postgrestest.StartIn(t, s.Backup(true))
			},
			postgres.Options{},
			[]string{"standby"},
		},
		"a read-only database": {
			func(_ *testing.T, s *postgrestest.Server) *postgrestest.Server {
				s.Do("ALTER DATABASE postgres SET default_transaction_read_only = on")
				return s
			},
			postgres.Options{},
			[]string{"read-only"},
		},
		"a server without a connection left": {
			func(_ *testing.T, s *postgrestest.Server) *postgrestest.Server {
				s.Do("CREATE ROLE crowded LOGIN CONNECTION LIMIT 0")
				return s
			},
			postgres.Options{User: "crowded"},
			[]string{"max_connections"},
		},
		"a wrong password": {
			func(_ *testing.T, s *postgrestest.Server) *postgrestest.Server {
				s.Do("CREATE ROLE guarded LOGIN PASSWORD 'another'")
				s.WriteFile("pg_hba.conf", []byte("host all guarded all scram-sha-256\nhost all all all trust\n"))
				s.Do("SELECT pg_reload_conf()")
				return s
			},
			postgres.Options{User: "guarded"},
			[]string{"password"},
		},
		"an unknown database": {
			func(_ *testing.T, s *postgrestest.Server) *postgrestest.Server { return s },
			postgres.Options{Database: "elsewhere"},
			[]string{"no such database"},
		},
		"no server": {
			func(_ *testing.T, s *postgrestest.Server) *postgrestest.Server { s.Kill(); return s },
			postgres.Options{},
			[]string{"connection refused"},
		},
		"a table that somebody locked": {
			func(t *testing.T, s *postgrestest.Server) *postgrestest.Server {
				apply(t, dial(t, s), counterOf("a"), perWindow(1, limiter.Second), lease)
				s.Hold("LOCK TABLE weir.counters")
				return s
			},
			postgres.Options{},
			[]string{"in time"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel() // each waits for a server of its own
			server := c.prepare(t, postgrestest.Start(t))
			o := optionsOf(server)
			o.Password = password
			if c.options.User != "" {
				o.User = c.options.User
			}
			if c.options.Database != "" {
				o.Database = c.options.Database
			}
			s, err := postgres.Dial(o)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = s.Close() })
			_, err = s.Apply(t.Context(), counterOf("a"), perWindow(1, limiter.Second), lease)
			wantUnavailable(t, err, append(c.words, server.Addr)...)
			_, err = s.Probe(t.Context())
			wantUnavailable(t, err)
		})
	}
}

func TestControlIsAskedAboutTheAddress(t *testing.T) {
	t.Parallel()
	server := postgrestest.Start(t)
	o := optionsOf(server)
	o.Control = func(_ context.Context, _, address string, _ syscall.RawConn) error {
		if address == server.Addr {
			return &store.Failure{Why: "it may not be dialled"}
		}
		return nil
	}
	s, err := postgres.Dial(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	_, err = s.Probe(t.Context())
	wantUnavailable(t, err, "it may not be dialled")
	if plain := store.Plain(err); !strings.HasSuffix(plain.Error(), ": it may not be dialled") {
		t.Errorf("plainly: %v", plain)
	}
}

func TestADeadlineEndsTheCall(t *testing.T) {
	t.Parallel()
	server := postgrestest.Start(t)
	s, err := postgres.Dial(optionsOf(server))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	apply(t, s, counterOf("a"), perWindow(1, limiter.Second), lease)
	server.Pause()
	defer server.Resume()
	for deadline, bound := range map[time.Duration]time.Duration{
		50 * time.Millisecond: 900 * time.Millisecond,
		time.Hour:             3 * time.Second, // the store's own comes first
	} {
		ctx, cancel := context.WithTimeout(t.Context(), deadline)
		defer cancel()
		start := time.Now()
		_, err := s.Apply(ctx, counterOf("a"), perWindow(1, limiter.Second), lease)
		wantUnavailable(t, err, "in time")
		if took := time.Since(start); took > bound {
			t.Errorf("a deadline of %v ended the call after %v", deadline, took)
		}
	}
}

// TestACallThatGivesUpBreaksNoConnectionOff: a server that has much to do shall not make a new
// process for every caller that waits no longer.
func TestACallThatGivesUpBreaksNoConnectionOff(t *testing.T) {
	t.Parallel()
	server := postgrestest.Start(t)
	o := optionsOf(server)
	o.Connections = 1
	s := dialAs(t, o)
	apply(t, s, counterOf("a"), perWindow(1000, limiter.Second), lease)
	process := func() any {
		return server.Do("SELECT pid FROM pg_stat_activity WHERE application_name = 'weir'")[0][0]
	}
	before, release := process(), server.Hold("LOCK TABLE weir.counters")
	for range 3 {
		ctx, cancel := context.WithTimeout(t.Context(), 30*time.Millisecond)
		_, err := s.Apply(ctx, counterOf("a"), perWindow(1000, limiter.Second), lease)
		cancel()
		wantUnavailable(t, err, "in time")
	}
	release()
	apply(t, s, counterOf("a"), perWindow(1000, limiter.Second), lease)
	if after := process(); after != before {
		t.Errorf("process %v of the server serves in place of %v", after, before)
	}
}

// TestOneCallerNeedsOneConnection: an answer comes when its connection is free again.
func TestOneCallerNeedsOneConnection(t *testing.T) {
	t.Parallel()
	server := postgrestest.Start(t)
	s := dial(t, server)
	for range 300 {
		apply(t, s, counterOf("a"), perWindow(100_000, limiter.Second), lease)
	}
	if n := server.Do("SELECT count(*) FROM pg_stat_activity WHERE application_name = 'weir'")[0][0]; n != int64(1) {
		t.Errorf("%d connections", n)
	}
}

// TestAConnectionIsMadeForACallThatHasGivenUp: one that takes longer to make than calls are
// patient is there for the next call.
func TestAConnectionIsMadeForACallThatHasGivenUp(t *testing.T) {
	t.Parallel()
	server := postgrestest.Start(t)
	s, err := postgres.Dial(optionsOf(server))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	server.Pause()
	_, err = s.Apply(t.Context(), counterOf("a"), perWindow(1000, limiter.Second), lease)
	wantUnavailable(t, err, "in time")
	<-time.After(500 * time.Millisecond)
	server.Resume()
	made := func() bool {
		return server.Do("SELECT count(*) FROM pg_stat_activity WHERE application_name = 'weir' AND state = 'idle'")[0][0] == int64(1)
	}
	for deadline := time.Now().Add(10 * time.Second); !made(); <-time.After(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("the connection that was begun was given up")
		}
	}
}

// TestClosingDoesNotWaitForAServerThatHangs closes a store whose call is under way.
func TestClosingDoesNotWaitForAServerThatHangs(t *testing.T) {
	t.Parallel()
	server := postgrestest.Start(t)
	s := dial(t, server)
	apply(t, s, counterOf("a"), perWindow(1, limiter.Second), lease)
	server.Pause()
	defer server.Resume()
	var call sync.WaitGroup
	call.Go(func() {
		_, err := s.Apply(t.Context(), counterOf("a"), perWindow(1, limiter.Second), lease)
		wantUnavailable(t, err)
	})
	<-time.After(50 * time.Millisecond)
	start := time.Now()
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	if took := time.Since(start); took > 900*time.Millisecond {
		t.Errorf("closing took %v", took)
	}
	call.Wait()
}

// TestNoCommandIsSentTwice loses the reply of a decision.
func TestNoCommandIsSentTwice(t *testing.T) {
	t.Parallel()
	server := postgrestest.Start(t)
	link := storetest.NewLink(t, server.Addr)
	o := optionsOf(server)
	o.Address, o.Timeout = link.Addr, 30*time.Second // the machine is busy with other tests
	s := dialAs(t, o)
	p := perWindow(100, freshWindow(t, s))
	apply(t, s, counterOf("a"), p, lease)
	link.LoseReply("")
	_, err := s.Apply(t.Context(), counterOf("a"), p, lease)
	wantUnavailable(t, err)
	if used := server.Do("SELECT used[1] FROM weir.counters WHERE key = 'c/n/p/l/a'")[0][0]; used != int64(10) {
		t.Errorf("after 2 leases of 5 the server has granted %d", used)
	}
}

// TestADatabaseThatIsSerializableByDefault must not make parallel decisions fail.
func TestADatabaseThatIsSerializableByDefault(t *testing.T) {
	t.Parallel()
	server := postgrestest.Start(t)
	server.Do("ALTER DATABASE postgres SET default_transaction_isolation = serializable")
	s := dial(t, server)
	var callers sync.WaitGroup
	for range 50 {
		callers.Go(func() {
			if _, err := s.Apply(t.Context(), counterOf("a"), perWindow(1, limiter.Second), lease); err != nil {
				t.Error(err)
			}
		})
	}
	callers.Wait()
}

// TestATableOfAnotherLayoutIsAPlainError must not read as an outage, on which a policy
// may admit.
func TestATableOfAnotherLayoutIsAPlainError(t *testing.T) {
	t.Parallel()
	server := postgrestest.Start(t)
	s := dial(t, server)
	apply(t, s, counterOf("a"), perWindow(5, limiter.Second), lease)
	server.Do("ALTER TABLE weir.counters RENAME used TO spent")
	_, err := s.Apply(t.Context(), counterOf("a"), perWindow(5, limiter.Second), lease)
	if _, unavailable := errors.AsType[*store.UnavailableError](err); err == nil || unavailable {
		t.Errorf("error is %v, want a plain one", err)
	}
}
