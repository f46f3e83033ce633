package postgres_test

import (
	"context"
	"strconv"
	"sync/atomic"
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

// BenchmarkKeysInTurn sets takes of many keys, each asked for once in a window, beside the bare
// upsert of as many callers. After a second the counter of a key is still there, with the count of the
// window before; after more than two of the shortest windows it is not.
func BenchmarkKeysInTurn(b *testing.B) {
	const keys, callers = 10_000, 16
	server := postgrestest.Start(b, "fsync=on", "synchronous_commit=off")
	s := dial(b, server)
	pool, err := pgxpool.New(context.Background(), "postgres://"+postgrestest.User+"@"+server.Addr+"/"+postgrestest.Database+"?sslmode=disable&pool_max_conns=4")
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(pool.Close)
	server.Do("CREATE TABLE counter (key text PRIMARY KEY, n bigint NOT NULL)")
	decision := func(window limiter.Micros) func(i uint64) error {
		p := limiter.Params{Rates: []limiter.Rate{{Limit: limiter.MaxLimit, Window: window}}}
		return func(i uint64) error {
			key := strconv.FormatInt(int64(window), 10) + " " + strconv.FormatUint(i%keys, 10)
			_, err := s.Apply(context.Background(), counterOf(key), p, lease)
			return err
		}
	}
	for _, call := range []struct {
		name string
		run  func(i uint64) error
	}{
		{"upsert", func(i uint64) error {
			var n int64
			return pool.QueryRow(context.Background(), "INSERT INTO counter VALUES ($1, 1) ON CONFLICT (key) DO UPDATE SET n = counter.n + 1 RETURNING n", strconv.FormatUint(i%keys, 10)).Scan(&n)
		}},
		{"gone", decision(limiter.MinWindow)},
		{"ended", decision(limiter.Second)},
	} {
		b.Run(call.name, func(b *testing.B) {
			var next atomic.Uint64
			b.SetParallelism(callers / 2)
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					if err := call.run(next.Add(1)); err != nil {
						b.Error(err)
						return
					}
				}
			})
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "takes/s")
		})
	}
}
