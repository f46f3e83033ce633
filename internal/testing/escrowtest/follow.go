package escrowtest

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-dev/weir/internal/testing/suite"
	"github.com/weir-dev/weir/pkg/federation/escrow"
)

// testFollowsCore compares every answer of random timelines with the core's. When the
// clock cannot be set, the core steps at the instant that the answer names.
func testFollowsCore(t *testing.T, h *harness) {
	suite.Follow(t, func(t *testing.T, d suite.Dice) { follow(t, h, d, 600) })
}

// Fuzz compares every answer of timelines with the core's. The input makes the choices
// until it ends, and a seed of them the rest.
func Fuzz(f *testing.F, start func(testing.TB) Subject) {
	h := &harness{start(f)}
	suite.Fuzz(f, func(t *testing.T, d suite.Dice) { follow(t, h, d, 200) })
}

// follow runs an escrow and the core side by side.
func follow(t *testing.T, h *harness, d suite.Dice, steps int) {
	now, line := suite.Start, timeline{d}
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
			now = line.later(now)
			h.Set(now)
		} else {
			now = core.Latest
		}
		c := line.next(core, since, now)
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
