package escrowtest

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-dev/weir/pkg/federation/escrow"
	"github.com/weir-dev/weir/pkg/limiter"
)

// start is when timelines begin whose clock can be set.
const start = limiter.Instant(1_790_000_000_000_000)

// testFollowsCore compares every answer of random timelines with the core's. When the
// clock cannot be set, the core steps at the instant that the answer names.
func testFollowsCore(t *testing.T, h *harness) {
	for seed := range uint64(8) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			follow(t, h, rand.New(rand.NewPCG(seed, 4)).Uint64, 600)
		})
	}
}

// Fuzz compares every answer of timelines with the core's. The input makes the choices
// until it ends, and a seed of them the rest.
func Fuzz(f *testing.F, begin func(testing.TB) Subject) {
	for seed := range byte(16) {
		f.Add([]byte{seed})
	}
	h := &harness{begin(f)}
	budgets := 0
	f.Fuzz(func(t *testing.T, choices []byte) {
		budgets++
		var rest [32]byte
		copy(rest[:], choices)
		random := rand.NewChaCha8(rest)
		dice := func() uint64 {
			if len(choices) == 0 {
				return random.Uint64()
			}
			chosen := choices[0]
			choices = choices[1:]
			return uint64(chosen)
		}
		t.Run(fmt.Sprint(budgets), func(t *testing.T) { follow(t, h, dice, 200) })
	})
}

// follow runs an escrow and the core side by side.
func follow(t *testing.T, h *harness, d Dice, steps int) {
	now := start
	if h.Set != nil {
		h.Set(now)
	}
	r := h.region(t)
	first := r.peek()
	since := h.Began
	if since == 0 {
		since = first.Now
	}
	core, _ := escrow.State{}.Step(first.Now, escrow.Command{Op: escrow.Peek})
	for i := range steps {
		if h.Set != nil {
			now = d.Later(now)
			h.Set(now)
		} else {
			now = core.Latest
		}
		c := d.Next(core, since, now)
		got := r.do(c)
		if h.Set != nil && got.Now != now {
			t.Fatalf("step %d: the clock shows %d, not %d", i, got.Now, now)
		}
		c.Since = since
		var want escrow.Result
		if core, want = core.Step(got.Now, c); got != want {
			t.Fatalf("step %d, %+v: answer (-want +got)\n%s", i, c, cmp.Diff(want, got))
		}
	}
}
