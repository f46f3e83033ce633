package redis

import (
	"context"
	_ "embed"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/weir-dev/weir/internal/testing/pooltest"
	"github.com/weir-dev/weir/internal/testing/redistest"
	"github.com/weir-dev/weir/internal/testing/redistest/dial"
	"github.com/weir-dev/weir/pkg/concurrency/pool"
	"github.com/weir-dev/weir/pkg/limiter"
	"github.com/weir-dev/weir/pkg/store/redis"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

//go:embed testdata/frozen.lua
var frozen string

func TestConformance(t *testing.T) {
	for name, subject := range map[string]func(*testing.T) pooltest.Subject{
		"by the server's clock":         running,
		"by a clock that the test sets": clocked,
		"over HTTP":                     overHTTP,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pooltest.Run(t, subject)
		})
	}
}

func running(t *testing.T) pooltest.Subject {
	t.Parallel() // it waits for shares to expire
	server := redistest.Start(t)
	c := New(dial.Server(t, server))
	return pooltest.Subject{
		Coordinator: c,
		Advance:     func(d limiter.Micros) { <-time.After(time.Duration(d) * time.Microsecond) },
		Forget:      losses(server, c),
		Keep:        keeps(server, c),
		Break:       server.Kill,
	}
}

func clocked(t *testing.T) pooltest.Subject {
	t.Parallel()
	return frozenSubject(t)
}

func overHTTP(t *testing.T) pooltest.Subject {
	t.Parallel()
	return frozenSubjectBy(t, dial.OverHTTP)
}

func FuzzStep(f *testing.F) { pooltest.Fuzz(f, frozenSubject) }

func frozenSubject(t testing.TB) pooltest.Subject { return frozenSubjectBy(t, dial.Server) }

func frozenSubjectBy(t testing.TB, reach func(testing.TB, *redistest.Server) *redis.Store) pooltest.Subject {
	server := redistest.Start(t)
	c := newCoordinator(reach(t, server), frozen)
	now := limiter.Instant(1_790_000_000_000_000)
	client := server.Client()
	set := func(at limiter.Instant) {
		now = at
		if err := client.Set(context.Background(), "clock", int64(now), 0).Err(); err != nil {
			panic(err) // a fuzz target may not use its parent
		}
	}
	set(now)
	return pooltest.Subject{
		Coordinator: c, Set: set,
		Advance: func(d limiter.Micros) { set(now.Add(d)) },
		Break:   server.Kill,
		Keep:    keeps(server, c),
		Forget: map[string]func() pooltest.Coordinator{
			"FLUSHALL": func() pooltest.Coordinator {
				server.Flush()
				set(now)
				return c
			},
		},
	}
}

func losses(server *redistest.Server, c *Coordinator) map[string]func() pooltest.Coordinator {
	after := func(loss func()) func() pooltest.Coordinator {
		return func() pooltest.Coordinator { loss(); return c }
	}
	return map[string]func() pooltest.Coordinator{
		"kill -9 and a restart":     after(server.Restart),
		"FLUSHALL":                  after(server.Flush),
		"FLUSHALL and SCRIPT FLUSH": after(func() { server.Flush(); server.FlushScripts() }),
		"a restart from a dump":     after(func() { server.Do("SAVE"); server.Restart() }),
	}
}

func keeps(server *redistest.Server, c *Coordinator) map[string]func() pooltest.Coordinator {
	return map[string]func() pooltest.Coordinator{
		"SCRIPT FLUSH": func() pooltest.Coordinator { server.FlushScripts(); return c },
	}
}

// TestAPoolWithAMissingPartBeginsAgain deletes what an eviction may.
func TestAPoolWithAMissingPartBeginsAgain(t *testing.T) {
	server := redistest.Start(t)
	c := New(dial.Server(t, server))
	p := pool.Params{Min: 6, Max: 6, Initial: 6, TTL: limiter.Second, Quarantine: limiter.Second, Generation: 1}
	web := pool.Key{Cluster: "c", Namespace: "n", Name: "web"}
	var before pool.Grant
	for i, suffix := range suffixes {
		cmd := pool.Command{Op: pool.Beat, Holder: "a", Seq: int64(1 + i), Limit: 5}
		g, err := c.Apply(t.Context(), web, p, cmd)
		if err != nil {
			t.Fatal(err)
		}
		if g.Term <= before.Term || g.Holders != 1 || g.Quarantined == 0 {
			t.Errorf("got %+v after a part of %+v was lost", g, before)
		}
		before = g
		keys := server.Do("KEYS", "weir:*pool:c/n/web"+suffix).([]any)
		if len(keys) != 1 {
			t.Fatalf("the keys that end in %q are %v", suffix, keys)
		}
		server.Do("DEL", keys[0])
	}
}

// TestAPoolThatNobodyAsksForIsForgotten looks at when Redis drops the keys.
func TestAPoolThatNobodyAsksForIsForgotten(t *testing.T) {
	server := redistest.Start(t)
	c := New(dial.Server(t, server))
	p := pool.Params{Min: 6, Max: 6, Initial: 6, TTL: limiter.Second, Quarantine: limiter.Second, Generation: 1}
	web := pool.Key{Cluster: "c", Namespace: "n", Name: "web"}
	for seq := range int64(4) { // keys come and go
		cmd := pool.Command{Op: pool.Beat, Holder: "a", Seq: 1 + seq, InFlight: 8 * (seq % 2), Peak: 8, Limit: 5 * (seq % 2)}
		if _, err := c.Apply(t.Context(), web, p, cmd); err != nil {
			t.Fatal(err)
		}
	}
	keys := server.Do("KEYS", "weir:*").([]any)
	if len(keys) != len(suffixes) {
		t.Errorf("the keys are %v", keys)
	}
	for _, key := range keys {
		if left := server.Do("TTL", key).(int64); left <= int64(pool.MaxTTL/limiter.Second) || left > 2*int64(pool.MaxTTL/limiter.Second) {
			t.Errorf("%v is kept for %d s", key, left)
		}
	}
}

// TestARestrictedUserIsEnough gives the rights that the documentation names.
func TestARestrictedUserIsEnough(t *testing.T) {
	server := redistest.Start(t)
	server.Do("ACL", "SETUSER", "app", "on", ">secret", "~weir:*", "+eval", "+evalsha", "+info", "+time", "+mget", "+get", "+set",
		"+hello", "+client|setname", "+hget", "+hset", "+hdel", "+zadd", "+zrem", "+zrange", "+zcard", "+zcount", "+del", "+pexpireat")
	c := New(dial.Open(t, redis.Options{Addresses: []string{server.Addr}, User: "app", Password: "secret"}))
	p := pool.Params{
		Min: 6, Max: 6, Initial: 6, TTL: limiter.Second, Quarantine: limiter.Second, Generation: 1, Allocation: pool.DemandProportional,
	}
	for i, holder := range []string{"a", "b", "c"} {
		for _, cmd := range []pool.Command{
			{Op: pool.Beat, Holder: holder, Seq: 1},
			{Op: pool.Beat, Holder: holder, Seq: 2, InFlight: 3, Peak: 3, Limit: int64(5 + i)},
			{Op: pool.Leave, Holder: "a", Seq: 3},
		} {
			if _, err := c.Apply(t.Context(), pool.Key{Cluster: "c"}, p, cmd); err != nil {
				t.Fatalf("%+v: %v", cmd, err)
			}
		}
	}
}
