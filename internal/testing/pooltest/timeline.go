package pooltest

import (
	"slices"

	"github.com/weir-dev/weir/internal/testing/suite"
	"github.com/weir-dev/weir/pkg/concurrency/pool"
	"github.com/weir-dev/weir/pkg/limiter"
)

// A Timeline is a sequence of calls for one pool, chosen at random and where rules
// meet: what honest holders send, late and repeated, and what no honest one does.
type Timeline struct {
	// Params are those of the next call, mostly.
	Params pool.Params

	dice suite.Dice
	now  limiter.Instant
}

// A Call is one command at an instant of the coordinator's clock.
type Call struct {
	Now     limiter.Instant
	Params  pool.Params
	Command pool.Command
}

// holders are few, so that they meet, and as different as names can be.
var holders = []string{"a", "b", "B", "0", "é", "a/1", "a/2", "long-" + string(make([]byte, 200)), "f86b5c5c-8d0e-4a4e-9f0e-4cb7a0c5b7c1/k3f9"}

// NewTimeline begins a timeline at an instant.
func NewTimeline(d suite.Dice, now limiter.Instant) *Timeline {
	t := &Timeline{dice: d, now: now}
	t.Params = pool.Params{Quarantine: limiter.Micros(1 + d.Below(40)), Generation: 1}
	t.edit()
	return t
}

// Next returns the next call to a pool that remembers m.
func (t *Timeline) Next(m pool.Memory) Call {
	if t.dice.OneIn(24) {
		t.Params.Generation++
		t.edit()
	}
	c := Call{Now: t.later(), Params: t.Params, Command: t.command(m)}
	if t.dice.OneIn(16) {
		c.Params.Generation--
		c.Params.Min = 1 // a holder that is behind
	}
	return c
}

// later moves the clock a little, seldom by as long as shares last, or back.
func (t *Timeline) later() limiter.Instant {
	switch t.dice.Below(16) {
	case 0:
		t.now += limiter.Instant(t.Params.TTL) - 1 + limiter.Instant(t.dice.Below(3))
	case 1:
		return max(0, t.now-limiter.Instant(t.dice.Below(5)))
	case 2, 3, 4, 5:
		t.now += limiter.Instant(t.dice.Below(8))
	}
	return t.now
}

func (t *Timeline) edit() {
	d, p := t.dice, &t.Params
	p.Min = suite.OneOf(d, []int64{1, 1, 2, 5, 40, pool.MaxLimit - 1})
	p.Max = min(p.Min+suite.OneOf(d, []int64{0, 1, 7, 60, pool.MaxLimit}), pool.MaxLimit)
	p.Initial = p.Min + d.Below(p.Max-p.Min+1)
	p.Aggregate, p.Allocation, p.Handoff = pool.Aggregate(d.Below(2)), pool.Allocation(d.Below(2)), pool.Handoff(d.Below(2))
	p.TTL = suite.OneOf(d, []limiter.Micros{1, 10, 30, 31, 100})
	p.Quarantine = max(p.Quarantine, limiter.Micros(d.Below(50)))
}

func (t *Timeline) command(m pool.Memory) pool.Command {
	d := t.dice
	c := pool.Command{
		Op: pool.Beat, Holder: suite.OneOf(d, holders), Seq: 1 + d.Below(30), Term: max(0, m.Term-d.Below(2)),
		Held: d.Below(8), InFlight: d.Below(8),
	}
	if i := slices.IndexFunc(m.Holders, func(r pool.Record) bool { return r.Holder == c.Holder }); i >= 0 {
		t.known(&c, &m.Holders[i])
	} else {
		c.Applied = d.Below(m.Generation + 1)
	}
	if d.Below(3) > 0 {
		c.Limit = suite.OneOf(d, []int64{1, 3, 9, 20, 21, 22, pool.MaxLimit, 1 + d.Below(80)})
	}
	c.Peak = c.InFlight + suite.OneOf(d, []int64{0, 0, 0, 1, 5})
	if d.OneIn(24) {
		c.Op, c.InFlight = pool.Leave, 0
	}
	return c
}

// known makes the command one that the holder may send, late or in time.
func (t *Timeline) known(c *pool.Command, r *pool.Record) {
	d := t.dice
	c.Seq = max(1, r.Seq+d.Below(5)-1)
	c.Applied = max(0, r.Generation-d.Below(2))
	c.Held = suite.OneOf(d, []int64{r.Share, r.Held, 0, c.Held})
	c.InFlight = suite.OneOf(d, []int64{r.Share, max(0, r.Share-1), r.InFlight, c.InFlight})
}
