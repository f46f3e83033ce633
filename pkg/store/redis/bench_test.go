package redis_test

import (
	"fmt"
	"maps"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/weir-dev/weir/internal/testing/redistest"
	"github.com/weir-dev/weir/pkg/limiter"
)

// BenchmarkApply reports the round trip of a decision and what it costs the
// server, beside a script that does nothing.
func BenchmarkApply(b *testing.B) {
	server := redistest.Start(b)
	s, client := dial(b, server), server.Client()
	nothing, err := client.ScriptLoad(b.Context(), "return 1").Result()
	if err != nil {
		b.Fatal(err)
	}
	rate := limiter.Rate{Limit: 1_000_000_000, Window: limiter.Second}
	minute := limiter.Rate{Limit: limiter.MaxLimit, Window: 60 * limiter.Second}
	calls := map[string]func() error{
		"bare EVALSHA": func() error { return client.EvalSha(b.Context(), nothing, []string{"bare"}).Err() },
	}
	for name, p := range map[string]limiter.Params{
		"window":         {Rates: []limiter.Rate{rate}},
		"two windows":    {Rates: []limiter.Rate{rate, minute}},
		"sliding window": {Algorithm: limiter.SlidingWindow, Buckets: 10, Rates: []limiter.Rate{rate}},
		"sliding log":    {Algorithm: limiter.SlidingLog, Rates: []limiter.Rate{{Limit: 1000, Window: limiter.Second}}},
		"token bucket":   {Algorithm: limiter.TokenBucket, Rates: []limiter.Rate{rate}},
		"leaky bucket":   {Algorithm: limiter.LeakyBucket, MaxDelay: limiter.Second, Rates: []limiter.Rate{rate}},
		"tenants":        {Rates: []limiter.Rate{rate}, Fairness: limiter.Fairness{Default: 1}},
	} {
		calls[name] = func() error {
			_, err := s.Apply(b.Context(), counterOf(name), p, limiter.Command{Min: 1, Want: 1})
			return err
		}
	}
	asked := 0
	for name, keys := range map[string]int{"a new key each": math.MaxInt, "many keys": 20_000} {
		calls[name] = func() error {
			asked++
			_, err := s.Apply(b.Context(), counterOf(fmt.Sprint(name, asked%keys)), limiter.Params{Rates: []limiter.Rate{rate}}, limiter.Command{Min: 1, Want: 1})
			return err
		}
	}
	for _, name := range slices.Sorted(maps.Keys(calls)) {
		run := calls[name]
		b.Run(name, func(b *testing.B) {
			server.Do("CONFIG", "RESETSTAT")
			b.ReportAllocs()
			for b.Loop() {
				if err := run(); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(statistic(server, "evalsha", `usec=(\d+)`))/float64(b.N), "server-µs/op")
		})
		if strings.Contains(name, "key") { // they are counted without a lock
			continue
		}
		b.Run(name+" in parallel", func(b *testing.B) {
			b.SetParallelism(8)
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					if err := run(); err != nil {
						b.Error(err)
						return
					}
				}
			})
		})
	}
}

// statistic returns a number from the server's statistics of a command, 0 when it
// never ran.
func statistic(server *redistest.Server, command, pattern string) int {
	stats := server.Do("INFO", "commandstats").(string)
	found := regexp.MustCompile("cmdstat_" + command + `:.*?` + pattern).FindStringSubmatch(stats)
	if found == nil {
		return 0
	}
	n, _ := strconv.Atoi(found[1]) // the pattern is a number
	return n
}
