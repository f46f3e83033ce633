package main

import (
	"context"
	"fmt"
	"os"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/weir-dev/weir/internal/testing/devcluster/servers"
	"github.com/weir-dev/weir/pkg/store/postgres"
)

const upsert = `INSERT INTO counter (key, n) VALUES ($1, 1) ON CONFLICT (key) DO UPDATE SET n = counter.n + 1 RETURNING n`

// overPostgres sets decisions beside the single statement that counts one up.
func overPostgres(show func(*table)) error {
	logs, err := os.MkdirTemp("", "weir-bench-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(logs) }()
	s, err := servers.Postgres(context.Background(), logs)
	if err != nil {
		return err
	}
	defer s.Kill()
	for _, l := range []load{{2, 1}, {2, 16}} {
		contenders, err := postgresContenders(s.Address)
		if err != nil {
			return err
		}
		show(tripTable("Postgres, one key", l, measure(contenders, []string{"key"}, l, true), []goal{
			{"weir, strict", "single upsert", 0.9},
			{"weir, batch 100", "single upsert", 50},
		}))
	}
	return nil
}

func postgresContenders(address string) ([]contender, error) {
	ctx := context.Background()
	pool, err := pgxpool.New(ctx, fmt.Sprintf("postgres://%s@%s/%s?sslmode=disable&pool_max_conns=16", servers.PostgresUser, address, servers.PostgresDatabase))
	if err != nil {
		return nil, err
	}
	if _, err := pool.Exec(ctx, "CREATE TABLE IF NOT EXISTS counter (key text PRIMARY KEY, n bigint NOT NULL)"); err != nil {
		return nil, err
	}
	out := []contender{peer("single upsert", func(string) bool {
		var n int64
		return pool.QueryRow(ctx, upsert, "key").Scan(&n) == nil
	}, pool.Close)}
	for _, c := range leases() {
		s, err := postgres.Dial(postgres.Options{
			Address: address, Database: servers.PostgresDatabase, User: servers.PostgresUser, Connections: 16,
		})
		if err != nil {
			return nil, err
		}
		w := weir(c.name, "key", c.config, s)
		end := w.close
		w.close = func() {
			end()
			_ = s.Close()
		}
		out = append(out, w)
	}
	return out, nil
}
