package redis_test

import (
	"encoding/binary"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/weir-dev/weir/internal/testing/redistest"
	"github.com/weir-dev/weir/pkg/limiter"
	"github.com/weir-dev/weir/pkg/store/redis"
)

// TestKeysThatComeAndGoLeaveLittleBehind asks for keys that are never asked again,
// beside some that always are.
func TestKeysThatComeAndGoLeaveLittleBehind(t *testing.T) {
	const keys, always, step = 20_000, 50, 5 * limiter.Millisecond
	server := redistest.Start(t)
	s := redis.NewShifted(server.Client(), server.Addr)
	p := perWindow(1000, limiter.MinWindow)
	most := 0
	for i := range keys {
		if i%20 == 0 {
			server.Do("INCRBY", "shift", int64(20*step))
			apply(t, s, counterOf(fmt.Sprint("always ", i/20%always)), p, lease)
		}
		apply(t, s, counterOf(fmt.Sprint(i)), p, lease)
		if i%1000 == 999 {
			most = max(most, counters(server))
		}
	}
	// 20 windows of 100 ms have keys for 20 of them each; those of two windows count.
	const count = 20 * (1 + 2)
	if most > 64*64+64+count+always {
		t.Errorf("up to %d counters, %d of them live: they are not dropped", most, count)
	}
	ends := 0
	for _, member := range allListed(server) {
		ends += len(listed(member))
	}
	if n := counters(server); ends != n {
		t.Errorf("%d counters, and %d ends of counters", n, ends)
	}
}

// allListed returns the members of all lists: the first counter of a server is in one of its own.
func allListed(server *redistest.Server) (members []string) {
	for _, k := range server.Do("KEYS", "weir:*:ends").([]any) {
		for _, member := range server.Do("ZRANGE", k, 0, -1).([]any) {
			members = append(members, member.(string))
		}
	}
	return members
}

// listed returns the keys of a member, as lua/list.lua has them.
func listed(member string) (keys []string) {
	rest, isList := strings.CutPrefix(member, "\x01")
	if !isList {
		return []string{member}
	}
	for rest != "" {
		n := 2 + int(binary.BigEndian.Uint16([]byte(rest)))
		keys, rest = append(keys, rest[2:n]), rest[n:]
	}
	return keys
}

// listOf returns the member that lists keys.
func listOf(keys ...string) string {
	member := []byte{1}
	for _, k := range keys {
		member = append(binary.BigEndian.AppendUint16(member, uint16(len(k))), k...)
	}
	return string(member)
}

// TestAListIsSweptKeyByKey has counters in one list that end and that go on, one that is gone,
// and, at last, a server that takes no other list.
func TestAListIsSweptKeyByKey(t *testing.T) {
	const ends = "weir:{0}:all:ends"
	server := redistest.Start(t)
	s := redis.NewShifted(server.Client(), server.Addr)
	p := perWindow(1000, limiter.Second)
	var keys []string
	for i := range 4 {
		keys = append(keys, keyOf(t, server, s, fmt.Sprint(i)))
		server.Do("DEL", keys[i], ends)
	}
	keep := func(which ...int) {
		t.Helper()
		for _, i := range which {
			apply(t, s, counterOf(fmt.Sprint(i)), p, lease)
		}
	}
	list := func(of ...string) {
		server.Do("DEL", ends)
		server.Do("ZADD", ends, 1, listOf(of...))
	}
	sweep := func(want ...string) {
		t.Helper()
		for range 3 {
			refresh(t, s)
		}
		var left []string
		for _, member := range server.Do("ZRANGE", ends, 0, -1).([]any) {
			left = append(left, listed(member.(string))...)
		}
		slices.Sort(left)
		slices.Sort(want)
		if !slices.Equal(left, want) {
			t.Errorf("%q are listed, want %q", left, want)
		}
		if n := counters(server); n != len(want) {
			t.Errorf("%d counters, want %d", n, len(want))
		}
	}
	keep(0, 1, 2)
	server.Do("INCRBY", "shift", int64(3*limiter.Second))
	keep(1, 2)
	list(keys...) // the last one was never made
	sweep(keys[1], keys[2])
	list(keys[1], keys[2]) // by the same list again
	sweep(keys[1], keys[2])
	server.Do("INCRBY", "shift", int64(3*limiter.Second))
	sweep()
}

// TestListsStayShort has counters that always go on. Each sweep lists them again.
func TestListsStayShort(t *testing.T) {
	const many, longest = 500, 4096 + 1024
	server := redistest.Start(t)
	s := redis.NewShifted(server.Client(), server.Addr)
	for range 8 {
		for i := range many {
			apply(t, s, counterOf(fmt.Sprint(i)), perWindow(1000, limiter.Second), lease)
		}
		for range 8 {
			refresh(t, s)
		}
		server.Do("INCRBY", "shift", int64(1500*limiter.Millisecond))
	}
	seen := map[string]bool{}
	for _, member := range allListed(server) {
		if len(member) > longest {
			t.Errorf("a list takes %d bytes, want at most %d", len(member), longest)
		}
		for _, k := range listed(member) {
			if seen[k] {
				t.Errorf("%q is listed twice", k)
			}
			seen[k] = true
		}
	}
	if len(seen) != many {
		t.Errorf("%d counters are listed, want %d", len(seen), many)
	}
}

// TestASweepDropsOnlyEndedCounters has counters that went on after they were listed, of
// every kind, some that are gone, and one of another layout.
func TestASweepDropsOnlyEndedCounters(t *testing.T) {
	server := redistest.Start(t)
	s := redis.NewShifted(server.Client(), server.Addr)
	month := limiter.Rate{Limit: 5, Window: limiter.MaxWindow}
	short := limiter.Rate{Limit: 5, Window: limiter.Second}
	kinds := map[string]limiter.Params{
		"window":         {Rates: []limiter.Rate{short}},
		"two windows":    {Rates: []limiter.Rate{short, month}},
		"tenants":        {Rates: []limiter.Rate{short}, Fairness: limiter.Fairness{Default: 1}},
		"sliding window": {Algorithm: limiter.SlidingWindow, Rates: []limiter.Rate{short}, Buckets: 6},
		"sliding log":    {Algorithm: limiter.SlidingLog, Rates: []limiter.Rate{short}},
		"bucket":         {Algorithm: limiter.TokenBucket, Rates: []limiter.Rate{short}},
		"leaky bucket":   {Algorithm: limiter.LeakyBucket, Rates: []limiter.Rate{short}, MaxDelay: limiter.Second},
	}
	ask := func() {
		for name, p := range kinds {
			p.Generation = 1
			apply(t, s, counterOf(name), p, limiter.Command{Min: 1, Want: 1})
		}
	}
	sweep := func() {
		for range 64 {
			refresh(t, s)
		}
	}
	ask()
	gone := keyOf(t, server, s, "gone")
	other := keyOf(t, server, s, "other")
	server.Do("DEL", gone)
	server.Do("SET", other, "\x02")
	for range 5 {
		server.Do("INCRBY", "shift", int64(1500*limiter.Millisecond))
		ask()
		sweep()
		if n := counters(server); n != len(kinds)+1 {
			t.Fatalf("%d counters, want %d", n, len(kinds)+1)
		}
	}
	server.Do("INCRBY", "shift", int64(3*limiter.Second))
	sweep()
	if n := counters(server); n != 2 { // a month goes on, and the other layout is not ours
		t.Errorf("%d counters are left, want 2", n)
	}
	server.Do("INCRBY", "shift", int64(64*24*3600*limiter.Second))
	server.Do("CONFIG", "SET", "maxmemory", "1")
	sweep()
	if n := counters(server); n != 1 {
		t.Errorf("%d counters are left by a server whose memory is full, want 1", n)
	}
}
