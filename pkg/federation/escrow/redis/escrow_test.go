package redis

import (
	"context"
	_ "embed"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/weir-dev/weir/internal/testing/escrowtest"
	"github.com/weir-dev/weir/internal/testing/redistest"
	"github.com/weir-dev/weir/internal/testing/redistest/dial"
	"github.com/weir-dev/weir/pkg/federation/escrow"
	"github.com/weir-dev/weir/pkg/limiter"
	"github.com/weir-dev/weir/pkg/store/redis"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

//go:embed testdata/frozen.lua
var frozen string

func TestConformance(t *testing.T) {
	for name, subject := range map[string]func(testing.TB) escrowtest.Subject{
		"by the server's clock":         running,
		"by a clock that the test sets": clocked,
		"over HTTP":                     func(t testing.TB) escrowtest.Subject { return clockedBy(t, dial.OverHTTP) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			escrowtest.Run(t, func(t *testing.T) escrowtest.Subject {
				t.Parallel() // it waits for windows to end
				return subject(t)
			})
		})
	}
}

func FuzzStep(f *testing.F) { escrowtest.Fuzz(f, clocked) }

func running(t testing.TB) escrowtest.Subject {
	server := redistest.Start(t)
	e := New(dial.Server(t, server))
	after := func(loss func()) func() escrowtest.Escrow {
		return func() escrowtest.Escrow { loss(); return e }
	}
	return escrowtest.Subject{
		Escrow:  e,
		Advance: func(d limiter.Micros) { <-time.After(time.Duration(d) * time.Microsecond) },
		Break:   server.Kill,
		Keep:    map[string]func() escrowtest.Escrow{"SCRIPT FLUSH": after(server.FlushScripts)},
		Forget: map[string]func() escrowtest.Escrow{
			"kill -9 and a restart":     after(server.Restart),
			"FLUSHALL":                  after(server.Flush),
			"FLUSHALL and SCRIPT FLUSH": after(func() { server.Flush(); server.FlushScripts() }),
			"a restart from a dump":     after(func() { server.Do("SAVE"); server.Restart() }),
		},
	}
}

func clocked(t testing.TB) escrowtest.Subject { return clockedBy(t, dial.Server) }

func clockedBy(t testing.TB, reach func(testing.TB, *redistest.Server) *redis.Store) escrowtest.Subject {
	server := redistest.Start(t)
	e := newEscrow(reach(t, server), frozen)
	now := limiter.Instant(1_790_000_000_000_000)
	client := server.Client()
	set := func(at limiter.Instant) {
		now = at
		if err := client.Set(context.Background(), "clock", int64(now), 0).Err(); err != nil {
			panic(err) // a fuzz target may not use its parent
		}
	}
	set(now)
	return escrowtest.Subject{
		Escrow: e, Set: set, Break: server.Kill,
		Advance: func(d limiter.Micros) { set(now.Add(d)) },
		Forget: map[string]func() escrowtest.Escrow{
			"FLUSHALL": func() escrowtest.Escrow {
				server.Flush()
				set(now + 1)
				return e
			},
		},
	}
}

// TestAnEscrowThatNobodyAsksForIsForgotten looks at when Redis drops the key.
func TestAnEscrowThatNobodyAsksForIsForgotten(t *testing.T) {
	server := redistest.Start(t)
	e := New(dial.Server(t, server))
	if _, err := e.Apply(t.Context(), "acme/checkout", escrow.Command{Op: escrow.Peek}); err != nil {
		t.Fatal(err)
	}
	keys := server.Do("KEYS", "*").([]any)
	if len(keys) != 1 {
		t.Fatalf("the keys are %v", keys)
	}
	most := int64(limiter.MaxWindow / limiter.Second)
	if left := server.Do("TTL", keys[0]).(int64); left < most-60 || left > most {
		t.Errorf("%v is kept for %d s, want %d", keys[0], left, most)
	}
}

// TestARestrictedUserIsEnough gives the rights that the documentation names.
func TestARestrictedUserIsEnough(t *testing.T) {
	server := redistest.Start(t)
	server.Do("ACL", "SETUSER", "app", "on", ">secret", "~weir:*", "+eval", "+evalsha", "+info", "+time", "+mget", "+get", "+set",
		"+hello", "+client|setname")
	e := New(dial.Open(t, redis.Options{Addresses: []string{server.Addr}, User: "app", Password: "secret"}))
	for _, c := range []escrow.Command{
		{Op: escrow.Ask, Holder: "h"}, {Op: escrow.Take, Min: 1, Want: 1}, {Op: escrow.Release, Holder: "h"},
	} {
		if _, err := e.Apply(t.Context(), "acme/checkout", c); err != nil {
			t.Fatalf("%+v: %v", c, err)
		}
	}
}

func BenchmarkApply(b *testing.B) { escrowtest.Benchmark(b, New(dial.Server(b, redistest.Start(b)))) }
