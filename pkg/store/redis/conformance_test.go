package redis_test

import (
	"strings"
	"testing"
	"time"

	"github.com/weir-dev/weir/internal/testing/redistest"
	"github.com/weir-dev/weir/pkg/limiter"
	"github.com/weir-dev/weir/pkg/store/redis"
	"github.com/weir-dev/weir/pkg/store/storetest"
)

// dial returns a store on a server that is closed when the test ends.
func dial(t testing.TB, server *redistest.Server) *redis.Store {
	return open(t, redis.Options{Addresses: []string{server.Addr}})
}

// open returns a store that is closed when the test ends.
func open(t testing.TB, o redis.Options) *redis.Store {
	t.Helper()
	s, err := redis.Open(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

func TestConformance(t *testing.T) {
	t.Parallel()
	conform(t, func(_ *testing.T, server *redistest.Server) *redis.Store {
		return redis.NewShifted(server.Client(), server.Addr)
	})
}

func TestConformanceOverHTTP(t *testing.T) {
	t.Parallel()
	conform(t, func(t *testing.T, server *redistest.Server) *redis.Store {
		return overHTTP(t, server.StartBridge(), redis.OpenShiftedREST)
	})
}

func conform(t *testing.T, open func(t *testing.T, server *redistest.Server) *redis.Store) {
	storetest.Run(t, func(t *testing.T) storetest.Subject {
		t.Parallel() // they wait for windows
		server := redistest.Start(t)
		s := open(t, server)
		after := func(loss func()) func() storetest.Store {
			return func() storetest.Store { loss(); return s }
		}
		return storetest.Subject{
			Store: s,
			// The clock is the server's, so it can only be waited for.
			Advance:  func(d limiter.Micros) { <-time.After(time.Duration(d) * time.Microsecond) },
			Counters: func() int { return counters(server) },
			Late:     limiter.Second, // LISTED_TOGETHER of lua/list.lua
			Refresh:  func() { refresh(t, s) },
			Break:    server.Kill,
			StepBack: func(d limiter.Micros) { server.Do("SET", "shift", -int64(d)) },
			Forget: map[string]func() storetest.Store{
				"restart":           after(server.Restart),
				"flush":             after(server.Flush),
				"flush of a script": after(func() { server.Flush(); server.FlushScripts() }),
			},
		}
	})
}

// counters returns how many keys of the server are counters.
func counters(server *redistest.Server) int {
	n := 0
	for _, k := range server.Do("KEYS", "weir:*").([]any) {
		if name := k.(string); !strings.HasSuffix(name, ":memory") && !strings.HasSuffix(name, ":ends") {
			n++
		}
	}
	return n
}
