package redis_test

import (
	"context"
	"fmt"
	"regexp"
	"strconv"
	"testing"
	"time"

	"github.com/weir-dev/weir/pkg/limiter"
	"github.com/weir-dev/weir/pkg/store"
	"github.com/weir-dev/weir/pkg/store/storetest/redistest"
)

var params = limiter.FixedWindow{Generation: 1, Rates: []limiter.Rate{{Limit: limiter.MaxLimit, Window: limiter.Second}}}

func counterOf(hash string) store.Key {
	return store.Key{Scope: store.Scope{Cluster: "c", Namespace: "n", Policy: "p", Limit: "l"}, Hash: hash}
}

// BenchmarkApply reports the round trip of a decision and what it costs the
// server, beside an INCRBY with the same client.
func BenchmarkApply(b *testing.B) {
	server := redistest.Start(b)
	s, client := dial(b, server), server.Client()
	take := limiter.Command{Min: 1, Want: 1}
	b.Run("take", func(b *testing.B) {
		server.Do("CONFIG", "RESETSTAT")
		for b.Loop() {
			if _, err := s.Apply(context.Background(), counterOf("hot"), params, take); err != nil {
				b.Fatal(err)
			}
		}
		b.ReportMetric(microsPerCall(server, "evalsha"), "server-µs/op")
	})
	b.Run("incrby", func(b *testing.B) {
		server.Do("CONFIG", "RESETSTAT")
		for b.Loop() {
			if err := client.IncrBy(context.Background(), "peer", 1).Err(); err != nil {
				b.Fatal(err)
			}
		}
		b.ReportMetric(microsPerCall(server, "incrby"), "server-µs/op")
	})
	b.Run("take in parallel", func(b *testing.B) {
		b.SetParallelism(16)
		b.RunParallel(func(pb *testing.PB) {
			for pb.Next() {
				if _, err := s.Apply(context.Background(), counterOf("hot"), params, take); err != nil {
					b.Error(err)
				}
			}
		})
	})
	b.Run("incrby in parallel", func(b *testing.B) {
		b.SetParallelism(16)
		b.RunParallel(func(pb *testing.PB) {
			for pb.Next() {
				if err := client.IncrBy(context.Background(), "peer", 1).Err(); err != nil {
					b.Error(err)
				}
			}
		})
	})
}

// microsPerCall returns the server's time for one call of a command.
func microsPerCall(server *redistest.Server, command string) float64 {
	stats := server.Do("INFO", "commandstats").(string)
	found := regexp.MustCompile(fmt.Sprintf(`cmdstat_%s:.*usec_per_call=([0-9.]+)`, command)).FindStringSubmatch(stats)
	if found == nil {
		return -1
	}
	micros, _ := strconv.ParseFloat(found[1], 64) // the pattern is a number
	return micros
}

var _ = time.Second
