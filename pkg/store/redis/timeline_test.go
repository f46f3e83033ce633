package redis

import (
	"github.com/weir-dev/weir/pkg/limiter"
	"github.com/weir-dev/weir/pkg/store/storetest"
)

// A timeline is a sequence of calls for one counter and what Step makes of them.
type timeline struct {
	memory limiter.Memory // of the store before the first call
	calls  []call
	end    counter
}

type call struct {
	storetest.Call
	evicted bool              // the guard lost its newest instant before the call
	was     limiter.Algorithm // of the state before
	want    limiter.Result
}

func newTimeline(d storetest.Dice, calls int) timeline {
	l := storetest.NewTimeline(d)
	made := timeline{memory: l.Memory, end: counter{latest: l.Memory.Latest}}
	for range calls {
		c := call{Call: l.Next(), evicted: d()%16 == 0, was: made.end.state.Algorithm}
		if c.evicted {
			made.end.latest = 0
		}
		c.want = made.end.apply(l.Memory.Since, c.Call)
		l.Answered(c.Call, c.want)
		made.calls = append(made.calls, c)
	}
	return made
}

// A counter is what a store holds of one key, by the rules of lua/step.lua.
type counter struct {
	state  limiter.State
	kept   int64           // until when, in milliseconds
	latest limiter.Instant // of the guard
}

// apply runs a call as the store does.
func (c *counter) apply(since limiter.Instant, made storetest.Call) limiter.Result {
	now, cmd := made.Now, made.Command
	cmd.Memory = limiter.Memory{Since: since, Latest: c.latest}
	next, res := made.Params.Step(c.state, now, cmd)
	refused := res.Reason == limiter.StaleGeneration || res.Reason == limiter.ClockBehind
	same := layoutOf(next).Equal(layoutOf(c.state))
	switch {
	case refused || cmd.Op == limiter.Peek:
		return res
	case next.Algorithm.WindowCoupled():
		if !same {
			c.latest, c.kept = now, keptUntil(next, now)
		}
	case same && cmd.Op != limiter.Reset && res.Granted == 0:
		return res // the same state, later
	default:
		if now.Sub(c.latest) >= 100*limiter.Millisecond {
			c.latest = now
		}
		c.kept = keptUntil(next, now)
	}
	c.state = next
	return res
}

// keptUntil is in milliseconds, as the server counts.
func keptUntil(s limiter.State, now limiter.Instant) int64 {
	until := int64(now.Add(s.KeepFor(now)))
	return min(until/1000+min(1, until%1000), mostKept)
}

// mostKept is up to when the script counts each millisecond.
const mostKept = limiter.MaxExact / 1000

// layoutOf is a state without its counts: what only an edit or a new window
// changes.
func layoutOf(s limiter.State) limiter.State {
	s.Expires, s.Began, s.Asked, s.Before, s.Tenants = 0, 0, 0, 0, nil
	for i := range s.Slice() {
		m := &s.Meters[i]
		m.Used, m.Log = 0, nil
		if !s.Algorithm.WindowCoupled() {
			m.Index = 0
		}
	}
	return s
}
