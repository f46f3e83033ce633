package pooltest

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-dev/weir/internal/testing/suite"
	"github.com/weir-dev/weir/pkg/concurrency/pool"
)

// testFollowsCore compares every answer of random timelines with the core's. When
// the clock cannot be set, nothing expires in them, and what is left of a share or a
// quarantine is not compared.
func testFollowsCore(t *testing.T, h *harness) {
	suite.Follow(t, func(t *testing.T, d suite.Dice) { follow(t, h, d, 400) })
}

// Fuzz compares every answer of timelines with the core's, of a subject whose clock can
// be set. The input makes the choices until it ends, and a seed of them the rest.
func Fuzz(f *testing.F, start func(testing.TB) Subject) {
	h := &harness{start(f)}
	suite.Fuzz(f, func(t *testing.T, d suite.Dice) { follow(t, h, d, 200) })
}

func follow(t *testing.T, h *harness, d suite.Dice, steps int) {
	line := NewTimeline(d, suite.Start)
	f := follower{h: h, key: key(t)}
	if h.Set == nil {
		f.slow(t, line)
	}
	for i := range steps {
		c := f.next(line)
		if err := f.follow(t, c); err != nil {
			t.Fatalf("step %d, %+v: %v", i, c, err)
		}
	}
}

// A follower runs a coordinator and the core side by side.
type follower struct {
	h    *harness
	key  pool.Key
	core *pool.State
}

// slow waits until the pool, whose shares do not expire, is in no quarantine.
func (f *follower) slow(t *testing.T, line *Timeline) {
	m := f.h.open(t, fixed(1), "first")
	m.leave(t)
	line.Params.Generation = 2
	core, err := pool.Restore(pool.Memory{
		Term: m.Term, Generation: m.Generation, Params: m.params, Limit: m.Limit, Bound: m.Limit,
	}, 0)
	if err != nil {
		t.Fatal(err)
	}
	f.core = core
}

func (f *follower) next(line *Timeline) Call {
	m := pool.Memory{}
	if f.core != nil {
		m = f.core.Memory()
	}
	c := line.Next(m)
	if f.h.Set == nil {
		c.Now, c.Params.TTL = 0, long
	}
	return c
}

func (f *follower) follow(t *testing.T, c Call) error {
	if f.h.Set != nil {
		f.h.Set(c.Now)
	}
	got, err := f.h.Coordinator.Apply(t.Context(), f.key, c.Params, c.Command)
	if err != nil {
		return err
	}
	if f.core == nil { // the coordinator says how its memory begins
		f.core = pool.Begin(got.Term, c.Now.Add(got.Quarantined-c.Params.Quarantine), c.Params)
	}
	want, err := f.core.Step(c.Params, c.Now, c.Command)
	if err != nil {
		return err
	}
	if f.h.Set == nil {
		got.TTL, want.TTL = 0, 0
	}
	if got != want {
		return fmt.Errorf("answer (-want +got)\n%s", cmp.Diff(want, got))
	}
	return nil
}
