package redis

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/weir-dev/weir/internal/testing/seeds"
	"github.com/weir-dev/weir/pkg/limiter"
	"github.com/weir-dev/weir/pkg/store"
	"github.com/weir-dev/weir/pkg/store/storetest"
)

// TestCommandsOfABatchThatAreTheSameTravelOnce, by the newest instant that the clock is known to have
// reached, and by the newest up to which the memory that they recall may have granted. A caller's own
// floor is its command's alone.
func TestCommandsOfABatchThatAreTheSameTravelOnce(t *testing.T) {
	p := limiter.Params{Rates: []limiter.Rate{{Limit: 10, Window: limiter.Second}}}
	var asks []*ask
	for i, c := range []struct {
		want           int64
		floor, reached limiter.Instant
		known          store.Recollection
	}{
		{1, 0, 5, recalled(2, 4)},
		{1, 3, 7, recalled(2, 6)},
		{2, 0, 6, recalled(2, 5)},
		{1, 9, 7, recalled(2, 3)},
		{1, 0, 0, recalled(1, 7)}, // another memory
		{1, 0, 0, recalled(2, 1)},
	} {
		command := limiter.Command{Min: 1, Want: c.want, Floor: c.floor}
		asks = append(asks, newAsk(uint32(i%2), fmt.Sprint(i), p, command, c.reached, c.known))
	}
	keys, args := batchOf(asks, "ends")
	want := []any{[]byte{1, 2, 1, 2, 1, 2}, []byte{1, 1, 2, 3, 4, 1}}
	for _, c := range []struct {
		want  int64
		floor limiter.Instant
		known store.Recollection
	}{{1, 7, recalled(2, 6)}, {2, 7, recalled(2, 6)}, {1, 9, recalled(2, 6)}, {1, 7, recalled(1, 7)}} {
		want = append(want, encodeHead(p), encodeCommand(p, limiter.Command{Min: 1, Want: c.want, Floor: c.floor}, c.known))
	}
	if diff := gocmp.Diff(want, args); diff != "" {
		t.Errorf("arguments (-want +got):\n%s", diff)
	}
	if want := []string{"0", "1", "2", "3", "4", "5", guardKeys[0], guardKeys[1], "ends"}; !slices.Equal(keys, want) {
		t.Errorf("the keys are %v, want %v", keys, want)
	}
	for i, want := range []limiter.Instant{7, 7, 7, 9, 7, 7} {
		if asks[i].reached != want {
			t.Errorf("command %d was sent with floor %d, want %d", i, asks[i].reached, want)
		}
	}
}

// recalled is what is known of a memory by its last answer.
func recalled(since, shown limiter.Instant) store.Recollection {
	return store.Recollection{}.Answered(since, shown)
}

// TestABatchFollowsStep decides commands of several counters in one call, some of them of
// the same one, and of two partitions. Commands that the batch leaves undecided are asked
// singly.
func TestABatchFollowsStep(t *testing.T) {
	t.Parallel()
	const rounds = 20
	worlds := seeds.Of(500)
	s := newTimelineStore(t)
	if err := s.client.ScriptLoad(t.Context(), s.batch.text).Err(); err != nil {
		t.Fatal(err)
	}
	decided, undecided := 0, 0
	for seed := range uint64(worlds) {
		w := newBatchWorld(t, s, rand.NewPCG(seed, 2).Uint64)
		for round := range rounds {
			if diff := w.round(); diff != "" {
				t.Fatalf("seed %d, round %d: %s", seed, round, diff)
			}
		}
		decided, undecided = decided+w.decided, undecided+w.undecided
		if diff := w.diff(); diff != "" {
			t.Fatalf("seed %d: %s", seed, diff)
		}
	}
	if decided < worlds*rounds || undecided < worlds {
		t.Errorf("%d commands were decided and %d were not: the batches do not reach far enough", decided, undecided)
	}
}

// A batchWorld is counters on a server, what Step makes of them, and what they are asked.
type batchWorld struct {
	t         *testing.T
	s         timelineStore
	dice      storetest.Dice
	guards    [2]guard
	counters  [4]counter
	asked     [4]*storetest.Timeline
	rounds    int
	decided   int
	undecided int
}

func (*batchWorld) counterKey(i int) string { return fmt.Sprint("counter ", i) }
func (*batchWorld) guardOf(i int) int       { return i % 2 }
func (*batchWorld) guardKey(g int) string   { return fmt.Sprintf("%d:memory", g) }

func newBatchWorld(t *testing.T, s timelineStore, d storetest.Dice) *batchWorld {
	t.Helper()
	w := &batchWorld{t: t, s: s, dice: d}
	ctx := t.Context()
	for g := range w.guards {
		w.guards[g] = newTimeline(s.line, d, 0).guard
		s.client.Set(ctx, w.guardKey(g), w.guards[g].text(s.line), 0)
		s.client.Del(ctx, fmt.Sprintf("%d:ends", g))
	}
	for i := range w.counters {
		w.asked[i] = storetest.NewTimeline(d)
		s.client.Del(ctx, w.counterKey(i))
	}
	return w
}

// A batched is a command of a batch.
type batched struct {
	counter int
	call    storetest.Call
}

// round asks all counters at one instant, and one of them twice.
func (w *batchWorld) round() string {
	w.t.Helper()
	var all []batched
	var now limiter.Instant
	alike := w.rounds == 0 && w.dice()%2 == 0 // as the commands for new keys of a limit are
	w.rounds++
	for _, i := range []int{0, 1, 2, 3, int(w.dice() % uint64(len(w.counters)))} {
		c := w.asked[i].Next()
		if len(all) == 0 {
			now = c.Now
		}
		if c = w.plain(c, now); alike && len(all) > 0 {
			c = all[0].call
		}
		all = append(all, batched{i, c})
	}
	rand.New(rand.NewPCG(w.dice(), 0)).Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	asks := make([]*ask, len(all))
	for i, b := range all {
		command := encodeCommand(b.call.Params, b.call.Command, store.Recollection{})
		asks[i] = &ask{partition: uint32(w.guardOf(b.counter)), counter: w.counterKey(b.counter), head: encodeHead(b.call.Params), command: command, floor: b.call.Command.Floor}
	}
	keys, args := batchOf(asks, "ends")
	for i, key := range keys {
		if g := slices.Index(guardKeys[:2], key); g >= 0 {
			keys[i] = w.guardKey(g)
		}
	}
	reply, err := w.s.client.EvalSha(w.t.Context(), w.s.batch.sha, keys, append(args, int64(now))...).Text()
	if err != nil || len(reply) != replyBytes*len(all) {
		w.t.Fatalf("%d bytes, %v", len(reply), err)
	}
	var left []batched
	for n, b := range all {
		part := reply[n*replyBytes : (n+1)*replyBytes]
		if part[0] == undecided {
			left = append(left, b)
			continue
		}
		w.decided++
		if diff := w.compare(b, part); diff != "" {
			return diff
		}
	}
	for _, b := range left {
		w.undecided++
		args := append(encode(b.call.Params, b.call.Command, store.Recollection{}), int64(now))
		part, err := w.s.client.EvalSha(w.t.Context(), w.s.step.sha, []string{w.counterKey(b.counter), w.guardKey(w.guardOf(b.counter))}, args...).Text()
		if err != nil {
			w.t.Fatal(err)
		}
		if diff := w.compare(b, part); diff != "" {
			return diff
		}
	}
	return ""
}

// plain makes most calls such as a batch decides, at an instant.
func (w *batchWorld) plain(c storetest.Call, now limiter.Instant) storetest.Call {
	c.Now, c.Params.Retention = now, limiter.Retention{}
	if w.dice()%8 == 0 {
		return c
	}
	p := c.Params
	p.Generation, p.Rates, p.Fairness = 1, slices.Clone(p.Rates[:1]), limiter.Fairness{}
	p.Rates[0].Monthly = false
	if p.Validate() != nil {
		return c
	}
	c.Params = p
	c.Command = limiter.Command{Op: limiter.Take, First: w.dice()%2 == 0, Min: 1, Want: 1 + int64(w.dice()%5)}
	return c
}

// compare has Step decide what a script has, and returns how they differ.
func (w *batchWorld) compare(b batched, reply string) string {
	w.t.Helper()
	got, _, _, err := decode(reply, b.call.Params)
	if err != nil {
		w.t.Fatal(err)
	}
	c, g := &w.counters[b.counter], &w.guards[w.guardOf(b.counter)]
	c.guard = *g
	want := c.apply(b.call, store.Recollection{})
	*g = c.guard
	w.asked[b.counter].Answered(b.call, want)
	return gocmp.Diff(exact(want), exact(got))
}

// diff returns how what the server holds differs.
func (w *batchWorld) diff() string {
	ctx := w.t.Context()
	for i, c := range w.counters {
		got := decodeState(w.s.client.Get(ctx, w.counterKey(i)).Val())
		if diff := gocmp.Diff(c.state, got, gocmp.Comparer(limiter.State.Equal)); diff != "" {
			return diff
		}
	}
	for g, want := range w.guards {
		text, got := want.text(w.s.line), w.s.client.Get(ctx, w.guardKey(g)).Val()
		if len(got) > len(text) && want.short {
			got = got[:len(text)]
		}
		if diff := gocmp.Diff(text, got); diff != "" {
			return diff
		}
	}
	return ""
}
