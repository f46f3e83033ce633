package postgres_test

import (
	"context"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/weir-dev/weir/internal/testing/postgrestest"
	"github.com/weir-dev/weir/pkg/limiter"
)

// BenchmarkApply sets the round trip of a decision beside that of the one statement
// that everybody would write, INSERT ... ON CONFLICT DO UPDATE, on the same server: in
// a table as Postgres makes it, and in one that is not logged either.
func BenchmarkApply(b *testing.B) {
	server := postgrestest.Start(b, "fsync=on", "synchronous_commit=on")
	s := dial(b, server)
	pool, err := pgxpool.New(context.Background(), "postgres://"+postgrestest.User+"@"+server.Addr+"/"+postgrestest.Database+"?sslmode=disable&pool_max_conns=4")
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(pool.Close)
	server.Do("CREATE TABLE logged (key text PRIMARY KEY, n bigint NOT NULL)")
	server.Do("CREATE UNLOGGED TABLE unlogged (key text PRIMARY KEY, n bigint NOT NULL)")
	upsert := func(table string) func() error {
		sql := "INSERT INTO " + table + " VALUES ($1, $2) ON CONFLICT (key) DO UPDATE SET n = " + table + ".n + $2 RETURNING n"
		return func() error {
			var n int64
			return pool.QueryRow(context.Background(), sql, "hot", int64(5)).Scan(&n)
		}
	}
	decision := func(p limiter.Params) func() error {
		return func() error {
			_, err := s.Apply(context.Background(), counterOf(p.Algorithm.String()), p, lease)
			return err
		}
	}
	rates := []limiter.Rate{{Limit: limiter.MaxLimit, Window: limiter.Second}}
	for _, call := range []struct {
		name string
		run  func() error
	}{
		{"upsert", upsert("logged")},
		{"upsert unlogged", upsert("unlogged")},
		{"fixed window", decision(limiter.Params{Rates: rates})},
		{"token bucket", decision(limiter.Params{Rates: rates, Algorithm: limiter.TokenBucket})},
		{"sliding window", decision(limiter.Params{Rates: rates, Algorithm: limiter.SlidingWindow, Buckets: 10})},
	} {
		b.Run(call.name, func(b *testing.B) {
			for b.Loop() {
				if err := call.run(); err != nil {
					b.Fatal(err)
				}
			}
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
