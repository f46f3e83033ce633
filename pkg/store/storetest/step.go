package storetest

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-dev/weir/pkg/limiter"
)

// testFollowsStep runs random commands of every algorithm on a few keys, edits the
// policy now and then, and compares every answer with that of Step at the instant
// the store says it decided.
func testFollowsStep(t *testing.T, h harness) {
	const rounds, keys, most = 1500, 4, 12
	rng := rand.New(rand.NewPCG(1, 2))
	since := h.now(t)
	long := h.openWindow(t)
	h.Advance(Settle)
	lengths := []limiter.Micros{limiter.MinWindow, limiter.MinWindow + 7, long}

	oracles := make([]oracle, keys)
	seen := map[limiter.Reason]int{}
	p := Params(rng, lengths)
	for round := range rounds {
		if rng.IntN(12) == 0 {
			next := Params(rng, lengths)
			next.Generation = p.Generation + 1
			p = next
		}
		if rng.IntN(8) == 0 {
			h.Advance(limiter.Micros(rng.Int64N(int64(limiter.MinWindow / 2))))
		}
		for k := range oracles {
			asked := p
			asked.Generation -= int64(rng.IntN(8) / 7) // now and then by a holder that is behind
			c := Command(rng, most, oracles[k].grant)
			got := h.apply(t, key(fmt.Sprint(k)), asked, c)
			if d := oracles[k].follow(asked, c, since, got); d != "" {
				t.Fatalf("round %d, key %d, %+v of %+v: Step and the store differ (-Step +store):\n%s", round, k, c, asked, d)
			}
			seen[got.Reason]++
		}
	}
	for reason := limiter.Granted; reason <= limiter.Forfeited; reason++ {
		if reason != limiter.ClockBehind && seen[reason] < rounds/100 {
			t.Errorf("only %d answers were %v: the commands do not reach far enough", seen[reason], reason)
		}
	}
}

// An oracle is what Step knows of one key.
type oracle struct {
	state limiter.State
	kept  limiter.Instant // a store may drop the state from then on
	grant limiter.Result  // the latest
}

// follow runs the command as Step and returns where the store's answer differs.
func (o *oracle) follow(p limiter.Params, c limiter.Command, since limiter.Instant, got limiter.Result) string {
	c.Memory.Since = since
	next, want := p.Step(o.state, got.Now, c)
	d := cmp.Diff(want, got)
	if d != "" && got.Now >= o.kept {
		next, want = p.Step(limiter.State{}, got.Now, c)
		d = cmp.Diff(want, got)
	}
	if c.Op != limiter.Peek {
		o.state, o.kept = next, got.Now.Add(next.KeepFor(got.Now))
	}
	if c.Op == limiter.Take && got.Granted > 0 {
		o.grant = got
	}
	return d
}
