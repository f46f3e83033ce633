package postgres

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/weir-dev/weir/pkg/limiter"
	"github.com/weir-dev/weir/pkg/store"
	"github.com/weir-dev/weir/pkg/store/lane"
	"github.com/weir-dev/weir/pkg/store/storetest/postgrestest"
)

// openKnowing returns a store whose memories know all windows and the limit that keyOf
// names.
func openKnowing(t *testing.T, server *postgrestest.Server) *Store {
	t.Helper()
	s := openAs(t, server, postgrestest.User, read("clock"))
	if err := s.Refresh(t.Context()); err != nil {
		t.Fatal(err)
	}
	server.Do("UPDATE weir.memory SET since = 0, named = 0, writer = pg_current_xact_id()::xid")
	server.Do("UPDATE weir.memory_durable SET since = 0, writer = pg_current_xact_id()::xid")
	return s
}

// empty forgets that there were counters.
func empty(server *postgrestest.Server) {
	for _, table := range []string{"weir.counters", "weir.counters_durable", "weir.volatile"} {
		server.Do("DELETE FROM " + table)
	}
}

func keyOf(hash string) store.Key {
	return store.Key{Scope: store.Scope{Cluster: "c", Namespace: "n", Policy: "p", Limit: "l"}, Hash: hash}
}

func perMonth(limit int64, durable bool) limiter.Params {
	p := limiter.Params{Generation: 1, Rates: []limiter.Rate{{Limit: limit, Window: limiter.MaxWindow}}}
	p.Retention.Durable = durable
	return p
}

var takeOne = limiter.Command{Min: 1, Want: 1}

func applyTo(t *testing.T, s *Store, hash string, p limiter.Params) limiter.Result {
	t.Helper()
	res, err := s.Apply(t.Context(), keyOf(hash), p, takeOne)
	if err != nil {
		t.Fatal(err)
	}
	return res
}

// join lets calls come, as many as the limit each asks for, and returns when all
// wait but the first, which hangs.
func join(t *testing.T, server *postgrestest.Server, s *Store, durable bool, hashes []string, then func(i int, res limiter.Result, err error)) *sync.WaitGroup {
	t.Helper()
	l := s.senders[flag(durable)]
	var calls sync.WaitGroup
	for i, hash := range hashes {
		calls.Go(func() {
			res, err := s.Apply(context.Background(), keyOf(hash), perMonth(int64(i)+1, durable), takeOne)
			then(i, res, err)
		})
		for deadline := time.Now().Add(5 * time.Second); l.Waiting() != i; <-time.After(time.Millisecond) {
			if time.Now().After(deadline) {
				t.Fatalf("%d calls wait, want %d", l.Waiting(), i)
			}
		}
		for i == 0 && server.Do("SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'")[0][0] == int64(0) {
			<-time.After(time.Millisecond)
		}
	}
	return &calls
}

func numbered(n int) []string {
	list := make([]string, n)
	for i := range list {
		list[i] = fmt.Sprintf("%03d", i)
	}
	return list
}

// TestCallsThatWaitShareATransaction distinguishes transactions by the rows they made.
func TestCallsThatWaitShareATransaction(t *testing.T) {
	t.Parallel()
	server := postgrestest.Start(t)
	for durable, table := range map[bool]string{false: "weir.counters", true: "weir.counters_durable"} {
		const calls = 40
		s := openKnowing(t, server)
		empty(server)
		if !durable {
			applyTo(t, s, "before", perMonth(1, false))
		}
		l := s.senders[flag(durable)]
		l.Lane = lane.New(time.Hour, l.carry)
		release := server.Hold("LOCK TABLE " + table)
		all := join(t, server, s, durable, numbered(calls), func(i int, res limiter.Result, err error) {
			if err != nil || res.Granted != 1 || res.Limit != int64(i)+1 {
				t.Errorf("call %d: %+v, error %v", i, res, err)
			}
		})
		release()
		all.Wait()
		row := server.Do("SELECT count(*), count(DISTINCT xmin::text) FROM " + table + " WHERE key <> 'c/n/p/l/before'")[0]
		if row[0] != int64(calls) || row[1] != int64(2) {
			t.Errorf("%v calls in %v transactions of %s, want %d in 2", row[0], row[1], table, calls)
		}
	}
}

// TestACallThatFailsFailsNoOther lets a trigger refuse one counter, and somebody hold
// another.
func TestACallThatFailsFailsNoOther(t *testing.T) {
	t.Parallel()
	server := postgrestest.Start(t)
	s := openKnowing(t, server)
	hashes := numbered(10)
	applyTo(t, s, "before", perMonth(1, false))
	applyTo(t, s, hashes[7], perMonth(8, false))
	server.Do(`CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE 'refused'; END $$`)
	server.Do(`CREATE TRIGGER refuse BEFORE INSERT ON weir.counters FOR EACH ROW WHEN (NEW.key = 'c/n/p/l/003') EXECUTE FUNCTION refuse()`)
	l := s.senders[0]
	l.Lane = lane.New(time.Hour, l.carry)
	release := server.Hold("LOCK TABLE weir.counters")
	var answered atomic.Int64
	all := join(t, server, s, false, hashes, func(i int, res limiter.Result, err error) {
		switch {
		case i == 3 && (err == nil || !strings.Contains(err.Error(), "refused")):
			t.Errorf("the call that is refused: %+v, error %v", res, err)
		case i != 3 && (err != nil || res.Granted != 1):
			t.Errorf("call %d: %+v, error %v", i, res, err)
		}
		answered.Add(1)
	})
	release()
	all.Wait()
	if answered.Load() != int64(len(hashes)) {
		t.Errorf("%d of %d calls were answered", answered.Load(), len(hashes))
	}
}

// TestACounterThatSomebodyHoldsKeepsNoOther waits for all answers but one before it lets go.
func TestACounterThatSomebodyHoldsKeepsNoOther(t *testing.T) {
	t.Parallel()
	server := postgrestest.Start(t)
	s := openKnowing(t, server)
	hashes := numbered(10)
	for i, hash := range hashes {
		p := perMonth(int64(i)+1, false)
		p.Rates[0].Limit = 1000
		applyTo(t, s, hash, p)
	}
	release := server.Hold("SELECT 1 FROM weir.counters WHERE key = 'c/n/p/l/007' FOR UPDATE")
	l := s.senders[0]
	asks := asksOf(hashes, perMonth(1000, false))
	start := time.Now()
	l.share(t.Context(), asks)
	var others, held sync.WaitGroup
	for i, a := range asks {
		group := &others
		if i == 7 {
			group = &held
		}
		group.Go(func() {
			if a.decided {
				return
			}
			if res, err := s.alone(t.Context(), a.key, a.params, a.cmd); err != nil || res.Granted != 1 {
				t.Errorf("%s: %+v, error %v", a.key, res, err)
			}
		})
	}
	others.Wait()
	if took := time.Since(start); took > 10*time.Second { // less than the time-out of the server
		t.Errorf("the others waited for %v", took)
	}
	release()
	held.Wait()
}

func asksOf(hashes []string, p limiter.Params) []*ask {
	var asks []*ask
	for _, hash := range hashes {
		asks = append(asks, &ask{ctx: context.Background(), key: keyOf(hash).String(), params: p, cmd: takeOne})
	}
	return asks
}

// TestBatchesOfSeveralClientsNeitherBlockNorOverAdmit lets them ask for overlapping counters,
// new ones among them, beside calls that travel alone and others that refresh.
func TestBatchesOfSeveralClientsNeitherBlockNorOverAdmit(t *testing.T) {
	t.Parallel()
	const clients, batches, counters, limit = 6, 60, 24, 40
	server := postgrestest.Start(t, "deadlock_timeout=20ms") // shorter than a batch waits for a lock
	for _, durable := range []bool{false, true} {
		stores := []*Store{openKnowing(t, server), openAs(t, server, postgrestest.User, read("clock"))}
		empty(server)
		if !durable {
			applyTo(t, stores[0], "before", perMonth(1, false))
		}
		p := perMonth(limit, durable)
		hashes := numbered(counters)
		var granted [counters]atomic.Int64
		var together atomic.Int64
		var all sync.WaitGroup
		for client := range clients {
			all.Go(func() {
				s, dice := stores[client%len(stores)], rand.New(rand.NewPCG(uint64(client), 9))
				for range batches {
					some := slices.DeleteFunc(slices.Clone(hashes), func(string) bool { return dice.IntN(2) == 0 })
					asks := asksOf(some, p)
					if err := s.senders[flag(durable)].decide(context.Background(), asks); err != nil && codeOf(err) != lockNotAvailable {
						t.Errorf("a batch failed: %v", err)
						return
					}
					for _, a := range asks {
						if a.decided {
							together.Add(1)
						} else if a.res, a.err = s.alone(context.Background(), a.key, p, a.cmd); a.err != nil {
							t.Error(a.err)
						}
						granted[slices.Index(hashes, a.key[len("c/n/p/l/"):])].Add(a.res.Granted)
					}
					if err := s.Refresh(context.Background()); err != nil {
						t.Error(err)
					}
				}
			})
		}
		all.Wait()
		for i := range granted {
			if n := granted[i].Load(); n != limit {
				t.Errorf("counter %d granted %d, want %d, durable is %t", i, n, limit, durable)
			}
		}
		if n := together.Load(); n < clients*batches*counters/4 {
			t.Errorf("batches decided only %d commands, durable is %t", n, durable)
		}
	}
}

// TestTheLeaseOfTheClockIsRenewedBesideBatches lets it end soon, and be over.
func TestTheLeaseOfTheClockIsRenewedBesideBatches(t *testing.T) {
	t.Parallel()
	server := postgrestest.Start(t)
	s := openKnowing(t, server)
	applyTo(t, s, "before", perMonth(1, false))
	const soon = "(extract(epoch FROM clock_timestamp()) * 1000000)::bigint + "
	for ends, decided := range map[string]bool{"400000": true, "-1": false} {
		l := s.senders[0]
		for _, memory := range []string{"weir.memory", "weir.memory_durable"} {
			server.Do("UPDATE " + memory + " SET leased = " + soon + ends + ", writer = pg_current_xact_id()::xid")
		}
		before := server.Do("SELECT leased FROM weir.memory")[0][0].(int64)
		asks := asksOf([]string{"a" + ends, "b" + ends}, perMonth(5, false))
		if err := l.decide(context.Background(), asks); err != nil {
			t.Fatal(err)
		}
		l.Wait()
		renewed := server.Do("SELECT leased FROM weir.memory")[0][0].(int64) > before
		if asks[0].decided != decided || asks[1].decided != decided || renewed != decided {
			t.Errorf("a lease that ends in %s µs: decided %t and %t, renewed %t, want %t",
				ends, asks[0].decided, asks[1].decided, renewed, decided)
		}
	}
}

// TestABatchLeavesOutWhatItMustNotDecide makes counters that others hold or keep elsewhere.
func TestABatchLeavesOutWhatItMustNotDecide(t *testing.T) {
	t.Parallel()
	server := postgrestest.Start(t)
	s := openKnowing(t, server)
	applyTo(t, s, "kept", perMonth(5, true))
	applyTo(t, s, "before", perMonth(1, false))
	conn, err := pgx.Connect(t.Context(), "postgres://"+postgrestest.User+"@"+server.Addr+"/"+postgrestest.Database+"?sslmode=disable")
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.Background())
	if _, err := conn.Exec(t.Context(), "SELECT pg_advisory_lock(hashtextextended('c/n/p/l/made', 0))"); err != nil {
		t.Fatal(err)
	}
	asks := asksOf([]string{"free", "kept", "made"}, perMonth(5, false))
	if err := s.senders[0].decide(context.Background(), asks); err != nil {
		t.Fatal(err)
	}
	for i, want := range []bool{true, false, false} {
		if asks[i].decided != want {
			t.Errorf("%s: decided is %t, want %t", asks[i].key, asks[i].decided, want)
		}
	}
	asks = asksOf([]string{"new"}, perMonth(5, true)) // its limit had volatile counters
	if err := s.senders[1].decide(context.Background(), asks); err != nil || asks[0].decided {
		t.Errorf("a durable counter of a limit that had volatile ones: decided is %t, error %v", asks[0].decided, err)
	}
}

// TestAFirstTakeIsDecidedByItself in the statement of batches, which makes a counter in one
// round trip, and waits no longer than its caller.
func TestAFirstTakeIsDecidedByItself(t *testing.T) {
	t.Parallel()
	server := postgrestest.Start(t)
	s := openKnowing(t, server)
	applyTo(t, s, "before", perMonth(1, false))
	a := asksOf([]string{"a"}, perMonth(5, false))
	a[0].cmd.First = true
	s.senders[0].carry(t.Context(), a)
	if !a[0].decided || a[0].err != nil || a[0].res.Granted != 1 {
		t.Errorf("decided is %t, %+v, error %v", a[0].decided, a[0].res, a[0].err)
	}
	server.Pause()
	defer server.Resume()
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	start := time.Now()
	_, err := s.Apply(ctx, keyOf("b"), perMonth(5, false), limiter.Command{Min: 1, Want: 1, First: true})
	if _, ok := errors.AsType[*store.UnavailableError](err); !ok || time.Since(start) > 5*time.Second {
		t.Errorf("after %v the error is %v", time.Since(start), err)
	}
}
