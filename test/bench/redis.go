package main

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/go-redis/redis_rate/v10"
	goredis "github.com/redis/go-redis/v9"

	"github.com/weir-dev/weir/internal/testing/devcluster/servers"
	"github.com/weir-dev/weir/pkg/limiter"
	"github.com/weir-dev/weir/pkg/store/redis"
	"github.com/weir-dev/weir/pkg/twotier"
)

// overRedis sets limits that a fleet shares over one Redis side by side. All
// contenders are called from one process with the same connection settings.
func overRedis(show func(*table)) error {
	logs, err := os.MkdirTemp("", "weir-bench-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(logs) }()
	s, err := servers.Redis(context.Background(), logs)
	if err != nil {
		return err
	}
	defer s.Kill()
	for _, l := range []load{{2, 1}, {2, 16}} {
		show(tripTable("Redis, one key", l, measure(redisContenders(s.Address), []string{"key"}, l, true), []goal{
			{"weir, strict", "bare EVALSHA", 0.8},
			{"weir, strict", "go-redis/redis_rate", 1},
			{"weir, batch 100", "go-redis/redis_rate", 50},
		}))
	}
	return nil
}

func redisContenders(address string) []contender {
	ctx := context.Background()
	bare := goredis.NewClient(&goredis.Options{Addr: address, MaxRetries: -1})
	sha, err := bare.ScriptLoad(ctx, "return 1").Result()
	must(err)
	rate := redis_rate.NewLimiter(bare)
	// A limit that admits every request of the run, yet small enough for its floats.
	admitAll := redis_rate.Limit{Rate: plenty, Burst: plenty, Period: time.Second}
	out := []contender{
		peer("bare EVALSHA", func(string) bool {
			return bare.EvalSha(ctx, sha, []string{"key"}).Err() == nil
		}, keep),
		peer("go-redis/redis_rate", func(string) bool {
			res, err := rate.Allow(ctx, "key", admitAll)
			return err == nil && res.Allowed > 0
		}, func() { _ = bare.Close() }),
	}
	for _, c := range leases() {
		s := redis.Dial(address)
		w := weir(c.name, "key", c.config, s)
		end := w.close
		w.close = func() {
			end()
			_ = s.Close()
		}
		out = append(out, w)
	}
	return out
}

// A leasing is a way to use a store.
type leasing struct {
	name   string
	config twotier.Config
}

// leases are the ways that the store sections compare. The window is one that
// begins during the run, since a store that is new serves no older one.
func leases() []leasing {
	p := window(limiter.MaxLimit)
	p.Rates[0].Window = limiter.MinWindow
	strict := config(p, 1)
	strict.Mode = twotier.Strict
	out := []leasing{{"weir, strict", strict}}
	for _, batch := range []int64{1, 10, 100} {
		out = append(out, leasing{fmt.Sprintf("weir, batch %d", batch), config(p, batch)})
	}
	adaptive := config(p, 1)
	adaptive.Size = twotier.Size{Type: twotier.Adaptive, Batch: 1, Min: 1, Max: 10_000}
	for i := range out {
		out[i].config.Scope.Limit = fmt.Sprint(i) // a counter of its own
	}
	adaptive.Scope.Limit = "adaptive"
	return append(out, leasing{"weir, adaptive", adaptive})
}

// A goal is what one contender's rate over another's shall reach.
type goal struct {
	name, over string
	least      float64
}

// tripTable makes the table of contenders that ask a store.
func tripTable(title string, l load, figures []figure, goals []goal) *table {
	t := &table{
		title: fmt.Sprintf("%s, %d goroutines", title, l.goroutines),
		head:  []string{"", "requests/s", "requests per round trip", "× " + figures[0].name, "95 %", ""},
	}
	byName := map[string]figure{}
	for _, f := range figures {
		byName[f.name] = f
	}
	for _, f := range figures {
		ns, _, _ := median(f.ns)
		ratio, low, high := median(ratios(figures[0], f))
		trips := "1"
		if f.trips > 0 {
			trips = fmt.Sprintf("%.1f", float64(f.ops)/float64(f.trips))
		}
		t.add(f.name, fmt.Sprintf("%.0f", 1e9/ns), trips, fmt.Sprintf("%.2f", ratio),
			fmt.Sprintf("%.2f–%.2f", low, high), reached(f, byName, goals))
	}
	return t
}

// reached says which goals a contender has and whether it reaches them.
func reached(f figure, byName map[string]figure, goals []goal) string {
	said := ""
	if f.wrong {
		said = "decides otherwise! "
	}
	for _, g := range goals {
		if g.name != f.name {
			continue
		}
		ratio, low, _ := median(ratios(byName[g.over], f))
		verdict := "met"
		switch {
		case ratio < g.least:
			verdict = "missed"
		case low < g.least:
			verdict = "met by the median only"
		}
		said += fmt.Sprintf("%.2f × %s, goal ≥ %g: %s. ", ratio, g.over, g.least, verdict)
	}
	return said
}
