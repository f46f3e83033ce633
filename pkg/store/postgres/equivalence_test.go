package postgres

import (
	"context"
	_ "embed"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"

	"github.com/weir-dev/weir/internal/testing/postgrestest"
	"github.com/weir-dev/weir/internal/testing/seeds"
	"github.com/weir-dev/weir/pkg/limiter"
	"github.com/weir-dev/weir/pkg/store/storetest"
)

// testClock takes the place of sql/clock.sql. All other text is what runs in
// production.
//
//go:embed testdata/clock.sql
var testClock string

// TestFunctionsFollowStep compares weir.step and Step on thousands of timelines.
func TestFunctionsFollowStep(t *testing.T) {
	t.Parallel()
	const whole, calls = 1_500, 20
	timelines := seeds.Of(whole)
	s := newTimelineStore(t)
	seen := map[string]int{}
	for seed := range uint64(timelines) {
		l := newTimeline(rand.NewPCG(seed, 0).Uint64, calls, asItIs)
		seen[fmt.Sprintf("durable is %t", l.durable)]++
		if diff := s.replay(t, l); diff != "" {
			t.Fatalf("timeline of seed %d: %s", seed, diff)
		}
		for _, c := range l.calls {
			seen[c.want.Reason.String()]++
			seen[fmt.Sprintf("%v from %v", c.want.Algorithm, c.was)]++
			seen[fmt.Sprintf("%v by %v", c.want.Reason, c.want.Algorithm)]++
		}
	}
	for a := limiter.FixedWindow; a <= limiter.LeakyBucket; a++ {
		for b := limiter.FixedWindow; b <= limiter.LeakyBucket; b++ {
			if n := seen[fmt.Sprintf("%v from %v", a, b)]; n*whole < 5*timelines {
				t.Errorf("only %d edits lead to %v from %v", n, a, b)
			}
		}
		for reason := limiter.Granted; reason <= limiter.Forfeited; reason++ {
			amnesiac := a <= limiter.SlidingLog // a bucket is full instead
			if n := seen[fmt.Sprintf("%v by %v", reason, a)]; n*whole < 20*timelines && (reason != limiter.Amnesia || amnesiac) {
				t.Errorf("only %d calls ended in %v by %v", n, reason, a)
			}
		}
	}
	t.Log(seen)
}

// TestCountFollowsStep compares them for what count.sql may decide.
func TestCountFollowsStep(t *testing.T) {
	t.Parallel()
	const calls = 40
	timelines := seeds.Of(1_000)
	s := newTimelineStore(t)
	counted := 0
	for seed := range uint64(timelines) {
		l := newTimeline(rand.NewPCG(seed, 2).Uint64, calls, asOneWindow)
		if diff := s.replay(t, l); diff != "" {
			t.Fatalf("timeline of seed %d: %s", seed, diff)
		}
		for _, c := range l.calls {
			if c.counted {
				counted++
			}
		}
	}
	if counted < timelines {
		t.Errorf("count.sql decided only %d calls", counted)
	}
	t.Logf("count.sql decided %d of %d calls", counted, timelines*calls)
}

// FuzzSQLEquivalence compares weir.step and Step on a timeline made from bytes.
func FuzzSQLEquivalence(f *testing.F) {
	for seed := range uint64(32) {
		choices := rand.NewPCG(seed, 1)
		var data []byte
		for range 240 {
			data = append(data, byte(choices.Uint64()))
		}
		f.Add(data)
	}
	s := newTimelineStore(f)
	f.Fuzz(func(t *testing.T, data []byte) {
		const callBytes = 16 // most calls need fewer choices
		calls := min(len(data)/callBytes, 100)
		for _, shape := range []shape{asItIs, asOneWindow} {
			left := data
			d := func() uint64 {
				var word [8]byte
				left = left[copy(word[:2], left):]
				return binary.LittleEndian.Uint64(word[:])
			}
			if diff := s.replay(t, newTimeline(d, calls, shape)); diff != "" {
				t.Fatal(diff)
			}
		}
	})
}

// A timeline is a sequence of calls for one counter and what Step makes of them.
type timeline struct {
	durable bool // is the counter
	memory  limiter.Memory
	calls   []call
	end     held
}

type call struct {
	storetest.Call
	was     limiter.Algorithm // of the state before
	want    limiter.Result
	counted bool // count.sql decided
}

// held is what the store keeps of one counter, and of what it dropped.
type held struct {
	State     limiter.State
	KeepUntil limiter.Instant
	Latest    limiter.Instant
}

// A shape makes other calls of those of a timeline.
type shape func(storetest.Call) storetest.Call

func asItIs(c storetest.Call) storetest.Call { return c }

// asOneWindow makes calls for one window that has room for many of them, and that few
// of them split.
func asOneWindow(c storetest.Call) storetest.Call {
	r := c.Params.Rates[0]
	r.Burst, r.Limit = 0, min(50*r.Limit, limiter.MaxLimit)
	c.Params = limiter.Params{Generation: c.Params.Generation, Since: c.Params.Since, Rates: []limiter.Rate{r}}
	if c.Command.Op == limiter.Take {
		c.Command.Want = min(c.Command.Want, c.Command.Min+7)
	}
	if c.Command.Min == 2 {
		c.Params.Fairness.Default = 1 // no holder should send it in between
	}
	return c
}

func newTimeline(d storetest.Dice, calls int, reshape shape) timeline {
	l := storetest.NewTimeline(d)
	made := timeline{durable: d()%2 == 0, memory: l.Memory, end: held{Latest: l.Memory.Latest}}
	for range calls {
		c := reshape(l.Next())
		c.Params.Retention.Durable = made.durable
		switch d() % 32 {
		case 0, 1:
			c.Command.Floor = c.Now + limiter.Instant(d()%5) - min(c.Now, 2)
		case 2:
			c.Params.Retention.Born = []limiter.MemoryID{theMemory - 1, theMemory}
		case 3:
			c.Params.Retention.Born = []limiter.MemoryID{theMemory + 1}
		case 4:
			c.Params.Retention.Resume = made.durable
		}
		was := made.end.State.Algorithm
		res := made.end.apply(l.Memory.Since, c)
		l.Answered(c, res)
		made.calls = append(made.calls, call{Call: c, was: was, want: res})
	}
	return made
}

// theMemory is the name of the memory of every timeline.
const theMemory limiter.MemoryID = 1 << 52

// apply runs a call as the store does: a new counter makes room for itself.
func (h *held) apply(since limiter.Instant, c storetest.Call) limiter.Result {
	cmd := c.Command
	if c.Params.Retention.Resume || c.Params.Retention.IsBornIn(theMemory) {
		since = 0
	}
	cmd.Memory = limiter.Memory{Since: since, Latest: h.Latest}
	next, res := c.Params.Step(h.State, c.Now, cmd)
	if cmd.Op == limiter.Peek {
		return res
	}
	if h.State.N == 0 && h.Latest <= c.Now-limiter.Instant(limiter.MinWindow) {
		h.Latest = c.Now
	}
	if !next.Equal(h.State) {
		h.State, h.KeepUntil = next, c.Now.Add(next.KeepFor(c.Now))
	}
	return res
}

// A timelineStore replays timelines on one counter of a real server.
type timelineStore struct {
	*Store
	conn *pgx.Conn
}

func newTimelineStore(t testing.TB) timelineStore {
	server := postgrestest.Start(t)
	const patience = 30 * time.Second // the machine is busy with other tests
	config, err := Options{Address: server.Addr, Database: postgrestest.Database, User: postgrestest.User, Timeout: patience}.config()
	if err != nil {
		t.Fatal(err)
	}
	config.ConnConfig.RuntimeParams["weir.now"] = "1"
	s, err := newStore(config, newProgram(testClock), patience)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	if err := s.Refresh(context.Background()); err != nil {
		t.Fatal(err)
	}
	conn, err := pgx.ConnectConfig(context.Background(), config.ConnConfig)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close(context.Background()) })
	return timelineStore{Store: s, conn: conn}
}

// replay runs the timeline in one round trip and returns how the results, or the
// counter it leaves, differ from Step's.
func (s timelineStore) replay(t testing.TB, l timeline) string {
	t.Helper()
	counters, memory, named := "weir.counters", "weir.memory", ", named = $1"
	if l.durable {
		counters, memory, named = "weir.counters_durable", "weir.memory_durable", ""
	}
	batch := &pgx.Batch{}
	for _, table := range []string{"weir.counters", "weir.counters_durable", "weir.volatile"} {
		batch.Queue("DELETE FROM " + table)
	}
	batch.Queue("UPDATE "+memory+" SET since = $1, latest = $2, id = $3, leased = $4, writer = pg_current_xact_id()::xid"+named,
		int64(l.memory.Since), int64(l.memory.Latest), int64(theMemory), int64(math.MaxInt64))
	for _, c := range l.calls {
		batch.Queue("SELECT set_config('weir.now', $1, false)", fmt.Sprint(int64(c.Now)))
		sql, args := s.program.apply(c.Params, c.Command)
		batch.Queue(sql, args...)
	}
	batch.Queue("SELECT latest FROM " + memory)
	batch.Queue(`SELECT keep_until, generation, algorithm, expires, began, pulse, asked, before,
		rates, index, used, entries, log, tenants, shares FROM ` + counters)
	results := s.conn.SendBatch(context.Background(), batch)
	defer results.Close()
	for range 4 {
		if _, err := results.Exec(); err != nil {
			t.Fatal(err)
		}
	}
	for i, c := range l.calls {
		if _, err := results.Exec(); err != nil {
			t.Fatal(err)
		}
		got, counted, err := answer(c, results.QueryRow())
		if err != nil {
			t.Fatalf("call %d of %+v: %v", i, l.calls[:i+1], err)
		}
		l.calls[i].counted = counted
		if diff := cmp.Diff(c.want, got); diff != "" {
			return fmt.Sprintf("call %d of memory %+v (-Step +SQL):\n%s\nafter %+v", i, l.memory, diff, l.calls[:i+1])
		}
	}
	var got held
	if err := results.QueryRow().Scan(&got.Latest); err != nil {
		t.Fatal(err)
	}
	if err := got.scan(results.QueryRow()); err != nil {
		t.Fatal(err)
	}
	if got.KeepUntil < l.end.KeepUntil {
		return fmt.Sprintf("the counter is kept until %d, %d too short: %+v", got.KeepUntil, l.end.KeepUntil-got.KeepUntil, l.end)
	}
	got.KeepUntil = l.end.KeepUntil
	return cmp.Diff(l.end, got, cmp.Comparer(limiter.State.Equal))
}

// apply returns SQL that does in one statement what Store.Apply does in two.
func (g program) apply(p limiter.Params, c limiter.Command) (string, []any) {
	sql, args := g.call(p, c), encode("state", p, c)
	if !mayCount(p, c) {
		return sql, args
	}
	count := regexp.MustCompile(`\$\d+`).ReplaceAllStringFunc(g.of(p.Retention).count, func(parameter string) string {
		n, _ := strconv.Atoi(parameter[1:]) // it is digits
		return fmt.Sprintf("$%d", len(args)+n)
	})
	return "WITH counted (used, ends, now) AS (" + count + ") " +
			"SELECT c.used, c.ends, c.now, CASE WHEN c.used IS NULL THEN (" + sql + ") END FROM (SELECT) one LEFT JOIN counted c ON true",
		slices.Concat(args, countArgs("state", p, c))
}

// answer reads the answer to a call, and whether count.sql gave it.
func answer(c call, row pgx.Row) (res limiter.Result, byCount bool, err error) {
	var reply []int64
	var used *int64
	var ends, now *time.Time
	if !mayCount(c.Params, c.Command) {
		err = row.Scan(&reply)
	} else {
		err = row.Scan(&used, &ends, &now, &reply)
	}
	switch {
	case err != nil:
		return res, false, err
	case used != nil:
		res, err = count{*used, *ends, *now}.result(c.Params, c.Command)
		return res, true, err
	}
	res, err = decode(reply)
	return res, false, err
}

// scan reads a counter, if there is one.
func (h *held) scan(row pgx.Row) error {
	var rates, index, used, entries, log, shares []int64
	var tenants []string
	s := &h.State
	err := row.Scan(&h.KeepUntil, &s.Generation, &s.Algorithm, &s.Expires, &s.Began, &s.Pulse, &s.Asked, &s.Before,
		&rates, &index, &used, &entries, &log, &tenants, &shares)
	if errors.Is(err, pgx.ErrNoRows) {
		return nil
	}
	s.N = len(index)
	for i := range s.Slice() {
		m := &s.Meters[i]
		r := rates[5*i:]
		m.Rate = limiter.Rate{Limit: r[0], Window: limiter.Micros(r[1]), Burst: r[2], Offset: limiter.Micros(r[3]), Monthly: r[4] == 1}
		m.Index, m.Used = index[i], used[i]
		if s.Algorithm == limiter.SlidingWindow || s.Algorithm == limiter.SlidingLog {
			for range entries[i] {
				m.Log = append(m.Log, limiter.Entry{At: limiter.Instant(log[0]), Count: log[1]})
				m.Used -= log[1] // so that it is 0, as in Go, when the sum is right
				log = log[2:]
			}
		}
	}
	for i, tenant := range tenants {
		s.Tenants = append(s.Tenants, limiter.TenantUse{Tenant: tenant, Used: shares[i]})
	}
	slices.SortFunc(s.Tenants, func(a, b limiter.TenantUse) int { return strings.Compare(a.Tenant, b.Tenant) })
	return err
}
