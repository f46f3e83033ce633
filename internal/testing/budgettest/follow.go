package budgettest

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/weir-dev/weir/internal/testing/suite"
	"github.com/weir-dev/weir/pkg/federation/ledger"
	"github.com/weir-dev/weir/pkg/store"
)

// testFollowsCore compares every answer of random timelines, and all that is
// remembered after it, with the core's.
func testFollowsCore(t *testing.T, h *harness) {
	suite.Follow(t, func(t *testing.T, d suite.Dice) { follow(t, h, d, 400) })
}

// Fuzz does the same with a subject whose clock can be set. The input makes the choices
// until it ends, and a seed of them the rest.
func Fuzz(f *testing.F, start func(testing.TB) Subject) {
	h := &harness{start(f)}
	suite.Fuzz(f, func(t *testing.T, d suite.Dice) { follow(t, h, d, 200) })
}

func follow(t *testing.T, h *harness, d suite.Dice, steps int) {
	line := NewTimeline(d, suite.Start, h.Block)
	f := follower{h: h, id: t.Name()}
	for i := range steps {
		if h.Set != nil && len(h.Forget) > 0 && i > 0 && d.OneIn(80) {
			if err := f.forget(t, suite.OneOf(d, slices.Sorted(maps.Keys(h.Forget)))); err != nil {
				t.Fatalf("step %d, a loss: %v", i, err)
			}
		}
		c := line.Next(f.core)
		if err := f.follow(t, c); err != nil {
			t.Fatalf("step %d, %+v: %v", i, c, err)
		}
	}
}

// A follower runs a coordinator and the core side by side.
type follower struct {
	h    *harness
	id   string
	core ledger.State
	late int // commands that were not answered in time
}

// mostLate is how many commands a busy machine may leave without an answer.
const mostLate = 10

// forget goes on with what is left after a loss.
func (f *follower) forget(t *testing.T, how string) (err error) {
	f.h.Coordinator = f.h.Forget[how]()
	f.core, err = f.h.Coordinator.Observe(t.Context(), f.id)
	return err
}

func (f *follower) follow(t *testing.T, call Call) error {
	if f.h.Set != nil {
		f.h.Set(call.Now)
	}
	got, err := f.h.Coordinator.Apply(t.Context(), f.id, call.Params, call.Command)
	if unavailable := (*store.UnavailableError)(nil); errors.As(err, &unavailable) {
		return f.unanswered(t, call, err)
	}
	if err != nil {
		return err
	}
	if f.h.Set != nil && got.Now != call.Now {
		return fmt.Errorf("the clock shows %d", got.Now)
	}
	call.Now, call.Command.Memory = got.Now, f.h.Memory(f.id)
	want := f.step(call)
	if got != want {
		return fmt.Errorf("before: %+v\nanswer (-want +got)\n%s", f.core, cmp.Diff(want, got))
	}
	state, err := f.h.Coordinator.Observe(t.Context(), f.id)
	if err != nil {
		return err
	}
	if f.h.Block > 0 && state.Reserved <= f.core.Limit {
		f.core.Reserved = max(f.core.Reserved, state.Reserved) // more may be set aside than was asked for
	}
	if diff := cmp.Diff(f.core, state, cmpopts.EquateEmpty()); diff != "" {
		return fmt.Errorf("what is remembered (-want +got)\n%s", diff)
	}
	return nil
}

// unanswered goes on after a command that may have been carried out or not. One that
// names a later memory may be left to that.
func (f *follower) unanswered(t *testing.T, call Call, err error) error {
	if call.Command.Epoch.Term > f.core.Term {
		return nil
	}
	if f.late++; f.late > mostLate {
		return err
	}
	f.core, err = f.h.Coordinator.Observe(t.Context(), f.id)
	return err
}

// step is what the coordinator has to do, blocks included.
func (f *follower) step(c Call) ledger.Grant {
	next, g := f.core.Step(c.Params, c.Now, c.Command)
	if g.Reason == ledger.Unreserved {
		reserve := ledger.Command{Op: ledger.Reserve, Epoch: g.Epoch, Granted: g.Reserve, Memory: c.Command.Memory}
		next, _ = next.Step(c.Params, c.Now, reserve)
		next, g = next.Step(c.Params, c.Now, c.Command)
	}
	f.core = next
	return g
}
