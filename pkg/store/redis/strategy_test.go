package redis

import (
	_ "embed"
	"encoding/json"
	"math/rand/v2"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/weir-dev/weir/internal/testing/redistest"
	"github.com/weir-dev/weir/internal/testing/seeds"
	"github.com/weir-dev/weir/pkg/limiter"
	"github.com/weir-dev/weir/pkg/store"
	"github.com/weir-dev/weir/pkg/store/storetest"
)

//go:embed testdata/frozen.lua
var frozenServerLua string

// TestAStrategyThatStepsEqualsTheScript runs the same timelines through Apply and
// through Step as a strategy, under one guard and at the same instants.
func TestAStrategyThatStepsEqualsTheScript(t *testing.T) {
	t.Parallel()
	const calls = 20
	timelines := seeds.Of(150)
	server := redistest.Start(t)
	client := server.Client()
	s := newStore(client, server.Addr, preamble(frozenServerLua, false), stopped)
	ctx := t.Context()
	key := store.Key{Hash: "a"}
	counter, partition := counterKeyOf(key)
	guard := guardKeys[partition]
	client.Set(ctx, "clock", 1, 0)
	if err := s.Warm(ctx); err != nil {
		t.Fatal(err)
	}
	line := client.Get(ctx, guard).Val()[1:55]
	granted := 0
	for seed := range uint64(timelines) {
		l := newTimeline(line, rand.NewPCG(seed, 2).Uint64, calls)
		client.Del(ctx, counter, valueKeysOf(key)[0])
		client.Set(ctx, guard, l.guard.text(line), 0)
		for i, c := range l.calls {
			client.Set(ctx, "clock", int64(c.Now), 0)
			c.Params.Retention = limiter.Retention{} // a strategy knows of none
			s.floors = make(floors, 1)               // the clock of a timeline steps back
			s.known = [partitions]recollections{}
			s.made[0].Store(0) // nothing is swept, which looks at the clock, too
			s.made[1].Store(0)
			want, err := s.Apply(ctx, key, c.Params, c.Command)
			if err != nil {
				t.Fatal(err)
			}
			var got limiter.Result
			if err := s.Update(ctx, key, stepAs(c.Call, &got)); err != nil {
				t.Fatal(err)
			}
			if diff := gocmp.Diff(exact(want), exact(got)); diff != "" {
				t.Fatalf("seed %d, call %d (-script +strategy):\n%s", seed, i, diff)
			}
			granted += int(min(1, got.Granted))
		}
	}
	if granted < timelines {
		t.Errorf("only %d calls were granted", granted)
	}
}

// stepAs is a strategy that runs Step, and keeps as JSON what the script keeps.
func stepAs(made storetest.Call, res *limiter.Result) Strategy {
	return func(old []byte, now limiter.Instant, memory limiter.Memory) ([]byte, limiter.Micros, error) {
		c := counter{guard: guard{since: memory.Since, latest: memory.Latest}}
		if old != nil {
			if err := json.Unmarshal(old, &c.state); err != nil {
				return nil, 0, err
			}
		}
		made.Now = now
		*res = c.apply(made, store.Recollection{})
		if c.state.N == 0 {
			return nil, 0, nil
		}
		next, err := json.Marshal(c.state)
		return next, max(1, c.state.KeepFor(now)), err
	}
}
