package redis_test

import (
	"context"
	"encoding/binary"
	"errors"
	"flag"
	"strings"
	"testing"
	"time"

	goredis "github.com/redis/go-redis/v9"
	"go.uber.org/goleak"

	"github.com/weir-dev/weir/internal/testing/redistest"
	"github.com/weir-dev/weir/pkg/limiter"
	"github.com/weir-dev/weir/pkg/store"
	"github.com/weir-dev/weir/pkg/store/redis"
	"github.com/weir-dev/weir/pkg/store/storetest"
)

// TestMain lets more tests run at once than there are processors: they wait for
// windows most of the time.
func TestMain(m *testing.M) {
	if err := flag.Set("test.parallel", "8"); err != nil {
		panic(err)
	}
	goleak.VerifyTestMain(m)
}

var lease = limiter.Command{Min: 1, Want: 5}

func counterOf(hash string) store.Key {
	return store.Key{Scope: store.Scope{Cluster: "c", Namespace: "n", Policy: "p", Limit: "l"}, Hash: hash}
}

func perWindow(limit int64, window limiter.Micros) limiter.Params {
	return limiter.Params{Generation: 1, Rates: []limiter.Rate{{Limit: limit, Window: window}}}
}

func apply(t *testing.T, s *redis.Store, key store.Key, p limiter.Params, c limiter.Command) limiter.Result {
	t.Helper()
	res, err := s.Apply(t.Context(), key, p, c)
	if err != nil {
		t.Fatalf("Apply: %v", err)
	}
	return res
}

// untilGranted waits for the first window inside the store's memory.
func untilGranted(t *testing.T, s *redis.Store, key store.Key, p limiter.Params) limiter.Result {
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
// words.
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
}

func TestServersThatCannotDecideAreUnavailable(t *testing.T) {
	for name, c := range map[string]struct {
		prepare func(*redistest.Server)
		words   []string
	}{
		"a replica": {
			func(r *redistest.Server) { r.Do("REPLICAOF", "127.0.0.1", "1") },
			[]string{"replica"},
		},
		"a full memory": {
			func(r *redistest.Server) { r.Do("CONFIG", "SET", "maxmemory", "1") },
			[]string{"maxmemory"},
		},
		"a password": {
			func(r *redistest.Server) { r.Do("CONFIG", "SET", "requirepass", "secret") },
			[]string{"password"},
		},
		"an ACL that forbids scripts": {
			func(r *redistest.Server) { r.Do("ACL", "SETUSER", "default", "-evalsha", "-eval") },
			[]string{"ACL"},
		},
		"too few replicas": {
			func(r *redistest.Server) { r.Do("CONFIG", "SET", "min-replicas-to-write", "1") },
			[]string{"min-replicas-to-write"},
		},
		"no server": {
			func(r *redistest.Server) { r.Kill() },
			[]string{"connection refused"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			server := redistest.Start(t)
			c.prepare(server)
			s := dial(t, server)
			_, err := s.Apply(t.Context(), counterOf("a"), perWindow(1, limiter.Second), lease)
			wantUnavailable(t, err, append(c.words, server.Addr)...)
			if _, err := s.Probe(t.Context()); name != "a full memory" || err != nil {
				wantUnavailable(t, err)
			}
			if err != nil && strings.Contains(err.Error(), "secret") {
				t.Errorf("error %q shows the password", err)
			}
		})
	}
}

// TestAFullMemoryLeavesNoHalfDecision fills the server inside an open window: the
// decision that would have opened the next one must not leave a trace.
func TestAFullMemoryLeavesNoHalfDecision(t *testing.T) {
	server := redistest.Start(t)
	s := dial(t, server)
	untilGranted(t, s, counterOf("a"), perWindow(5, limiter.MinWindow))
	server.Do("CONFIG", "SET", "maxmemory", "1")
	before := server.Do("DEBUG", "DIGEST")
	_, err := s.Apply(t.Context(), counterOf("new"), perWindow(5, limiter.MaxWindow), lease)
	wantUnavailable(t, err, "maxmemory")
	if after := server.Do("DEBUG", "DIGEST"); after != before {
		t.Error("the refused call changed the data")
	}
	server.Do("CONFIG", "SET", "maxmemory", "0")
	untilGranted(t, s, counterOf("new"), perWindow(5, limiter.MinWindow))
}

func TestADeadlineEndsTheCall(t *testing.T) {
	server := redistest.Start(t)
	s := dial(t, server)
	apply(t, s, counterOf("a"), perWindow(1, limiter.Second), lease)
	server.Pause()
	defer server.Resume()
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	start := time.Now()
	_, err := s.Apply(ctx, counterOf("a"), perWindow(1, limiter.Second), lease)
	wantUnavailable(t, err)
	if took := time.Since(start); took > 900*time.Millisecond {
		t.Errorf("a deadline of 50 ms ended the call after %v", took)
	}
}

// TestNoCommandIsSentTwice loses the reply of a decision under a client that is
// set to retry.
func TestNoCommandIsSentTwice(t *testing.T) {
	server := redistest.Start(t)
	link := storetest.NewLink(t, server.Addr)
	client := goredis.NewClient(&goredis.Options{Addr: link.Addr, MaxRetries: 5})
	s := redis.New(client, server.Addr)
	t.Cleanup(func() { _ = s.Close() })
	apply(t, s, counterOf("a"), perWindow(1, limiter.Second), lease)

	server.Do("CONFIG", "RESETSTAT")
	link.LoseReply("eval")
	_, err := s.Apply(t.Context(), counterOf("a"), perWindow(1, limiter.Second), lease)
	wantUnavailable(t, err)
	if n := calls(server, "evalsha"); n != 1 {
		t.Errorf("the server got the command %d times", n)
	}
}

func TestALostScriptCacheCostsNoError(t *testing.T) {
	server := redistest.Start(t)
	s := dial(t, server)
	apply(t, s, counterOf("a"), perWindow(1, limiter.Second), lease)
	server.FlushScripts()
	server.Do("CONFIG", "RESETSTAT")
	for range 3 {
		apply(t, s, counterOf("a"), perWindow(1, limiter.Second), lease)
	}
	if sha, text := calls(server, "evalsha"), calls(server, "eval"); sha != 3 || text != 1 {
		t.Errorf("%d EVALSHA and %d EVAL for 3 decisions, want 3 and 1", sha, text)
	}
}

// TestAPromotionForgetsUnreplicatedGrants promotes a replica that missed the
// grants of an open window.
func TestAPromotionForgetsUnreplicatedGrants(t *testing.T) {
	t.Parallel() // it waits for windows
	primary, replica := redistest.Start(t), redistest.Start(t)
	host, port, _ := strings.Cut(primary.Addr, ":")
	replica.Do("REPLICAOF", host, port)
	for !strings.Contains(replica.Do("INFO", "replication").(string), "master_link_status:up") {
		<-time.After(10 * time.Millisecond)
	}
	old, promoted := dial(t, primary), dial(t, replica)
	p := perWindow(5, 4*limiter.Second)
	untilGranted(t, old, counterOf("begin"), p)
	if n, ok := primary.Do("WAIT", "1", "5000").(int64); !ok || n != 1 {
		t.Fatalf("the replica did not follow: %v", n)
	}
	replica.Pause()
	primary.Do("CLIENT", "KILL", "TYPE", "replica") // from here on the replica misses everything
	grant := apply(t, old, counterOf("a"), p, lease)
	primary.Kill()
	replica.Resume()
	replica.Do("REPLICAOF", "NO", "ONE")

	res := apply(t, promoted, counterOf("a"), p, lease)
	if !res.Windows.SameWindows(grant.Windows) {
		t.Fatal("the window ended before the replica was asked: the test shows nothing")
	}
	if res.Granted > 0 {
		t.Errorf("the promoted replica grants %d of a window from which %d were granted", res.Granted, grant.Granted)
	}
	if res := untilGranted(t, promoted, counterOf("a"), p); res.Granted != 5 {
		t.Errorf("a later window grants %d, want 5", res.Granted)
	}
}

// TestARestoredBackupForgetsLaterGrants restarts a server from a dump that is
// older than the last grant of an open window.
func TestARestoredBackupForgetsLaterGrants(t *testing.T) {
	t.Parallel() // it waits for a window
	server := redistest.Start(t)
	s := dial(t, server)
	p := perWindow(10, 4*limiter.Second)
	untilGranted(t, s, counterOf("a"), p)
	server.Do("SAVE")
	grant := apply(t, s, counterOf("a"), p, lease)
	server.Restart()
	res := apply(t, s, counterOf("a"), p, lease)
	if !res.Windows.SameWindows(grant.Windows) {
		t.Fatal("the window ended before the server was back: the test shows nothing")
	}
	if res.Granted > 0 || res.Windows.Open[0].Granted != 5 {
		t.Errorf("the restored server grants %d on top of %d, and knows of %d",
			res.Granted, grant.Windows.Open[0].Granted, res.Windows.Open[0].Granted)
	}
}

// TestOneCallBeginsEveryPartition restarts a server and lets one key notice it.
// Keys of other partitions, idle until then, must not pay in a later window.
func TestOneCallBeginsEveryPartition(t *testing.T) {
	server := redistest.Start(t)
	s := dial(t, server)
	p := perWindow(5, limiter.MinWindow)
	apply(t, s, counterOf("a"), p, lease)
	if n := len(server.Do("KEYS", "weir:*:memory").([]any)); n != 64 {
		t.Fatalf("%d partitions know since when they remember, want 64", n)
	}
	server.Do("CONFIG", "RESETSTAT")
	apply(t, s, counterOf("a"), p, lease)
	if n := calls(server, "eval"); n != 0 {
		t.Errorf("a call that met no new instance stamped %d partitions", n)
	}
}

func TestKeysOfACounterShareAHashTag(t *testing.T) {
	server := redistest.Start(t)
	s := dial(t, server)
	apply(t, s, counterOf("a"), perWindow(5, limiter.Second), lease)
	for _, k := range server.Do("KEYS", "weir:*c/n/p/l/a").([]any) {
		tag, _, ok := strings.Cut(strings.TrimPrefix(k.(string), "weir:{"), "}")
		if !ok {
			t.Fatalf("key %q has no hash tag", k)
		}
		if n := server.Do("EXISTS", "weir:{"+tag+"}:memory").(int64); n != 1 {
			t.Errorf("no guard beside %q", k)
		}
	}
}

func TestCountersExpireAndGuardsDoNot(t *testing.T) {
	server := redistest.Start(t)
	s := dial(t, server)
	hour := limiter.Rate{Limit: 5, Window: 3600 * limiter.Second}
	for name, p := range map[string]limiter.Params{
		"a window":         {Rates: []limiter.Rate{hour}},
		"two windows":      {Rates: []limiter.Rate{hour, {Limit: 7, Window: 60 * limiter.Second}}},
		"a sliding window": {Algorithm: limiter.SlidingWindow, Rates: []limiter.Rate{hour}, Buckets: 6},
		"a token bucket":   {Algorithm: limiter.TokenBucket, Rates: []limiter.Rate{hour}},
		"tenants":          {Rates: []limiter.Rate{hour}, Fairness: limiter.Fairness{Default: 1}},
	} {
		for range 3 { // the later ones find a counter
			apply(t, s, counterOf(name), p, limiter.Command{Min: 1, Want: 1, First: true})
		}
	}
	for range 64 { // it is not added to the decisions
		refresh(t, s)
	}
	for _, k := range server.Do("KEYS", "*").([]any) {
		ttl := server.Do("PTTL", k).(int64)
		if guard := strings.HasSuffix(k.(string), ":memory"); guard != (ttl == -1) {
			t.Errorf("%q lives for %d ms", k, ttl)
		}
	}
}

// TestAClockSetBackGrantsNothing rewrites the guard as if the server had served a
// later instant before its clock was set back.
func TestAClockSetBackGrantsNothing(t *testing.T) {
	server := redistest.Start(t)
	s := dial(t, server)
	p := perWindow(5, limiter.MinWindow)
	now := untilGranted(t, s, counterOf("a"), p).Now
	for _, guard := range server.Do("KEYS", "weir:*:memory").([]any) {
		const latest = 1 + 54 + 8 // where it stands in a guard
		ahead := binary.BigEndian.AppendUint64(nil, uint64(now.Add(60*limiter.Second)))
		server.Do("SETRANGE", guard, latest, ahead)
	}
	for _, hash := range []string{"a", "never asked"} {
		if res := apply(t, s, counterOf(hash), p, lease); res.Reason != limiter.ClockBehind || res.RetryAfter <= 0 {
			t.Errorf("%s: got %v, retry after %d", hash, res.Reason, res.RetryAfter)
		}
	}
}

// TestAStateOfAnotherLayoutIsAPlainError must not read as an outage, on which a
// policy may admit.
func TestAStateOfAnotherLayoutIsAPlainError(t *testing.T) {
	server := redistest.Start(t)
	s := dial(t, server)
	counter := keyOf(t, server, s, "a")
	guard := counter[:strings.Index(counter, "}")+1] + ":memory"
	for name, c := range map[string]struct {
		args []any
		say  string
	}{
		"a counter of another version": {[]any{"SET", counter, "\x02"}, "layout version 2"},
		"an empty counter":             {[]any{"SET", counter, ""}, "layout version nil"},
		"a counter of another type":    {[]any{"HSET", counter, "v", "2"}, "WRONGTYPE"},
		"a guard of another version":   {[]any{"SET", guard, "\x02"}, "layout version 2"},
		"a guard of another type":      {[]any{"HSET", guard, "v", "2"}, "WRONGTYPE"},
	} {
		server.Do("DEL", counter, guard)
		server.Do(c.args...)
		before := server.Do("DEBUG", "DIGEST")
		_, err := s.Apply(t.Context(), counterOf("a"), perWindow(5, limiter.Second), lease)
		var unavailable *store.UnavailableError
		if err == nil || errors.As(err, &unavailable) || !strings.Contains(err.Error(), c.say) {
			t.Errorf("%s: error is %v, want a plain one that says %q", name, err, c.say)
		}
		if server.Do("DEBUG", "DIGEST") != before {
			t.Errorf("%s: the refused call changed the data", name)
		}
	}
}

// keyOf returns the Redis key of a counter, which it makes.
func keyOf(t *testing.T, server *redistest.Server, s *redis.Store, hash string) string {
	t.Helper()
	apply(t, s, counterOf(hash), perWindow(5, limiter.Second), lease)
	keys := server.Do("KEYS", "weir:*c/n/p/l/"+hash).([]any)
	if len(keys) != 1 {
		t.Fatalf("keys %v", keys)
	}
	return keys[0].(string)
}

func TestProbeGradesTheServer(t *testing.T) {
	server := redistest.Start(t)
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
	server.Do("CONFIG", "SET", "maxmemory-policy", "allkeys-lru")
	if g := grade(); g.Grade != store.BestEffort || !strings.Contains(g.Reason, "allkeys-lru") {
		t.Errorf("with eviction: %+v", g)
	}
	server.Do("CONFIG", "SET", "maxmemory-policy", "noeviction")
	replica := redistest.Start(t)
	host, port, _ := strings.Cut(server.Addr, ":")
	replica.Do("REPLICAOF", host, port)
	for grade().Grade == store.Hard {
		<-time.After(10 * time.Millisecond)
	}
	if g := grade(); g.Grade != store.HardExceptSplitBrain || g.Reason == "" {
		t.Errorf("with a replica: %+v", g)
	}
}

// calls returns how often the server ran a command since its statistics were
// reset.
func calls(server *redistest.Server, command string) int {
	return statistic(server, command, `calls=(\d+)`)
}
