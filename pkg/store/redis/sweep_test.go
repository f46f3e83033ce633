package redis_test

import (
	"fmt"
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
	for _, k := range server.Do("KEYS", "weir:*:ends").([]any) {
		ends += int(server.Do("ZCARD", k).(int64))
	}
	if n := counters(server); ends != n {
		t.Errorf("%d counters, and %d ends of counters", n, ends)
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
