package redis_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/weir-dev/weir/internal/testing/redistest"
	"github.com/weir-dev/weir/pkg/limiter"
	"github.com/weir-dev/weir/pkg/store/redis"
)

// TestARefreshKeepsALossFromTheNextWindow lets a server forget an exhausted window
// in which nobody asks again. The counters are in many partitions.
func TestARefreshKeepsALossFromTheNextWindow(t *testing.T) {
	for name, lose := range map[string]func(*redistest.Server){
		"flush":             (*redistest.Server).Flush,
		"restart":           (*redistest.Server).Restart,
		"flush of a script": func(s *redistest.Server) { s.Flush(); s.FlushScripts() },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel() // it waits for windows
			server := redistest.Start(t)
			s := dial(t, server)
			p := perWindow(lease.Want, 4*limiter.Second)
			untilGranted(t, s, counterOf("first"), p)
			exhausted := apply(t, s, counterOf("first"), p, lease)
			received := time.Now()
			if exhausted.Reason != limiter.Exhausted {
				t.Fatalf("got %v, want an exhausted window", exhausted.Reason)
			}
			lose(server)
			refresh(t, s)

			left := exhausted.RetryAfter - limiter.Micros(time.Since(received).Microseconds())
			if left <= 0 {
				t.Fatal("the window ended before the refresh: the test shows nothing")
			}
			<-time.After(time.Duration(left) * time.Microsecond) // a decision would notice the loss, too
			for i := range 100 {
				if res := apply(t, s, counterOf(fmt.Sprint(i)), p, lease); res.Granted != lease.Want {
					t.Errorf("counter %d: the next window grants %d (%v), want %d", i, res.Granted, res.Reason, lease.Want)
				}
			}
		})
	}
}

func TestARefreshOfAKnownInstanceIsTwoCalls(t *testing.T) {
	server := redistest.Start(t)
	s := dial(t, server)
	refresh(t, s)
	if n := guards(server); n != 64 {
		t.Fatalf("%d partitions know since when they remember, want 64", n)
	}
	server.Do("CONFIG", "RESETSTAT")
	refresh(t, s)
	if sha, text := calls(server, "evalsha"), calls(server, "eval"); sha != 2 || text != 0 {
		t.Errorf("%d EVALSHA and %d EVAL, want 2 and 0", sha, text)
	}
}

// TestRefreshesReachEveryPartition leaves one partition out, as a call that was cut
// off may.
func TestRefreshesReachEveryPartition(t *testing.T) {
	server := redistest.Start(t)
	s := dial(t, server)
	refresh(t, s)
	for _, p := range []int{0, 31, 63} {
		server.Do("DEL", fmt.Sprintf("weir:{%d}:memory", p))
		for range 64 {
			refresh(t, s)
		}
		if n := guards(server); n != 64 {
			t.Fatalf("partition %d was not reached", p)
		}
	}
}

func TestARefreshOfAServerThatIsAwayIsUnavailable(t *testing.T) {
	server := redistest.Start(t)
	s := dial(t, server)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	wantUnavailable(t, s.Refresh(ctx))
	server.Kill()
	wantUnavailable(t, s.Refresh(t.Context()), server.Addr)
}

func refresh(t *testing.T, s *redis.Store) {
	t.Helper()
	if err := s.Refresh(t.Context()); err != nil {
		t.Fatalf("Refresh: %v", err)
	}
}

// guards returns how many partitions know since when they remember.
func guards(server *redistest.Server) int {
	return len(server.Do("KEYS", "weir:*:memory").([]any))
}
