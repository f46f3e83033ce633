package redis

import (
	"strconv"

	"github.com/weir-dev/weir/pkg/limiter"
	"github.com/weir-dev/weir/pkg/store"
	"github.com/weir-dev/weir/pkg/store/storetest"
)

// A timeline is a sequence of calls for one counter and what Step makes of them.
type timeline struct {
	guard guard // before the first call
	calls []call
	end   counter
}

type call struct {
	storetest.Call
	known   store.Recollection // of the holder
	evicted bool               // the guard lost its newest instant before the call
	was     limiter.Algorithm  // of the state before
	want    limiter.Result
}

// A guard is what a store remembers of a partition; see lua/guard.lua.
type guard struct {
	since, latest limiter.Instant
	volatile      limiter.MemoryID // by lua/guard.lua
	short         bool             // it ends here
	origin        limiter.MemoryID
	lost          limiter.Instant
	flags         byte
	doubts        [2]limiter.Instant // of the volatile memory and of the durable one
}

// text lays the guard of an instance out.
func (g guard) text(line string) string {
	b := appendInts(append([]byte{1}, line...), int64(g.since), int64(g.latest))
	if !g.short {
		b = append(appendInts(b, int64(g.origin), int64(g.lost)), g.flags)
	}
	if g.doubts[0] > g.since || g.doubts[1] > g.lost {
		b = appendInts(b, int64(g.doubts[0]), int64(g.doubts[1]))
	}
	return string(b)
}

// memory returns limiter.Memory for a limit, and notes what its holder knows of the memories
// before.
func (g *guard) memory(r limiter.Retention, known store.Recollection) limiter.Memory {
	m := limiter.Memory{Since: g.since, Latest: g.latest}
	durable := r.Durable && !g.short
	if durable {
		m.Since = g.lost
	}
	if r.Resume {
		m.Since = 0
		return m
	}
	begun, doubt := m.Since, &g.doubts[flag(r.Durable)]
	if m.Since = known.Forgot(begun); m.Since > begun && (m.Since > *doubt || known.Since > begun && g.flags&followed == 0) {
		*doubt = max(*doubt, m.Since)
		g.whole()
		if known.Since > begun {
			g.flags |= followed
		}
	}
	if born := r.IsBornIn(g.volatile) || durable && r.IsBornIn(g.origin); born && g.flags&followed == 0 && known.Vouches(begun) {
		m.Since = 0
		return m
	}
	m.Since = max(m.Since, *doubt)
	return m
}

// whole has a guard of a script that knew only the first part as this script writes it.
func (g *guard) whole() {
	if g.short {
		g.short, g.origin, g.lost, g.flags = false, g.volatile, g.since, 0
	}
}

// followed is FOLLOWED of lua/guard.lua.
const followed = 4

const edgeOrigin = limiter.MemoryID(1<<63 + 7)

func newTimeline(line string, d storetest.Dice, calls int) timeline {
	l := storetest.NewTimeline(d)
	g := guard{since: l.Memory.Since, latest: l.Memory.Latest, short: d()%8 == 0, origin: edgeOrigin, flags: byte(d() % 2)}
	g.lost = g.since / (1 + limiter.Instant(d()%3))
	g.volatile = memoryID(line, g.since)
	if !g.short && d()%4 == 0 {
		g.doubts = [2]limiter.Instant{g.since + 1 + limiter.Instant(d()%3), g.lost + limiter.Instant(d()%3)}
	}
	made := timeline{guard: g, end: counter{guard: g}}
	for range calls {
		c := call{Call: l.Next(), evicted: d()%16 == 0, was: made.end.state.Algorithm}
		c.Params.Retention = retentionOf(d, g)
		if d()%8 == 0 {
			c.Command.Floor = max(0, c.Now+limiter.Instant(d()%5)-2)
		}
		if c.evicted {
			made.end.guard.latest = 0
		}
		if d()%4 == 0 {
			c.known.Since = []limiter.Instant{0, g.since, g.lost, g.since + 1}[d()%4]
			c.known.Doubtful = max(0, c.Now-limiter.Instant(d()%3)*limiter.Instant(c.Params.Rates[0].Window)/2)
			c.known.Newest = c.known.Since + limiter.Instant(d()%4/3)
			c.known.Behind = c.known.Doubtful / (1 + limiter.Instant(d()%2)) * limiter.Instant(d()%2)
		}
		c.want = made.end.apply(c.Call, c.known)
		l.Answered(c.Call, c.want)
		made.calls = append(made.calls, c)
	}
	return made
}

// retentionOf returns a valid retention, mostly of counters that were born in other
// memories.
func retentionOf(d storetest.Dice, g guard) limiter.Retention {
	var r limiter.Retention
	for range d() % 3 {
		r.Born = append(r.Born, []limiter.MemoryID{1, 2, edgeOrigin - 1, g.origin, g.volatile}[d()%5])
	}
	r.Durable = d()%2 == 0
	if r.Durable {
		r.Resume = d()%4 == 0
	}
	return r
}

// memoryID names the memory of an instance as lua/guard.lua does.
func memoryID(line string, since limiter.Instant) limiter.MemoryID {
	instance, err := strconv.ParseUint(line[len("master_replid:"):][:6], 16, 64)
	if err != nil {
		panic(err)
	}
	return limiter.MemoryID(instance<<40 + uint64(since)/1000%(1<<40))
}

// A counter is what a store holds of one key, by the rules of lua/step.lua.
type counter struct {
	state limiter.State
	kept  int64 // until when, in milliseconds
	guard guard
}

// apply runs a call as the store does.
func (c *counter) apply(made storetest.Call, known store.Recollection) limiter.Result {
	now, cmd := made.Now, made.Command
	cmd.Memory = c.guard.memory(made.Params.Retention, known)
	next, res := made.Params.Step(c.state, now, cmd)
	refused := res.Reason == limiter.StaleGeneration || res.Reason == limiter.ClockBehind
	same := layoutOf(next).Equal(layoutOf(c.state))
	switch {
	case refused || cmd.Op == limiter.Peek:
		return res
	case next.Algorithm.WindowCoupled():
		if !same {
			c.noted(now, opened(next))
			c.kept = keptUntil(next, now)
		}
	case same && cmd.Op != limiter.Reset && res.Granted == 0:
		return res // the same state, later
	default:
		c.noted(now, 0)
		c.kept = keptUntil(next, now)
	}
	c.state = next
	return res
}

// noted notes the instant of a decision in the guard, unless what that says is new enough,
// and newer than the beginning of a window that was opened.
func (c *counter) noted(now, opened limiter.Instant) {
	if now.Sub(c.guard.latest) >= 100*limiter.Millisecond || opened > c.guard.latest {
		c.guard.latest = now
	}
}

// opened returns when the youngest window of a state began.
func opened(s limiter.State) (at limiter.Instant) {
	windows := s.Windows(0)
	for _, w := range windows.Slice() {
		at = max(at, w.Start())
	}
	return at
}

// keptUntil is in milliseconds, as the server counts.
func keptUntil(s limiter.State, now limiter.Instant) int64 {
	until := int64(now.Add(s.KeepFor(now)))
	return min(until/1000+min(1, until%1000), mostKept) + backstop
}

// backstop is BACKSTOP of lua/wire.lua.
const backstop = 32 * 24 * 3600 * 1000

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
