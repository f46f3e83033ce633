package pools_test

import (
	"github.com/weir-dev/weir/pkg/concurrency/pool"
	"github.com/weir-dev/weir/pkg/limiter"
)

// A coordinator is the production code and what it remembers. It is not changed: what
// happens to it makes another one.
type coordinator struct {
	state  *pool.State
	memory pool.Memory
	at     limiter.Instant // of memory, by the coordinator's clock
}

// first returns the coordinator of a new pool.
func first() *coordinator { return after(pool.New(1), epoch) }

// after returns a coordinator that owns a state and heard of something last at an
// instant.
func after(s *pool.State, at limiter.Instant) *coordinator {
	return &coordinator{state: s, memory: s.Memory(), at: at}
}

// note has the coordinator note what a command says.
func (c *coordinator) note(p pool.Params, cmd pool.Command) (*coordinator, error) {
	s := c.state.Clone()
	_, err := s.Report(p, epoch, cmd)
	return after(s, epoch), err
}

// reallocate has it issue a share to a holder.
func (c *coordinator) reallocate(holder string) (*coordinator, pool.Grant) {
	s := c.state.Clone()
	g := s.Reallocate(holder)
	return after(s, epoch), g
}

// quarantined returns whether it waits for shares of a memory before.
func (c *coordinator) quarantined(now limiter.Instant) bool {
	return c.at.Add(c.memory.Quarantined) > now
}

// find returns what the coordinator knows of a holder.
func (c *coordinator) find(holder string) (pool.Record, bool) {
	for _, r := range c.memory.Holders {
		if r.Holder == holder {
			return r, true
		}
	}
	return pool.Record{}, false
}

// reserve returns what is kept for a holder.
func (c *coordinator) reserve(r pool.Record) int64 {
	if c.memory.Params.Handoff == pool.Occupancy {
		return max(r.Share, r.InFlight)
	}
	return max(r.Unacked, r.InFlight)
}

// reserved returns what is kept for all.
func (c *coordinator) reserved() int64 {
	var total int64
	for _, r := range c.memory.Holders {
		total += c.reserve(r)
	}
	return total
}
