package redis

import (
	"context"
	_ "embed"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	goredis "github.com/redis/go-redis/v9"

	"github.com/weir-dev/weir/pkg/limiter"
	"github.com/weir-dev/weir/pkg/store/storetest/redistest"
)

// testClockLua takes the place of lua/clock.lua. All other text is what runs in
// production.
//
//go:embed testdata/clock.lua
var testClockLua string

// TestScriptFollowsStep compares the script and Step on ten thousand timelines.
func TestScriptFollowsStep(t *testing.T) {
	const timelines, calls = 10_000, 20
	s := newTimelineStore(t)
	seen := map[limiter.Reason]int{}
	for seed := range uint64(timelines) {
		l := dice(rand.NewPCG(seed, 0).Uint64).roll(calls)
		if diff := s.replay(t, l); diff != "" {
			t.Fatalf("timeline of seed %d: %s", seed, diff)
		}
		for _, c := range l.calls {
			seen[c.want.Reason]++
		}
	}
	for reason := limiter.Granted; reason <= limiter.Forfeited; reason++ {
		if seen[reason] < timelines*calls/100 {
			t.Errorf("only %d of %d calls ended in %v: the timelines do not reach far enough", seen[reason], timelines*calls, reason)
		}
	}
	t.Log(seen)
}

// FuzzLuaEquivalence compares the script and Step on a timeline made from bytes.
func FuzzLuaEquivalence(f *testing.F) {
	for seed := range uint64(64) {
		choices := rand.NewPCG(seed, 1)
		var data []byte
		for range 120 {
			data = append(data, byte(choices.Uint64()))
		}
		f.Add(data)
	}
	s := newTimelineStore(f)
	f.Fuzz(func(t *testing.T, data []byte) {
		const callBytes = 8 // most calls need fewer choices
		d := dice(func() uint64 {
			var word [8]byte
			data = data[copy(word[:2], data):]
			return binary.LittleEndian.Uint64(word[:])
		})
		if diff := s.replay(t, d.roll(min(len(data)/callBytes, 100))); diff != "" {
			t.Fatal(diff)
		}
	})
}

// A timelineStore replays timelines on the key "state" of a real server.
type timelineStore struct {
	*Store
	server *redistest.Server
}

func newTimelineStore(t testing.TB) timelineStore {
	server := redistest.Start(t)
	s := timelineStore{newStore(server.Client(), Options{Name: server.Addr}, testClockLua), server}
	// Begin the memory; from here on replay only moves its bounds.
	if _, err := send(t.Context(), s.client, "eval", s.warm.text, []string{"guard"}, []any{0}); err != nil {
		t.Fatal(err)
	}
	if err := s.client.ScriptLoad(t.Context(), s.step.text).Err(); err != nil {
		t.Fatal(err)
	}
	return s
}

// replay runs the timeline in one round trip and returns how the script's results,
// or the counter it leaves, differ from Step's.
func (s timelineStore) replay(t testing.TB, l timeline) string {
	t.Helper()
	replies := make([]*goredis.Cmd, len(l.calls))
	var hash *goredis.MapStringStringCmd
	_, err := s.client.Pipelined(context.Background(), func(pipe goredis.Pipeliner) error {
		ctx := context.Background()
		pipe.Del(ctx, "state")
		pipe.HSet(ctx, "guard", "since", int64(l.since), "latest", int64(l.latest))
		for i, c := range l.calls {
			if c.evicted {
				pipe.HDel(ctx, "guard", "latest")
			}
			args := append(encode(c.params, c.command), int64(c.now))
			replies[i] = pipe.EvalSha(ctx, s.step.sha, []string{"state", "guard"}, args...)
		}
		hash = pipe.HGetAll(ctx, "state")
		return nil
	})
	if err != nil {
		t.Fatalf("replay: %v", err)
	}
	for i, c := range l.calls {
		got, _, err := decode(replies[i].Val())
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(c.want, got); diff != "" {
			return fmt.Sprintf("call %d of memory since %d, latest %d (-Step +script):\n%s\nafter %+v",
				i, l.since, l.latest, diff, l.calls[:i+1])
		}
	}
	// A state with fewer windows than one before leaves the fields of the others.
	known := cmpopts.IgnoreMapEntries(func(name, _ string) bool { _, ok := l.hash[name]; return !ok })
	return cmp.Diff(l.hash, hash.Val(), known)
}
