package redis

import (
	"cmp"
	"context"
	_ "embed"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	goredis "github.com/redis/go-redis/v9"

	"github.com/weir-dev/weir/internal/testing/redistest"
	"github.com/weir-dev/weir/internal/testing/seeds"
	"github.com/weir-dev/weir/pkg/limiter"
	"github.com/weir-dev/weir/pkg/store"
	"github.com/weir-dev/weir/pkg/store/storetest"
)

// testServerLua takes the place of lua/server.lua. All other text is what runs in
// production.
//
//go:embed testdata/server.lua
var testServerLua string

// TestScriptFollowsStep compares the scripts and Step on ten thousand timelines.
func TestScriptFollowsStep(t *testing.T) {
	t.Parallel()
	const calls = 20
	timelines := seeds.Of(10_000)
	s := newTimelineStore(t)
	seen := map[string]int{}
	for seed := range uint64(timelines) {
		l := newTimeline(s.line, rand.NewPCG(seed, 0).Uint64, calls)
		if diff := s.replay(t, l); diff != "" {
			t.Fatalf("timeline of seed %d: %s", seed, diff)
		}
		if seed%4 == 0 {
			if diff := s.replayBy(t, s.step, l); diff != "" {
				t.Fatalf("timeline of seed %d by the script that decides everything: %s", seed, diff)
			}
		}
		for _, c := range l.calls {
			for _, name := range c.kinds() {
				seen[name]++
			}
		}
	}
	for _, name := range kindsToSee() {
		if seen[name] < timelines*calls/1000 {
			t.Errorf("only %d of %d calls are %s: the timelines do not reach far enough", seen[name], timelines*calls, name)
		}
	}
}

// kinds names what a call distinguishes.
func (c call) kinds() []string {
	op := [...]string{limiter.Take: "take", limiter.Return: "return", limiter.Peek: "peek", limiter.Reset: "reset"}[c.Command.Op]
	list := []string{
		fmt.Sprintf("%v by %v", c.want.Reason, c.want.Algorithm),
		fmt.Sprintf("%v from %v", machineOf(c.want.Algorithm), machineOf(c.was)),
		fmt.Sprintf("%v of %d rates, any %t", c.want.Reason == limiter.Granted, len(c.Params.Rates), c.Params.Any),
		fmt.Sprintf("%s %v in %s", op, c.want.Reason == limiter.Granted, machineOf(c.want.Algorithm)),
	}
	if c.Params.Fairness.Default > 0 {
		list = append(list, fmt.Sprintf("%s %v of a tenant", op, c.want.Reason == limiter.Granted))
	}
	return list
}

func kindsToSee() []string {
	machines := []string{"windows", "sums", "buckets", "queues"}
	var list []string
	for a := limiter.FixedWindow; a <= limiter.LeakyBucket; a++ {
		for r := limiter.Granted; r <= limiter.Forfeited; r++ {
			if r != limiter.Amnesia || a <= limiter.SlidingLog { // a bucket is full instead
				list = append(list, fmt.Sprintf("%v by %v", r, a))
			}
		}
	}
	for _, m := range machines {
		for _, n := range machines {
			list = append(list, fmt.Sprintf("%v from %v", m, n))
		}
		for _, op := range []string{"take true", "take false", "peek true", "peek false", "reset true", "return false"} {
			list = append(list, fmt.Sprintf("%s in %s", op, m))
		}
		if m != "queues" { // a place in a queue is not given back
			list = append(list, "return true in "+m)
		}
	}
	for n := 1; n <= limiter.MaxRates; n++ {
		for _, granted := range []bool{true, false} {
			list = append(list, fmt.Sprintf("%v of %d rates, any true", granted, n), fmt.Sprintf("%v of %d rates, any false", granted, n))
		}
	}
	for _, op := range []string{"take true", "take false", "peek true", "return true", "return false", "reset true"} {
		list = append(list, op+" of a tenant")
	}
	return list
}

func machineOf(a limiter.Algorithm) string {
	return [...]string{
		limiter.FixedWindow: "windows", limiter.SlidingWindow: "sums", limiter.SlidingLog: "sums",
		limiter.TokenBucket: "buckets", limiter.GCRA: "buckets", limiter.LeakyBucket: "queues",
	}[a]
}

// TestScriptFollowsStepForManyTenants has more tenants than are distinguished.
func TestScriptFollowsStepForManyTenants(t *testing.T) {
	t.Parallel()
	s := newTimelineStore(t)
	p := limiter.Params{
		Generation: 1,
		Rates:      []limiter.Rate{{Limit: 100_000, Window: limiter.Second}},
		Fairness:   limiter.Fairness{Default: 1, Weights: []limiter.Weight{{Tenant: "declared", Weight: 7}}},
	}
	l := timeline{guard: guard{since: 1, short: true}}
	l.end.guard = l.guard
	for i := range limiter.MaxTenants + 20 {
		c := storetest.Call{Now: 1_000_001, Params: p, Command: limiter.Command{Min: 1, Want: 3, Tenant: fmt.Sprint("tenant ", i)}}
		l.calls = append(l.calls, call{Call: c, want: l.end.apply(c, store.Recollection{})})
	}
	if n := len(l.end.state.Tenants); n != limiter.MaxTenants+1 {
		t.Fatalf("%d tenants are distinguished: the timeline does not reach far enough", n)
	}
	if diff := s.replay(t, l); diff != "" {
		t.Fatal(diff)
	}
}

// FuzzLuaEquivalence compares the script and Step on a timeline made from bytes.
func FuzzLuaEquivalence(f *testing.F) {
	for seed := range uint64(64) {
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
		d := func() uint64 {
			var word [8]byte
			data = data[copy(word[:2], data):]
			return binary.LittleEndian.Uint64(word[:])
		}
		if diff := s.replay(t, newTimeline(s.line, d, calls)); diff != "" {
			t.Fatal(diff)
		}
	})
}

// TestScriptFollowsStepOverHTTP compares them by arguments and replies that went through a
// bridge.
func TestScriptFollowsStepOverHTTP(t *testing.T) {
	t.Parallel()
	s := newRESTTimelineStore(t)
	for seed := range seeds.Of(uint64(300)) {
		l := newTimeline(s.line, rand.NewPCG(seed, 3).Uint64, 20)
		if diff := s.replayBy(t, []script{s.decide, s.step}[seed%2], l); diff != "" {
			t.Fatalf("timeline of seed %d: %s", seed, diff)
		}
	}
}

// A timelineStore replays timelines on the key "state" of a real server.
type timelineStore struct {
	*Store
	server *redistest.Server
	direct goredis.UniversalClient // for what is not of the store
	line   string                  // that identifies the server's instance
	decide script                  // batch, and step where that leaves a command to it
}

// joined is a script that goes on with another where a batch of one command decides
// nothing.
func joined(batch, step script) script {
	return join([]string{
		"local function decide(KEYS, ARGV)", batch.text, "end",
		"local function decideAny(KEYS, ARGV)", step.text, "end",
		"local reply = decide({KEYS[1], KEYS[2], 'ends'}, {'\\1', '\\1', ARGV[1], ARGV[2], ARGV[#ARGV]})",
		"return string.byte(reply) < 255 and reply or decideAny(KEYS, ARGV)",
	})
}

func newTimelineStore(t testing.TB) timelineStore {
	server := redistest.Start(t)
	client := server.Client()
	return timelineStore{Store: newStore(client, server.Addr, preamble(testServerLua, false), stopped), server: server, direct: client}.begin(t)
}

func newRESTTimelineStore(t testing.TB) timelineStore {
	server := redistest.Start(t)
	bridge := server.StartBridge()
	s, err := openREST(RESTOptions{URL: bridge.URL, Token: bridge.Token}, testServerLua, stopped)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return timelineStore{Store: s, server: server, direct: server.Client()}.begin(t)
}

func (s timelineStore) begin(t testing.TB) timelineStore {
	if _, err := send(t.Context(), s.client, "eval", s.warm.text, []string{"guard"}, []any{0, 0}); err != nil {
		t.Fatal(err)
	}
	guard, err := s.direct.Get(t.Context(), "guard").Result()
	if err != nil {
		t.Fatal(err)
	}
	s.line = guard[1:55]
	s.decide = joined(s.batch, s.step)
	for _, script := range []script{s.step, s.decide} {
		if err := s.client.ScriptLoad(t.Context(), script.text).Err(); err != nil {
			t.Fatal(err)
		}
	}
	return s
}

func (s timelineStore) replay(t testing.TB, l timeline) string {
	t.Helper()
	return s.replayBy(t, s.decide, l)
}

// replayBy runs the timeline, in one round trip where the server is reached directly, and returns how the script's results,
// or the counter it leaves, differ from Step's.
func (s timelineStore) replayBy(t testing.TB, script script, l timeline) string {
	t.Helper()
	replies := make([]*goredis.Cmd, len(l.calls))
	var state, kept, guard *goredis.StringCmd
	ctx := context.Background()
	own := s.direct.Pipeline()
	own.Del(ctx, "state", "kept until", "ends")
	own.Set(ctx, "guard", l.guard.text(s.line), 0)
	for i, c := range l.calls {
		if c.evicted {
			own.SetRange(ctx, "guard", latestAt, string(make([]byte, 8)))
		}
		args := append(encode(c.Params, c.Command, c.known), int64(c.Now))
		if s.direct == s.client {
			replies[i] = own.EvalSha(ctx, script.sha, []string{"state", "guard"}, args...)
			continue
		}
		_, _ = own.Exec(ctx)
		replies[i] = s.client.EvalSha(ctx, script.sha, []string{"state", "guard"}, args...)
	}
	state, kept, guard = own.Get(ctx, "state"), own.Get(ctx, "kept until"), own.Get(ctx, "guard")
	_, _ = own.Exec(ctx)
	for i, c := range l.calls {
		reply, err := replies[i].Result()
		if err != nil {
			t.Fatalf("call %d, %+v: %v", i, c, err)
		}
		got, _, _, err := decode(reply, c.Params)
		if err != nil {
			t.Fatal(err)
		}
		if diff := gocmp.Diff(exact(c.want), exact(got)); diff != "" {
			return fmt.Sprintf("call %d of guard %+v (-Step +script):\n%s\nafter %+v", i, l.guard, diff, l.calls[:i+1])
		}
	}
	return l.end.diff(s.line, state.Val(), kept.Val(), guard.Val())
}

// exact cuts waits that are longer than a Lua number can hold: an edit may fill a
// bucket for centuries.
func exact(r limiter.Result) limiter.Result {
	r.ResetAfter = min(r.ResetAfter, limiter.Micros(limiter.MaxExact))
	r.RetryAfter = min(r.RetryAfter, limiter.Micros(limiter.MaxExact))
	return r
}

// latestAt is where the newest instant stands in a guard.
const latestAt = 1 + 54 + 8

// diff returns how what a server holds differs from c.
func (c counter) diff(line, state, kept, guard string) string {
	type held struct {
		State limiter.State
		Kept  int64
		Guard string
	}
	want := held{c.state, c.kept, c.guard.text(line)}
	got := held{State: decodeState(state), Guard: guard}
	if state != "" {
		got.Kept, _ = strconv.ParseInt(kept, 10, 64)
		got.Kept = min(got.Kept, mostKept+backstop)
	}
	if len(guard) > len(want.Guard) && c.guard.short {
		got.Guard = guard[:len(want.Guard)] // the script made it whole
	}
	return gocmp.Diff(want, got, gocmp.Comparer(limiter.State.Equal))
}

// decodeState reads a counter as lua/wire.lua lays it out.
func decodeState(text string) limiter.State {
	var s limiter.State
	if text == "" {
		return s
	}
	r := reader{text: text}
	r.byte()
	s.Algorithm, s.Generation, s.N = limiter.Algorithm(r.byte()), r.int(), int(r.byte())
	for i := range s.Slice() {
		s.Meters[i].Rate = r.rate()
	}
	s.Expires, s.Began = limiter.Instant(r.int()), limiter.Instant(r.int())
	s.Pulse, s.Asked, s.Before = r.int(), r.int(), r.int()
	for i := range s.Slice() {
		s.Meters[i].Index, s.Meters[i].Used = r.int(), r.int()
	}
	switch {
	case s.Algorithm == limiter.SlidingWindow || s.Algorithm == limiter.SlidingLog:
		decodeLogs(&s, &r)
	case r.text != "":
		s.Tenants = decodeTenants(&r)
	}
	if r.short || r.text != "" {
		panic(fmt.Sprintf("a counter of %d bytes", len(text)))
	}
	return s
}

func decodeLogs(s *limiter.State, r *reader) {
	var sizes [limiter.MaxRates]int
	for i := range s.Slice() {
		sizes[i] = int(binary.BigEndian.Uint32([]byte(r.take(4))))
	}
	for i := range s.Slice() {
		m := &s.Meters[i]
		for range sizes[i] / 16 {
			e := limiter.Entry{At: limiter.Instant(r.int()), Count: r.int()}
			m.Log, m.Used = append(m.Log, e), m.Used-e.Count
		}
	}
}

// decodeTenants reads a MessagePack map of strings to integers.
func decodeTenants(r *reader) []limiter.TenantUse {
	n := r.msgpackInt()
	var tenants []limiter.TenantUse
	for range n {
		tenants = append(tenants, limiter.TenantUse{Tenant: r.take(int(r.msgpackInt())), Used: r.msgpackInt()})
	}
	slices.SortFunc(tenants, func(a, b limiter.TenantUse) int { return cmp.Compare(a.Tenant, b.Tenant) })
	return tenants
}

// msgpackInt reads a number, or the length of a string or a map.
func (r *reader) msgpackInt() int64 {
	switch b := r.byte(); {
	case b < 0x80:
		return int64(b)
	case b < 0x90: // a small map
		return int64(b - 0x80)
	case b >= 0xa0 && b < 0xc0: // a short string
		return int64(b - 0xa0)
	case b >= 0xe0: // from -32 to -1
		return int64(int8(b))
	case b == 0xcc || b == 0xd9:
		return int64(r.byte())
	case b == 0xcd || b == 0xda || b == 0xde:
		return int64(binary.BigEndian.Uint16([]byte(r.take(2))))
	case b == 0xce || b == 0xdb || b == 0xdf:
		return int64(binary.BigEndian.Uint32([]byte(r.take(4))))
	case b == 0xcf || b == 0xd3:
		return r.int()
	default:
		panic(fmt.Sprintf("MessagePack of type %x", b))
	}
}
