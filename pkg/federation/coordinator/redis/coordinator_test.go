package redis

import (
	"context"
	_ "embed"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/weir-dev/weir/internal/testing/budgettest"
	"github.com/weir-dev/weir/internal/testing/redistest"
	"github.com/weir-dev/weir/internal/testing/redistest/dial"
	"github.com/weir-dev/weir/pkg/federation/ledger"
	"github.com/weir-dev/weir/pkg/limiter"
	"github.com/weir-dev/weir/pkg/store/redis"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

//go:embed testdata/frozen.lua
var frozen string

func TestConformance(t *testing.T) {
	for name, subject := range map[string]func(*testing.T) budgettest.Subject{
		"by the server's clock":         running,
		"by a clock that the test sets": func(t *testing.T) budgettest.Subject { return clocked(t) },
		"over HTTP":                     func(t *testing.T) budgettest.Subject { return clockedBy(t, dial.OverHTTP) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			budgettest.Run(t, func(t *testing.T) budgettest.Subject {
				t.Parallel() // it waits for windows
				return subject(t)
			})
		})
	}
}

func FuzzStep(f *testing.F) { budgettest.Fuzz(f, clocked) }

func running(t *testing.T) budgettest.Subject {
	server := redistest.Start(t)
	s := subject(server, New(dial.Server(t, server)))
	s.Advance = func(d limiter.Micros) { <-time.After(time.Duration(d) * time.Microsecond) }
	after := func(loss func()) func() budgettest.Coordinator {
		return func() budgettest.Coordinator { loss(); return s.Coordinator }
	}
	s.Forget = map[string]func() budgettest.Coordinator{
		"kill -9 and a restart":     after(server.Restart),
		"FLUSHALL":                  after(server.Flush),
		"FLUSHALL and SCRIPT FLUSH": after(func() { server.Flush(); server.FlushScripts() }),
		"a restart from a dump":     after(func() { server.Do("SAVE"); server.Restart() }),
	}
	return s
}

// clocked returns a subject whose clock the test sets.
func clocked(t testing.TB) budgettest.Subject { return clockedBy(t, dial.Server) }

func clockedBy(t testing.TB, reach func(testing.TB, *redistest.Server) *redis.Store) budgettest.Subject {
	server := redistest.Start(t)
	s := subject(server, newCoordinator(reach(t, server), frozen))
	client := server.Client()
	var now limiter.Instant
	s.Set = func(at limiter.Instant) {
		now = at
		if err := client.Set(context.Background(), "clock", int64(now), 0).Err(); err != nil {
			panic(err) // a fuzz target may not use its parent
		}
	}
	s.Set(1_790_000_000_000_000)
	s.Advance = func(d limiter.Micros) { s.Set(now.Add(d)) }
	s.Forget = map[string]func() budgettest.Coordinator{
		"FLUSHALL": func() budgettest.Coordinator {
			if err := client.FlushAll(context.Background()).Err(); err != nil {
				panic(err)
			}
			s.Set(now)
			return s.Coordinator
		},
	}
	return s
}

func subject(server *redistest.Server, c *Coordinator) budgettest.Subject {
	client := server.Client()
	return budgettest.Subject{
		Coordinator: c,
		Memory: func(id string) ledger.Memory {
			m, err := memoryOf(client, id)
			if err != nil {
				panic(err)
			}
			return m
		},
		Keep: map[string]func() budgettest.Coordinator{
			"SCRIPT FLUSH":        func() budgettest.Coordinator { server.FlushScripts(); return c },
			"another coordinator": func() budgettest.Coordinator { return &Coordinator{c.store, c.step, c.observe} },
		},
		Break:   server.Kill,
		Suspend: func() func() { server.Pause(); return server.Resume },
	}
}
