package redis_test

import (
	"context"
	"regexp"
	"strconv"
	"testing"

	"github.com/weir-dev/weir/pkg/limiter"
	"github.com/weir-dev/weir/pkg/store/storetest/redistest"
)

// BenchmarkApply reports the round trip of a decision and what it costs the
// server, beside an INCRBY that the same server runs.
func BenchmarkApply(b *testing.B) {
	server := redistest.Start(b)
	s, client := dial(b, server), server.Client()
	p := perWindow(limiter.MaxLimit, limiter.Second)
	for _, call := range []struct {
		name, command string
		run           func() error
	}{
		{"decision", "evalsha", func() error {
			_, err := s.Apply(context.Background(), counterOf("hot"), p, lease)
			return err
		}},
		{"incrby", "incrby", func() error { return client.IncrBy(context.Background(), "peer", 1).Err() }},
	} {
		b.Run(call.name, func(b *testing.B) {
			server.Do("CONFIG", "RESETSTAT")
			b.ReportAllocs()
			for b.Loop() {
				if err := call.run(); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(statistic(server, call.command, `usec=(\d+)`))/float64(b.N), "server-µs/op")
		})
		b.Run(call.name+" in parallel", func(b *testing.B) {
			b.SetParallelism(16)
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					if err := call.run(); err != nil {
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
