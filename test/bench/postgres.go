package main

import (
	"context"
	"fmt"
	"os"
	"strconv"

	"github.com/jackc/pgx/v5/pgxpool"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/weir-dev/weir/internal/testing/devcluster/servers"
	"github.com/weir-dev/weir/pkg/store/postgres"
	"github.com/weir-dev/weir/pkg/twotier"
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
	contenders, err := coldOverPostgres(s.Address)
	if err != nil {
		return err
	}
	l := load{2, 16}
	show(tripTable(fmt.Sprintf("Postgres, %s keys in turn, each new in its window", grouped(turnKeys)), l, measure(contenders, makeKeys(turnKeys), l, true), nil))
	return nil
}

// turnKeys are asked for one after the other, which takes longer than their windows.
const turnKeys = 10_000

// coldOverPostgres sets limits for each of many keys beside the statement that counts one up.
func coldOverPostgres(address string) ([]contender, error) {
	ctx := context.Background()
	pool, err := openUpserts(address)
	if err != nil {
		return nil, err
	}
	out := []contender{peer("single upsert", func(key string) bool {
		var n int64
		return pool.QueryRow(ctx, upsert, key).Scan(&n) == nil
	}, pool.Close)}
	ways := leases()
	for _, c := range []leasing{ways[0], ways[len(ways)-1]} {
		s, err := dialPostgres(address)
		if err != nil {
			return nil, err
		}
		l := mustLimit(c.config, s)
		out = append(out, contender{
			name: c.name, ours: true,
			decide: func(key string) bool {
				d, err := l.Acquire(ctx, twotier.Request{Value: key, Cost: 1})
				return err == nil && d.Allowed
			},
			close: func() { l.Close(ctx); _ = s.Close() },
		})
	}
	return out, nil
}

// openUpserts makes the table of the single upsert.
func openUpserts(address string) (*pgxpool.Pool, error) {
	ctx := context.Background()
	pool, err := pgxpool.New(ctx, fmt.Sprintf("postgres://%s@%s/%s?sslmode=disable&pool_max_conns=16", servers.PostgresUser, address, servers.PostgresDatabase))
	if err != nil {
		return nil, err
	}
	_, err = pool.Exec(ctx, "CREATE TABLE IF NOT EXISTS counter (key text PRIMARY KEY, n bigint NOT NULL)")
	return pool, err
}

func dialPostgres(address string) (*postgres.Store, error) {
	return postgres.Dial(postgres.Options{
		Address: address, Database: servers.PostgresDatabase, User: servers.PostgresUser, Connections: 16,
	})
}

func postgresContenders(address string) ([]contender, error) {
	ctx := context.Background()
	pool, err := openUpserts(address)
	if err != nil {
		return nil, err
	}
	out := []contender{peer("single upsert", func(string) bool {
		var n int64
		return pool.QueryRow(ctx, upsert, "key").Scan(&n) == nil
	}, pool.Close)}
	for _, c := range leases() {
		s, err := dialPostgres(address)
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

// transactions returns the lender that counts units in keys of etcd, by one
// compare-and-swap for each lease, again when another caller was faster.
func transactions(name string, client *clientv3.Client, callers int, key func(caller int) string) lender {
	counters := make([]*counter, callers)
	for i := range counters {
		counters[i] = &counter{client: client, key: key(i)}
	}
	return lender{name: name, lease: func(caller int) error { return counters[caller].lease() }, close: keep}
}

// A counter is what one caller knows of a key.
type counter struct {
	client   *clientv3.Client
	key      string
	revision int64 // 0: the key does not exist
	units    int64
}

func (c *counter) lease() error {
	for {
		answer, err := c.client.Txn(context.Background()).
			If(clientv3.Compare(clientv3.ModRevision(c.key), "=", c.revision)).
			Then(clientv3.OpPut(c.key, strconv.FormatInt(c.units+leaseUnits, 10))).
			Else(clientv3.OpGet(c.key)).
			Commit()
		if err != nil {
			return err
		}
		if answer.Succeeded {
			c.revision, c.units = answer.Header.Revision, c.units+leaseUnits
			return nil
		}
		found := answer.Responses[0].GetResponseRange().Kvs[0]
		c.revision = found.ModRevision
		if c.units, err = strconv.ParseInt(string(found.Value), 10, 64); err != nil {
			return err
		}
	}
}
