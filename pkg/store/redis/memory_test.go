package redis_test

import (
	"strings"
	"testing"

	"github.com/weir-dev/weir/internal/testing/redistest"
	"github.com/weir-dev/weir/pkg/limiter"
	"github.com/weir-dev/weir/pkg/store"
	"github.com/weir-dev/weir/pkg/store/redis"
)

// month is a limit of 10 in a window that began long before any test.
func month(r limiter.Retention) limiter.Params {
	p := perWindow(10, limiter.MaxWindow)
	p.Retention = r
	return p
}

var three = limiter.Command{Min: 3, Want: 3}

func probe(t *testing.T, s *redis.Store) store.Facts {
	t.Helper()
	f, err := s.Probe(t.Context())
	if err != nil {
		t.Fatalf("Probe: %v", err)
	}
	return f
}

// born completes a retention as for a limit that is put in force now.
func born(t *testing.T, s *redis.Store, r limiter.Retention) limiter.Retention {
	t.Helper()
	f := probe(t, s)
	r.Born = f.Of(r).Memories
	if len(r.Born) == 0 || len(r.Born) > limiter.MaxBorn {
		t.Fatalf("the store names %d memories, want 1 to %d", len(r.Born), limiter.MaxBorn)
	}
	return r
}

// grantsThree takes 3 and wants the counter to say that it granted that many in all.
func grantsThree(t *testing.T, s *redis.Store, hash string, r limiter.Retention, all int64) {
	t.Helper()
	res := apply(t, s, counterOf(hash), month(r), three)
	if res.Granted != 3 || res.Windows.Open[0].Granted != all {
		t.Errorf("%s is granted %d (%v), and %d of the window in all; want 3 and %d", hash, res.Granted, res.Reason, res.Windows.Open[0].Granted, all)
	}
}

// waits takes 3 and wants the limit to wait for the end of its window.
func waits(t *testing.T, s *redis.Store, hash string, r limiter.Retention) {
	t.Helper()
	res := apply(t, s, counterOf(hash), month(r), three)
	if res.Reason != limiter.Amnesia || res.RetryAfter != res.ExpiresIn {
		t.Errorf("%s is granted %d (%v), retry after %d; want Amnesia until the window ends", hash, res.Granted, res.Reason, res.RetryAfter)
	}
}

func TestALimitGrantsFromItsFirstRequest(t *testing.T) {
	server := redistest.Start(t)
	s := dial(t, server)
	volatile := born(t, s, limiter.Retention{})
	durable := born(t, s, limiter.Retention{Durable: true})
	for _, hash := range []string{"a", "b", "c", "d", "e"} { // of many partitions
		grantsThree(t, s, hash, volatile, 3)
		grantsThree(t, s, hash, durable, 6)
		waits(t, s, "a limit of old "+hash, limiter.Retention{})
	}
	for name, lose := range map[string]func(){
		"a flush":   server.Flush,
		"SWAPDB":    func() { server.Do("SWAPDB", 0, 1) },
		"a restart": server.Restart,
	} {
		lose()
		for _, hash := range []string{"a", "b", "c", "d", "e"} {
			waits(t, s, hash, volatile)
			waits(t, s, hash, durable)
		}
		volatile = born(t, s, limiter.Retention{})
		grantsThree(t, s, "a limit after "+name, volatile, 3)
		server.Flush()
		volatile, durable = born(t, s, limiter.Retention{}), born(t, s, limiter.Retention{Durable: true})
	}
}

// TestStateThatSurvivesALoss spends a part of a window, loses the server, and asks for more.
func TestStateThatSurvivesALoss(t *testing.T) {
	always := []string{"--appendonly", "yes", "--appendfsync", "always"}
	everysec := []string{"--appendonly", "yes", "--appendfsync", "everysec"}
	wait := limiter.Retention{Durable: true}
	resume := limiter.Retention{Durable: true, Resume: true}
	restart, shutdown := (*redistest.Server).Restart, (*redistest.Server).Shutdown
	for name, c := range map[string]struct {
		args      []string
		retention limiter.Retention
		lose      func(*redistest.Server)
		left      int64 // what the window was granted, for all that is known; -1: nothing is granted
	}{
		"always, shut down":               {always, wait, shutdown, 3},
		"always, killed":                  {always, wait, restart, 3},
		"always, killed, volatile":        {always, limiter.Retention{}, restart, -1},
		"always, killed, resumed":         {always, resume, restart, 3},
		"everysec, shut down":             {everysec, wait, shutdown, -1},
		"everysec, killed":                {everysec, wait, restart, -1},
		"everysec, shut down, resumed":    {everysec, resume, shutdown, 3},
		"a snapshot":                      {[]string{"--save", "60 1"}, wait, shutdown, -1},
		"a snapshot, resumed":             {[]string{"--save", "60 1"}, resume, shutdown, 3},
		"nothing, waiting":                {nil, wait, restart, -1},
		"nothing, resumed":                {nil, resume, restart, 0},
		"always, flushed":                 {always, wait, (*redistest.Server).Flush, -1},
		"always, flushed and killed":      {always, wait, func(s *redistest.Server) { s.Flush(); s.Restart() }, -1},
		"always, its databases exchanged": {always, wait, func(s *redistest.Server) { s.Do("SWAPDB", 0, 1); s.Restart() }, -1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := redistest.Start(t, c.args...)
			s := dial(t, server)
			r := born(t, s, c.retention)
			grantsThree(t, s, "a", r, 3)
			c.lose(server)
			for range 2 { // the first call notices the loss
				if c.left < 0 {
					waits(t, s, "a", r)
				} else {
					c.left += 3
					grantsThree(t, s, "a", r, c.left)
				}
			}
		})
	}
}

// TestAServerThatLosesNothingMayRestartAgainAndAgain has limits that were put in force
// before, between and after restarts.
func TestAServerThatLosesNothingMayRestartAgainAndAgain(t *testing.T) {
	server := redistest.Start(t, "--appendonly", "yes", "--appendfsync", "always")
	s := dial(t, server)
	first := born(t, s, limiter.Retention{Durable: true})
	if f := probe(t, s); !f.Lossless || f.Durable.Guarantee != (store.Guarantee{Grade: store.Hard}) {
		t.Errorf("it says %+v", f)
	}
	grantsThree(t, s, "a", first, 3)
	server.Restart()
	grantsThree(t, s, "a", first, 6)
	second := born(t, s, limiter.Retention{Durable: true})
	grantsThree(t, s, "b", second, 3)
	for range 2 { // nobody probes between
		server.Restart()
		refresh(t, s)
	}
	grantsThree(t, s, "a", first, 9)
	grantsThree(t, s, "b", second, 6)

	server.Do("CONFIG", "SET", "appendfsync", "everysec")
	if f := probe(t, s); f.Lossless || !strings.Contains(f.Durable.Guarantee.Reason, "set it to always") {
		t.Errorf("with everysec it says %+v", f)
	}
	server.Restart() // with always again
	if f := probe(t, s); !f.Lossless {
		t.Errorf("after the restart it says %+v", f)
	}
	waits(t, s, "b", second)
}

// TestACopyOfAServerLacksLaterGrants restarts and promotes a replica that missed
// grants, and restarts its primary.
func TestACopyOfAServerLacksLaterGrants(t *testing.T) {
	for name, c := range map[string]struct {
		serve  func(primary, replica *redistest.Server) *redistest.Server
		resume int64 // what a limit that resumes knows of
	}{
		"promoted": {func(_, replica *redistest.Server) *redistest.Server {
			replica.Do("REPLICAOF", "NO", "ONE")
			return replica
		}, 3},
		"restarted as a primary": {func(_, replica *redistest.Server) *redistest.Server {
			replica.Alone()
			return replica
		}, 3},
		"the primary itself": {func(primary, _ *redistest.Server) *redistest.Server {
			primary.Restart()
			return primary
		}, 6},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			always := []string{"--appendonly", "yes", "--appendfsync", "always"}
			primary := redistest.Start(t, always...)
			s := dial(t, primary)
			r := born(t, s, limiter.Retention{Durable: true})
			replica := primary.StartReplica(always...)
			replica.Await("its first AOF", func() bool {
				info := replica.Do("INFO", "persistence").(string)
				return strings.Contains(info, "aof_rewrite_in_progress:0") && strings.Contains(info, "aof_rewrite_scheduled:0")
			})
			grantsThree(t, s, "a", r, 3)
			if f := probe(t, s); f.Lossless || !strings.Contains(f.Durable.Guarantee.Reason, "replica") {
				t.Errorf("with a replica it says %+v", f)
			}
			if n := primary.Do("WAIT", "1", "5000"); n != int64(1) {
				t.Fatalf("the replica did not follow: %v", n)
			}
			replica.Pause()
			primary.Do("CLIENT", "KILL", "TYPE", "replica") // from here on the replica misses everything
			grantsThree(t, s, "a", r, 6)
			primary.Kill()
			replica.Resume()

			serving := dial(t, c.serve(primary, replica))
			waits(t, serving, "a", r)
			r.Resume = true
			grantsThree(t, serving, "a", r, c.resume+3)
		})
	}
}

func TestAClusterLosesItsLastGrants(t *testing.T) {
	t.Parallel()
	cluster := redistest.StartCluster(t, 3)
	for _, node := range cluster.Nodes {
		node.Do("CONFIG", "SET", "appendonly", "yes", "appendfsync", "always")
	}
	s := open(t, redis.Options{Addresses: cluster.Addrs(), Cluster: true})
	if f := probe(t, s); f.Lossless || !strings.Contains(f.Durable.Guarantee.Reason, "cluster") {
		t.Errorf("it says %+v", f)
	}
	r := born(t, s, limiter.Retention{Durable: true})
	for _, hash := range []string{"a", "b", "c", "d", "e", "f"} {
		grantsThree(t, s, hash, r, 3)
	}
}

// TestAScriptOfBeforeReadsAndWritesGuards has guards that end where those of scripts
// did that knew of nothing that outlives an instance.
func TestAScriptOfBeforeReadsAndWritesGuards(t *testing.T) {
	const short = 71
	server := redistest.Start(t, "--appendonly", "yes", "--appendfsync", "always")
	s := dial(t, server)
	r := born(t, s, limiter.Retention{Durable: true})
	grantsThree(t, s, "a", r, 3)
	cut := func() {
		for _, key := range server.Do("KEYS", "weir:*:memory").([]any) {
			guard := server.Do("GET", key).(string)
			if guard[0] != 1 || !strings.HasPrefix(guard[1:], "master_replid:") || len(guard) <= short {
				t.Fatalf("guard %q", guard)
			}
			server.Do("SET", key, guard[:short])
		}
	}
	cut()
	grantsThree(t, s, "a", r, 6)
	if f := probe(t, s); !f.Lossless {
		t.Errorf("it says %+v", f)
	}
	grantsThree(t, s, "a", r, 9)
	cut()
	server.Restart()
	waits(t, s, "a", r)
	again := born(t, s, limiter.Retention{Durable: true})
	grantsThree(t, s, "b", again, 3)
	server.Restart()
	grantsThree(t, s, "b", again, 6)
}

// TestAMemoryThatComesBack has a primary be followed by another one and come back without a
// trace of that, as one does that Sentinels depose while it stands still and promote again
// before they have made it a replica. The limits were born in either memory.
func TestAMemoryThatComesBack(t *testing.T) {
	server := redistest.Start(t)
	s := redis.NewShifted(server.Client(), server.Addr)
	shift := func(by limiter.Micros) { server.Do("INCRBY", "shift", int64(by)) }
	shift(0)
	askBy := func(s *redis.Store, hash string, r limiter.Retention) limiter.Result {
		p := perWindow(10, 3600*limiter.Second)
		p.Retention = r
		return apply(t, s, counterOf(hash), p, limiter.Command{Min: 1, Want: 10})
	}
	ask := func(hash string, r limiter.Retention) limiter.Result { return askBy(s, hash, r) }
	saved := func() func() {
		held := map[string]any{}
		for _, key := range server.Do("KEYS", "weir:*").([]any) {
			held[key.(string)] = server.Do("DUMP", key)
		}
		return func() {
			now := server.Do("GET", "shift")
			server.Flush()
			server.Do("SET", "shift", now)
			for key, value := range held {
				server.Do("RESTORE", key, 0, value)
			}
		}
	}
	wants := func(when string, of map[string]limiter.Retention, granted int64) {
		t.Helper()
		for range 2 { // once it has answered, too
			for hash, r := range of {
				if res := ask(hash, r); res.Granted != granted {
					t.Errorf("%s the limit of the %s memory is granted %d (%v), want %d", when, hash, res.Granted, res.Reason, granted)
				}
			}
			granted = 0
		}
	}
	first := map[string]limiter.Retention{"first": born(t, s, limiter.Retention{})}
	wants("At first", first, 10)
	comesBack := saved()

	server.Flush()
	shift(0)
	refresh(t, s)
	all := map[string]limiter.Retention{"first": first["first"], "second": born(t, s, limiter.Retention{})}
	wants("In its second memory", map[string]limiter.Retention{"second": all["second"]}, 10)
	shift(3600 * limiter.Second)
	wants("An hour later", all, 10)
	followed := saved()

	comesBack()
	wants("When the first memory is back", all, 0)
	another := redis.NewShifted(server.Client(), server.Addr)
	for hash, r := range all {
		if res := askBy(another, hash, r); res.Granted > 0 {
			t.Errorf("A holder that asked no other memory is granted %d by the limit of the %s one", res.Granted, hash)
		}
	}
	shift(3600 * limiter.Second)
	wants("An hour after that", all, 10)

	followed()
	wants("When the second memory is back", all, 0)
	shift(3600 * limiter.Second)
	wants("An hour after that", all, 10)

	server.Flush()
	shift(3 * 3600 * limiter.Second)
	third := born(t, s, limiter.Retention{})
	for i, want := range []int64{0, 10} { // until it has answered it may be one of before
		if res := ask("first", third); res.Granted != want {
			t.Errorf("ask %d of a limit that was born in a third memory: granted %d (%v), want %d", i, res.Granted, res.Reason, want)
		}
	}
}
