package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"sync"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/weir-dev/weir/internal/devcluster/servers"
	"github.com/weir-dev/weir/pkg/limiter"
	"github.com/weir-dev/weir/pkg/store/postgres"
	"github.com/weir-dev/weir/pkg/twotier"
)

// connections is how many connections a client has, as many as a sidecar's.
const connections = 4

// Rows are clients of a Postgres of their own that decide over many keys, each in a row
// of its own.
type rows struct {
	name    string
	server  *servers.Server
	clients []contender
}

// overRows sets clients that share limits over one Postgres beside the single statement that
// counts one up, where each of many keys is asked for rarely.
func overRows(show func(*table)) error {
	logs, err := os.MkdirTemp("", "weir-bench-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(logs) }()
	var all []*rows
	defer func() {
		for _, r := range all {
			r.close()
		}
	}()
	for _, start := range []struct {
		name   string
		client func(address string) (contender, error)
	}{
		{"bare upsert", bareUpsert("")},
		{"weir", weirRows(false)},
		{"weir, durable", weirRows(true)},
		{"bare upsert, unlogged", bareUpsert("UNLOGGED")},
	} {
		r, err := openRows(logs, start.name, start.client)
		if err != nil {
			return fmt.Errorf("%s: %w", start.name, err)
		}
		all = append(all, r)
	}
	keys := makeKeys(manyKeys)
	turns := make([][]keyed, len(all))
	for range keyRounds {
		for i, r := range all {
			t, err := r.turn(keys)
			if err != nil {
				return fmt.Errorf("%s: %w", r.name, err)
			}
			turns[i] = append(turns[i], t)
		}
	}
	show(rowTable(all, turns))
	return nil
}

// openRows starts a Postgres as it comes, with its clients.
func openRows(logs, name string, client func(address string) (contender, error)) (*rows, error) {
	server, err := servers.PostgresWith(context.Background(), logs, nil)
	if err != nil {
		return nil, err
	}
	r := &rows{name: name, server: server}
	for range fleet {
		c, err := client(server.Address)
		if err != nil {
			r.close()
			return nil, err
		}
		r.clients = append(r.clients, c)
		if !settles(c, "ready", true) {
			r.close()
			return nil, errors.New("it admits nothing")
		}
	}
	return r, nil
}

func (r *rows) close() {
	for _, c := range r.clients {
		c.close()
	}
	r.server.Kill()
}

func bareUpsert(logging string) func(address string) (contender, error) {
	return func(address string) (contender, error) {
		ctx := context.Background()
		pool, err := pgxpool.New(ctx, fmt.Sprintf("postgres://%s@%s/%s?sslmode=disable&pool_max_conns=%d",
			servers.PostgresUser, address, servers.PostgresDatabase, connections))
		if err != nil {
			return contender{}, err
		}
		_, err = pool.Exec(ctx, "CREATE "+logging+" TABLE IF NOT EXISTS counter (key text PRIMARY KEY, n bigint NOT NULL)")
		return peer("", func(key string) bool {
			var n int64
			return pool.QueryRow(ctx, upsert, key).Scan(&n) == nil
		}, pool.Close), err
	}
}

// weirRows leases as a policy without settings of its own does.
func weirRows(durable bool) func(address string) (contender, error) {
	return func(address string) (contender, error) {
		s, err := postgres.Dial(postgres.Options{
			Address: address, Database: servers.PostgresDatabase, User: servers.PostgresUser, Connections: connections, Timeout: 10 * time.Second,
		})
		if err != nil {
			return contender{}, err
		}
		p := limiter.Params{Generation: 1, Rates: []limiter.Rate{{Limit: userLimit, Window: limiter.Second}}}
		p.Retention.Durable = durable
		c := config(p, userLimit)
		c.Size = twotier.Size{Type: twotier.Adaptive, Batch: userLimit, Min: 1, Max: 10_000}
		l, ctx := twotier.New(c, s), context.Background()
		return peer("", func(key string) bool {
			// Where two clients ask for a key in one second, the first may have leased all.
			d, err := l.Acquire(ctx, twotier.Request{Value: key, Cost: 1})
			return err == nil && (d.Reason == limiter.Granted || d.Reason == limiter.Exhausted)
		}, func() {
			l.Close(ctx)
			_ = s.Close()
		}), nil
	}
}

// turn has the clients decide for a while.
func (r *rows) turn(keys []string) (t keyed, err error) {
	var all sync.WaitGroup
	var mu sync.Mutex
	wrong := 0
	before, err := r.spent()
	if err != nil {
		return t, err
	}
	until := before.at.Add(keyTurn)
	for _, c := range r.clients {
		for range callsEach {
			all.Go(func() {
				dice := rand.New(rand.NewPCG(rand.Uint64(), 7)) //nolint:gosec // it draws lots
				decided, refused := 0, 0
				for time.Now().Before(until) {
					if !c.decide(keys[dice.IntN(len(keys))]) {
						refused++
					}
					decided++
				}
				mu.Lock()
				defer mu.Unlock()
				t.decisions += decided
				wrong += refused
			})
		}
	}
	all.Wait()
	after, err := r.spent()
	if err == nil && wrong > 0 {
		err = fmt.Errorf("%d of %d decisions failed", wrong, t.decisions)
	}
	n := float64(t.decisions)
	t.ns = float64(after.at.Sub(before.at)) / n
	t.processor, t.store = float64(after.processor-before.processor)/n, float64(after.store-before.store)/n
	return t, err
}

// spent is what this process and the server have used so far.
func (r *rows) spent() (so spending, err error) {
	so.at = time.Now()
	if so.store, err = processorTime([]int{r.server.Process.PID()}); err != nil {
		return so, err
	}
	var own syscall.Rusage
	err = syscall.Getrusage(syscall.RUSAGE_SELF, &own)
	so.processor = so.store + time.Duration(own.Utime.Nano()+own.Stime.Nano())
	return so, err
}

// rowTable makes the table: the first are those that the others are set beside, the second
// those that have goals.
func rowTable(all []*rows, turns [][]keyed) *table {
	const faster, cheaper = 1.5, 0.7
	t := &table{
		title: "Postgres, 100,000 keys, each as likely",
		note: fmt.Sprintf("%d clients over a Postgres of their own, as it comes, with %d connections each and %d calls always under way, %s a second for each key. "+
			"All clients are one process and take turns. Processor time is its own and that of the Postgres.", fleet, connections, callsEach, grouped(userLimit)),
		head: []string{"", "decisions/s", "× " + all[0].name, "95 %", "processor µs", "×", "95 %", "of Postgres", ""},
	}
	figures := func(i int, f func(keyed) float64) (own, ratio []float64) {
		for j, turn := range turns[i] {
			own, ratio = append(own, f(turn)), append(ratio, f(turn)/f(turns[0][j]))
		}
		return own, ratio
	}
	for i, r := range all {
		rate, speed := figures(i, func(k keyed) float64 { return 1e9 / k.ns })
		processor, cost := figures(i, func(k keyed) float64 { return k.processor })
		store, _ := figures(i, func(k keyed) float64 { return k.store })
		of, sLow, sHigh := median(speed)
		costs, cLow, cHigh := median(cost)
		verdict := ""
		if i == 1 {
			verdict = fmt.Sprintf("decisions ≥ %g ×: %s, processor ≤ %g ×: %s", faster, met(of >= faster), cheaper, met(costs <= cheaper))
		}
		mid := func(v []float64) float64 { m, _, _ := median(v); return m }
		t.add(r.name, fmt.Sprintf("%.0f", mid(rate)), fmt.Sprintf("%.2f", of), fmt.Sprintf("%.2f–%.2f", sLow, sHigh),
			micros(mid(processor)), fmt.Sprintf("%.2f", costs), fmt.Sprintf("%.2f–%.2f", cLow, cHigh), micros(mid(store)), verdict)
	}
	return t
}
