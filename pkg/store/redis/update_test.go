package redis_test

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/weir-dev/weir/internal/testing/redistest"
	"github.com/weir-dev/weir/pkg/limiter"
	"github.com/weir-dev/weir/pkg/store"
	"github.com/weir-dev/weir/pkg/store/redis"
	"github.com/weir-dev/weir/pkg/store/storetest"
)

// count is a strategy that admits up to a limit, once and for all.
func count(limit int, admitted *bool) redis.Strategy {
	return func(old []byte, _ limiter.Instant, _ limiter.Memory) ([]byte, limiter.Micros, error) {
		n, _ := strconv.Atoi(string(old))
		if *admitted = n < limit; !*admitted {
			return nil, 0, nil
		}
		return strconv.AppendInt(nil, int64(n+1), 10), 3600 * limiter.Second, nil
	}
}

func TestParallelStrategiesAdmitExactlyTheLimit(t *testing.T) {
	t.Parallel()
	const callers, limit, stores = 200, 50, 8
	server := redistest.Start(t)
	var admitted atomic.Int64
	var wg sync.WaitGroup
	for i := range stores {
		s := dial(t, server)
		for range callers / stores {
			wg.Go(func() {
				var ok bool
				if err := s.Update(t.Context(), counterOf("race"), count(limit, &ok)); err != nil {
					t.Errorf("store %d: %v", i, err)
				}
				if ok {
					admitted.Add(1)
				}
			})
		}
	}
	wg.Wait()
	if n := admitted.Load(); n != limit {
		t.Errorf("admitted %d, want %d", n, limit)
	}
}

// TestAStrategyReceivesTheMemoryOfTheInstance loses the value in every way.
func TestAStrategyReceivesTheMemoryOfTheInstance(t *testing.T) {
	server := redistest.Start(t)
	s := dial(t, server)
	var before limiter.Instant
	for _, loss := range []struct {
		name   string
		happen func()
	}{
		{"being new", func() {}},
		{"a restart", server.Restart},
		{"a flush", server.Flush},
		{"a flush of scripts", func() { server.Flush(); server.FlushScripts() }},
	} {
		name := loss.name
		loss.happen()
		err := s.Update(t.Context(), counterOf("a"), func(old []byte, now limiter.Instant, m limiter.Memory) ([]byte, limiter.Micros, error) {
			if old != nil || m.Since <= before || m.Since > now {
				t.Errorf("after %s: memory since %d, before %d, now %d; value %q", name, m.Since, before, now, old)
			}
			before = now
			return []byte("x"), limiter.Second, nil
		})
		if err != nil {
			t.Errorf("after %s: %v", name, err)
		}
	}
}

// TestAStrategyDoesNotOutliveItsInstance promotes the server to another instance
// between the look and the write.
func TestAStrategyDoesNotOutliveItsInstance(t *testing.T) {
	server := redistest.Start(t)
	s := dial(t, server)
	tries := 0
	var since limiter.Instant
	err := s.Update(t.Context(), counterOf("a"), func(_ []byte, now limiter.Instant, m limiter.Memory) ([]byte, limiter.Micros, error) {
		if tries++; tries == 1 {
			server.Do("DEBUG", "CHANGE-REPL-ID")
			since = now
		} else if m.Since <= since {
			t.Errorf("the memory of the new instance began at %d, that of the old was asked at %d", m.Since, since)
		}
		return []byte("x"), limiter.Second, nil
	})
	if err != nil || tries != 2 {
		t.Errorf("%d tries, error %v; want 2", tries, err)
	}
}

func TestValuesThatAStrategyLeavesBehind(t *testing.T) {
	server := redistest.Start(t)
	s := dial(t, server)
	broken := errors.New("broken")
	write := func(value string, keep limiter.Micros, err error) error {
		return s.Update(t.Context(), counterOf("a"), func([]byte, limiter.Instant, limiter.Memory) ([]byte, limiter.Micros, error) {
			return []byte(value), keep, err
		})
	}
	value := func() any {
		return server.Do("EVAL", "return redis.call('GET', redis.call('KEYS', '*:value:*')[1] or 'none') or ''", 0)
	}
	if err := write("kept", 60*limiter.Second, nil); err != nil || value() != "kept" {
		t.Fatalf("left %q, error %v", value(), err)
	}
	for _, k := range server.Do("KEYS", "weir:*:value:*").([]any) {
		if ttl := server.Do("PTTL", k).(int64); ttl < 50_000 || ttl > 60_000 {
			t.Errorf("a value of a minute is kept for %d ms", ttl)
		}
	}
	if err := write("never", limiter.Second, broken); !errors.Is(err, broken) || value() != "kept" {
		t.Errorf("a strategy that fails left %q, error %v", value(), err)
	}
	var unavailable *store.UnavailableError
	if err := write("never", 0, nil); err == nil || errors.As(err, &unavailable) || value() != "kept" {
		t.Errorf("a value that is not kept left %q, error %v", value(), err)
	}
	server.Do("CONFIG", "SET", "maxmemory", "1")
	wantUnavailable(t, write("never", limiter.Second, nil), "maxmemory")
	if value() != "kept" {
		t.Errorf("a full server left %q", value())
	}
}

// TestAContendedValueIsUnavailable changes the value behind every look.
func TestAContendedValueIsUnavailable(t *testing.T) {
	server := redistest.Start(t)
	s := dial(t, server)
	client := server.Client()
	partition, _, _ := strings.Cut(keyOf(t, server, s, "a"), "}")
	tries := 0
	err := s.Update(t.Context(), counterOf("a"), func([]byte, limiter.Instant, limiter.Memory) ([]byte, limiter.Micros, error) {
		tries++
		client.Append(context.Background(), partition+"}:value:c/n/p/l/a", "x")
		return []byte("x"), limiter.Second, nil
	})
	wantUnavailable(t, err, "others changed the value")
	if !errors.Is(err, redis.ErrContended) || tries < 10 {
		t.Errorf("after %d tries: %v", tries, err)
	}
}

// TestNoTransactionIsRunTwice loses the reply of one under a client that is set to
// retry.
func TestNoTransactionIsRunTwice(t *testing.T) {
	server := redistest.Start(t)
	link := storetest.NewLink(t, server.Addr)
	s := open(t, redis.Options{Addresses: []string{link.Addr}})
	tries := 0
	err := s.Update(t.Context(), counterOf("a"), func([]byte, limiter.Instant, limiter.Memory) ([]byte, limiter.Micros, error) {
		tries++
		link.LoseReply("exec")
		return []byte("x"), limiter.Second, nil
	})
	wantUnavailable(t, err)
	if tries != 1 || calls(server, "exec") != 1 {
		t.Errorf("%d tries, %d transactions; want 1", tries, calls(server, "exec"))
	}
}
