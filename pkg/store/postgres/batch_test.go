package postgres

import (
	"context"
	"encoding/binary"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-dev/weir/pkg/limiter"
	"github.com/weir-dev/weir/pkg/store/storetest"
)

// TestBatchesFollowStep compares weir.batch and Step where several counters of a limit are
// asked for at once, each in its own way.
func TestBatchesFollowStep(t *testing.T) {
	t.Parallel()
	const timelines, calls = 120, 30
	s := newTimelineStore(t)
	seen := map[string]int{}
	for seed := range uint64(timelines) {
		w := newWorld(s, rand.NewPCG(seed, 3).Uint64)
		if diff := w.run(t, calls); diff != "" {
			t.Fatalf("timeline of seed %d: %s", seed, diff)
		}
		for what, n := range w.seen {
			seen[what] += n
		}
	}
	for _, durable := range []bool{false, true} {
		for _, what := range []string{
			"Granted", "Exhausted", "TooLarge", "Amnesia", "new", "in a new window", "in an open window",
			"set back", "left out",
		} {
			if n := seen[fmt.Sprintf("%s, durable is %t", what, durable)]; n < 20 {
				t.Errorf("only %d decisions are %s, durable is %t", n, what, durable)
			}
		}
	}
	t.Log(seen)
}

// FuzzBatchEquivalence compares them on a timeline made from bytes.
func FuzzBatchEquivalence(f *testing.F) {
	for seed := range uint64(8) {
		choices := rand.NewPCG(seed, 4)
		var data []byte
		for range 1000 {
			data = append(data, byte(choices.Uint64()))
		}
		f.Add(data)
	}
	s := newTimelineStore(f)
	f.Fuzz(func(t *testing.T, data []byte) {
		const callBytes = 60
		calls := min(len(data)/callBytes, 50)
		d := func() uint64 {
			var word [8]byte
			data = data[copy(word[:2], data):]
			return binary.LittleEndian.Uint64(word[:])
		}
		if diff := newWorld(s, d).run(t, calls); diff != "" {
			t.Fatal(diff)
		}
	})
}

// A world is counters of one limit on a server, and what Step makes of them.
type world struct {
	timelineStore

	dice     storetest.Dice
	timeline *storetest.Timeline
	durable  bool
	setBack  bool // the limit was, when its memory began
	latest   limiter.Instant
	held     map[string]held
	seen     map[string]int // how often each kind of decision was made
}

func newWorld(s timelineStore, d storetest.Dice) *world {
	w := &world{timelineStore: s, dice: d, timeline: storetest.NewTimeline(d), held: map[string]held{}, seen: map[string]int{}}
	w.durable, w.setBack, w.latest = d()%2 == 0, d()%4 == 0, w.timeline.Memory.Latest
	return w
}

// run makes calls and returns how the results, or the counters they leave, differ from
// Step's.
func (w *world) run(t *testing.T, calls int) string {
	t.Helper()
	w.begin(t)
	for i := range calls {
		c := asOneWindow(w.timeline.Next())
		c.Params.Retention.Durable = w.durable
		var asks []*ask
		if c.Command.Op != limiter.Take || w.dice()%8 == 0 {
			asks = []*ask{{key: "s/a", params: c.Params, cmd: c.Command}}
		} else {
			c.Params.Fairness.Default = 0
			asks = w.variants(c)
		}
		w.do(t, "SELECT set_config('weir.now', $1, false)", fmt.Sprint(int64(c.Now)))
		if diff := w.ask(t, c.Now, asks); diff != "" {
			return fmt.Sprintf("call %d at %d of memory %+v: %s\nof %s", i, c.Now, w.timeline.Memory, diff, described(asks))
		}
		w.timeline.Answered(storetest.Call{Now: c.Now, Params: asks[0].params, Command: asks[0].cmd}, asks[0].res)
	}
	return w.compare(t)
}

func described(asks []*ask) string {
	text := ""
	for _, a := range asks {
		text += fmt.Sprintf("%s: %+v of %+v\n", a.key, a.cmd, a.params)
	}
	return text
}

func (w *world) do(t *testing.T, sql string, args ...any) {
	t.Helper()
	if _, err := w.conn.Exec(context.Background(), sql, args...); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
}

func (w *world) tables() (counters, memory string) {
	if w.durable {
		return "weir.counters_durable", "weir.memory_durable"
	}
	return "weir.counters", "weir.memory"
}

func (w *world) begin(t *testing.T) {
	t.Helper()
	for _, table := range []string{"weir.counters", "weir.counters_durable", "weir.volatile", "weir.resets"} {
		w.do(t, "DELETE FROM "+table)
	}
	_, memory := w.tables()
	named := ""
	if !w.durable {
		named = ", named = $1"
	}
	w.do(t, "UPDATE "+memory+" SET since = $1, latest = $2, id = $3, leased = $4, writer = pg_current_xact_id()::xid"+named,
		int64(w.timeline.Memory.Since), int64(w.latest), int64(theMemory), int64(math.MaxInt64))
	if w.setBack {
		w.do(t, "INSERT INTO weir.resets VALUES ('s', $1)", int64(w.timeline.Memory.Since))
	}
}

// variants returns a call as others of the same limit make it at the same time.
func (w *world) variants(c storetest.Call) []*ask {
	var asks []*ask
	for _, key := range []string{"s/a", "s/b", "s/c", "s/d"} {
		a := &ask{key: key, params: c.Params, cmd: c.Command}
		a.cmd.Want += int64(w.dice() % 9)
		a.cmd.First = w.dice()%3 == 0
		switch w.dice() % 24 {
		case 0, 1:
			a.cmd.Floor = c.Now + limiter.Instant(w.dice()%5) - min(c.Now, 2)
		case 2:
			a.params.Retention.Born = []limiter.MemoryID{theMemory - 1, theMemory}
		case 3:
			a.params.Retention.Born = []limiter.MemoryID{theMemory + 1}
		case 4:
			a.params.Retention.Resume = w.durable
		case 5:
			a.params.Rates = slices.Clone(a.params.Rates)
			a.params.Rates[0].Limit = max(1, a.params.Rates[0].Limit/2)
		case 6:
			a.params.Generation++
		case 7:
			a.cmd.Min = min(a.params.Rates[0].Limit+int64(w.dice()%2), limiter.MaxLimit)
			a.cmd.Want = a.cmd.Min
		case 8, 9, 10:
			continue
		case 11:
			a.params.Since = c.Now - min(c.Now, limiter.Instant(w.dice()%3))
		}
		asks = append(asks, a)
	}
	if len(asks) == 0 {
		asks = append(asks, &ask{key: "s/a", params: c.Params, cmd: c.Command})
	}
	return asks
}

// ask lets weir.batch decide what it can, and weir.step the rest.
func (w *world) ask(t *testing.T, now limiter.Instant, asks []*ask) string {
	t.Helper()
	may := true
	for _, a := range asks {
		may = may && mayShare(a.params, a.cmd)
	}
	if may {
		got, err := readBatch(w.conn.QueryRow(context.Background(), w.program.of(asks[0].params.Retention).batch, batchArgs(asks)...))
		if err != nil && codeOf(err) != lockNotAvailable { // for which vacuuming may be the cause
			t.Fatalf("batch: %v\n%s", err, described(asks))
		}
		if err := got.answer(asks); err != nil {
			t.Fatal(err)
		}
	}
	before, made := maps.Clone(w.held), false
	for _, a := range asks {
		if a.decided {
			if diff := cmp.Diff(w.step(now, a, &made), a.res); diff != "" {
				return fmt.Sprintf("%s together (-Step +SQL):\n%s\nafter %+v", a.key, diff, before[a.key])
			}
			w.note(now, a, before[a.key].State)
		}
	}
	w.sweep(now, made)
	for _, a := range asks {
		if a.decided {
			continue
		}
		w.count("left out")
		var reply []int64
		err := w.conn.QueryRow(context.Background(), w.program.of(a.params.Retention).step, encode(a.key, a.params, a.cmd)...).Scan(&reply)
		if err != nil {
			t.Fatal(err)
		}
		if a.res, err = decode(reply); err != nil {
			t.Fatal(err)
		}
		was, made := w.held[a.key], false
		if diff := cmp.Diff(w.step(now, a, &made), a.res); diff != "" {
			return fmt.Sprintf("%s alone (-Step +SQL):\n%s\nafter %+v", a.key, diff, was)
		}
		w.sweep(now, made)
	}
	return ""
}

// step is what Step makes of a command, and whether a counter is made for it.
func (w *world) step(now limiter.Instant, a *ask, made *bool) limiter.Result {
	since := w.timeline.Memory.Since
	if a.params.Retention.Resume || a.params.Retention.IsBornIn(theMemory) ||
		w.setBack && since > now-limiter.Instant(limiter.MaxWindow) {
		since = 0
	}
	h, c := w.held[a.key], a.cmd
	c.Memory = limiter.Memory{Since: since, Latest: w.latest}
	next, res := a.params.Step(h.State, now, c)
	if c.Op == limiter.Peek {
		return res
	}
	*made = *made || h.State.N == 0
	if !next.Equal(h.State) {
		w.held[a.key] = held{State: next, KeepUntil: now.Add(next.KeepFor(now))}
	}
	return res
}

// sweep drops what ended, as each new counter does.
func (w *world) sweep(now limiter.Instant, made bool) {
	if !made {
		return
	}
	if w.latest <= now-limiter.Instant(limiter.MinWindow) {
		w.latest = now
	}
	maps.DeleteFunc(w.held, func(_ string, h held) bool { return h.KeepUntil <= w.latest })
}

// note counts what a decision of weir.batch was about.
func (w *world) note(now limiter.Instant, a *ask, was limiter.State) {
	w.count(a.res.Reason.String())
	switch {
	case was.N == 0:
		w.count("new")
	case was.Meters[0].Index != a.res.Windows.Open[0].Index:
		w.count("in a new window")
	default:
		w.count("in an open window")
	}
	start := a.res.Windows.Open[0].Rate.WindowAt(now).Start()
	if w.setBack && start < w.timeline.Memory.Since && a.res.Granted > 0 {
		w.count("set back")
	}
}

func (w *world) count(what string) { w.seen[fmt.Sprintf("%s, durable is %t", what, w.durable)]++ }

// compare returns how the counters differ.
func (w *world) compare(t *testing.T) string {
	t.Helper()
	counters, memory := w.tables()
	var latest limiter.Instant
	if err := w.conn.QueryRow(context.Background(), "SELECT latest FROM "+memory).Scan(&latest); err != nil {
		t.Fatal(err)
	}
	if latest != w.latest {
		return fmt.Sprintf("the memory notes %d, want %d", latest, w.latest)
	}
	for _, key := range []string{"s/a", "s/b", "s/c", "s/d"} {
		var got held
		err := got.scan(w.conn.QueryRow(context.Background(), `SELECT keep_until, generation, algorithm, expires, began,
			pulse, asked, before, rates, index, used, entries, log, tenants, shares FROM `+counters+" WHERE key = $1", key))
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(w.held[key], got, cmp.Comparer(limiter.State.Equal)); diff != "" {
			return fmt.Sprintf("%s (-Step +SQL):\n%s", key, diff)
		}
	}
	return ""
}
