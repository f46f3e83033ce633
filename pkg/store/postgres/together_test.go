package postgres

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"

	"github.com/weir-dev/weir/internal/testing/postgrestest"
	"github.com/weir-dev/weir/pkg/limiter"
)

// openTogether returns a store whose memory has begun, and since when.
func openTogether(t *testing.T, server *postgrestest.Server) (*Store, limiter.Instant) {
	t.Helper()
	s := openAs(t, server, postgrestest.User, read("clock"))
	if err := s.Refresh(t.Context()); err != nil {
		t.Fatal(err)
	}
	return s, limiter.Instant(server.Do("SELECT since FROM weir.memory")[0][0].(int64)) //nolint:forcetypeassert // its type
}

// TestTakesTogetherFollowStep decides takes of several counters in one transaction, of one of them twice.
func TestTakesTogetherFollowStep(t *testing.T) {
	t.Parallel()
	server := postgrestest.Start(t)
	s, since := openTogether(t, server)
	dice := rand.New(rand.NewPCG(7, 8))
	short, long := limiter.Rate{Limit: 20, Window: limiter.MinWindow}, limiter.Rate{Limit: 50, Window: 3 * limiter.MinWindow}
	for algorithm := limiter.FixedWindow; algorithm <= limiter.LeakyBucket; algorithm++ {
		for _, rates := range [][]limiter.Rate{{short}, {long, short}} {
			name := fmt.Sprintf("%v of %d", algorithm, len(rates))
			p := limiter.Params{Generation: 3, Algorithm: algorithm, Rates: rates, Buckets: 5, MaxDelay: limiter.MinWindow, Any: len(rates) > 1}
			if algorithm != limiter.FixedWindow {
				p.Lifetime = limiter.MinWindow / 10
			}
			states, reasons := map[string]limiter.State{}, map[limiter.Reason]int{}
			for range 60 {
				var asks []*ask
				for i := range 6 {
					c := limiter.Command{Min: 1 + dice.Int64N(3), First: dice.IntN(2) == 0}
					c.Want = c.Min + dice.Int64N(8)
					asks = append(asks, &ask{key: fmt.Sprint(name, (i+3)%5), p: p, c: c})
				}
				if err := s.together(t.Context(), asks); err != nil {
					t.Fatalf("%s: %v", name, err)
				}
				for _, a := range asks {
					a.c.Memory.Since = since
					next, want := p.Step(states[a.key], a.res.Now, a.c)
					if diff := cmp.Diff(want, a.res); diff != "" {
						t.Fatalf("%s, %+v: Step and the store differ (-Step +store):\n%s", name, a.c, diff)
					}
					states[a.key] = next
					reasons[want.Reason]++
				}
				<-time.After(time.Duration(dice.IntN(5)) * time.Millisecond)
			}
			if reasons[limiter.Granted] < 20 || reasons[limiter.Exhausted] < 20 {
				t.Errorf("%s: the answers were %v", name, reasons)
			}
		}
	}
}

// TestNewCountersOfABatchAreThoseOfStep: what is stored of them is the same, and one statement writes
// all of them.
func TestNewCountersOfABatchAreThoseOfStep(t *testing.T) {
	t.Parallel()
	const each = int64(8)
	server := postgrestest.Start(t)
	s, _ := openTogether(t, server)
	facts, err := s.Probe(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	p := limiter.Params{Generation: 4, Rates: []limiter.Rate{{Limit: 5, Window: limiter.Day}}}
	p.Retention.Born = facts.Volatile.Memories // the window began before the memory
	c := limiter.Command{Min: 2, Want: 9, First: true}
	var asks []*ask
	for i := range each {
		asks = append(asks, &ask{key: fmt.Sprint("together ", i), p: p, c: c})
	}
	asks = append(asks, &ask{key: "none", p: p, c: limiter.Command{Min: 6, Want: 6}})
	if err := s.together(t.Context(), asks); err != nil {
		t.Fatal(err)
	}
	for i := range each {
		if _, err := s.decide(t.Context(), fmt.Sprint("alone ", i), p, c); err != nil {
			t.Fatal(err)
		}
	}
	rows := server.Do(`SELECT count(*), count(DISTINCT (keep_until, generation, algorithm, expires, began, pulse, asked, before, rates, index,
		used, entries, log, tenants, shares, terms, ends, server)) FROM weir.counters WHERE key <> 'none'`)
	if rows[0][0] != 2*each || rows[0][1] != int64(1) {
		t.Errorf("%v counters are there, of %v kinds, want %d of 1", rows[0][0], rows[0][1], 2*each)
	}
	if rows := server.Do("SELECT count(DISTINCT cmin::text) FROM weir.counters WHERE key LIKE 'together %'"); rows[0][0] != int64(1) {
		t.Errorf("%v statements wrote the counters that came together, want 1", rows[0][0])
	}
}

// TestEndedWindowsOfABatchBeginAsByStep: what is stored of them is the same, and one statement writes all
// of them. Three asked in the window before, so that each is granted a part.
func TestEndedWindowsOfABatchBeginAsByStep(t *testing.T) {
	t.Parallel()
	const each = int64(6)
	server := postgrestest.Start(t)
	s, _ := openTogether(t, server)
	facts, err := s.Probe(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	p := limiter.Params{Generation: 4, Rates: []limiter.Rate{{Limit: 100, Window: limiter.Day}}}
	p.Retention.Born = facts.Volatile.Memories // the window began before the memory
	take := func(first bool) (together, alone []limiter.Result) {
		c := limiter.Command{Min: 2, Want: 90, First: first}
		var asks []*ask
		for i := range each {
			asks = append(asks, &ask{key: fmt.Sprint("together ", i), p: p, c: c})
		}
		if err := s.together(t.Context(), asks); err != nil {
			t.Fatal(err)
		}
		for i, a := range asks {
			res, err := s.decide(t.Context(), fmt.Sprint("alone ", i), p, c)
			if err != nil {
				t.Fatal(err)
			}
			together, alone = append(together, a.res), append(alone, res)
		}
		return together, alone
	}
	take(true)
	for _, first := range []bool{true, false} {
		for window, asked := range map[string]int{"the one before": 3, "one long before": 0} {
			back := map[string]int{"the one before": 1, "one long before": 2}[window]
			server.Do(fmt.Sprintf("UPDATE weir.counters SET index = ARRAY[index[1] - %d], pulse = pulse - %d, asked = 3, used = '{7}'", back, back))
			together, alone := take(first)
			want := int64(90)
			if asked > 0 {
				want = map[bool]int64{true: 34, false: 25}[first] // of four, or three
			}
			for i := range each {
				if a, b := together[i], alone[i]; a.Granted != want || b.Granted != want || a.Windows != b.Windows || a.Remaining != b.Remaining || a.Reason != b.Reason {
					t.Errorf("after %s, first %t: granted %+v, by step %+v, want %d", window, first, a, b, want)
				}
			}
			rows := server.Do(`SELECT count(*), count(DISTINCT (generation, algorithm, expires, began, pulse, asked, before, rates, index,
				used, entries, log, tenants, shares, terms, ends, server)) FROM weir.counters`)
			if rows[0][0] != 2*each || rows[0][1] != int64(1) {
				t.Errorf("after %s, first %t: %v counters are there, of %v kinds, want %d of 1", window, first, rows[0][0], rows[0][1], 2*each)
			}
			if rows := server.Do("SELECT count(DISTINCT cmin::text) FROM weir.counters WHERE key LIKE 'together %'"); rows[0][0] != int64(1) {
				t.Errorf("%v statements wrote the counters that came together, want 1", rows[0][0])
			}
		}
	}
}

// TestTakesOfOneLimitShareATransaction, and those of another limit have their own.
func TestTakesOfOneLimitShareATransaction(t *testing.T) {
	t.Parallel()
	server := postgrestest.Start(t)
	s, _ := openTogether(t, server)
	// On a busy machine a transaction may wait longer for another than it should, and its takes are
	// decided one by one.
	var rows [][]any
	for round := range 20 {
		var asks []*ask
		for i := range 12 {
			p := limiter.Params{Generation: int64(1 + i%2), Rates: []limiter.Rate{{Limit: 5, Window: 60 * limiter.Second}}}
			asks = append(asks, &ask{key: fmt.Sprintf("cold %d %d", round, i), p: p, c: limiter.Command{Min: 1, Want: 2, First: true}})
		}
		s.fly(t.Context(), append([]*ask(nil), asks...))
		for _, a := range asks {
			if a.err != nil || a.res.Limit != 5 {
				t.Errorf("%s: %+v, %v", a.key, a.res, a.err)
			}
		}
		rows = server.Do(fmt.Sprintf("SELECT count(*), count(DISTINCT xmin::text) FROM weir.counters WHERE key LIKE 'cold %d %%'", round))
		if rows[0][0] == int64(12) && rows[0][1] == int64(2) {
			return
		}
	}
	t.Errorf("there are counters and transactions %v, want 12 and 2", rows[0])
}

// TestTakesTogetherDoNotWaitForACounter that another transaction holds: those of other counters are
// decided, each for itself.
func TestTakesTogetherDoNotWaitForACounter(t *testing.T) {
	t.Parallel()
	server := postgrestest.Start(t)
	openTogether(t, server)
	s, err := Dial(Options{Address: server.Addr, Database: postgrestest.Database, User: postgrestest.User, Timeout: 3 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	p := limiter.Params{Generation: 1, Rates: []limiter.Rate{{Limit: 5, Window: 60 * limiter.Second}}}
	take := func(keys ...string) (asks []*ask) {
		for _, key := range keys {
			asks = append(asks, &ask{key: key, p: p, c: limiter.Command{Min: 1, Want: 1}})
		}
		s.fly(t.Context(), append([]*ask(nil), asks...))
		return asks
	}
	for _, a := range take("a", "b", "c") {
		if a.err != nil {
			t.Fatal(a.err)
		}
	}
	conn, err := s.pool.Acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Release()
	held := func(tx pgx.Tx) error {
		if _, err := tx.Exec(t.Context(), "SELECT FROM weir.counters WHERE key = 'a' FOR UPDATE"); err != nil {
			return err
		}
		asks := take("a", "b", "c")
		for _, a := range asks[1:] {
			if a.err != nil || a.res.Windows.N != 1 {
				t.Errorf("%s: %+v, %v", a.key, a.res, a.err)
			}
		}
		if asks[0].err == nil {
			t.Error("a counter was decided that another transaction holds")
		}
		return nil
	}
	if err := pgx.BeginFunc(context.WithoutCancel(t.Context()), conn, held); err != nil {
		t.Fatal(err)
	}
}
