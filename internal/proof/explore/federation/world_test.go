package federation_test

import (
	"fmt"
	"slices"

	"github.com/weir-dev/weir/internal/proof/explore"
	"github.com/weir-dev/weir/pkg/federation/escrow"
	"github.com/weir-dev/weir/pkg/federation/ledger"
	"github.com/weir-dev/weir/pkg/limiter"
)

// A system is a model of what the modules leave out: messages that take any
// time, are lost, repeated and overtake each other, processes below an escrow, clocks
// that differ, memories that are lost, slices and edits.
type system struct {
	params  []ledger.Params // an edit is a step to the next
	regions int
	windows int64 // that pass
	ticks   int64 // in a window: how finely the clock is read
	sends   int   // commands of a region, at most
	others  int   // of all but the first, when it is not 0
	repeats int   // messages that arrive twice, at most
	crashes int   // memories that are lost, at most
	keeps   bool  // a record with all that is set aside; else a memory that is lost knows nothing
	offset  limiter.Micros
	release bool // regions give back
	batch   int64
	hands   bool // processes take batches of the escrow and spend them later

	rules rules
	spare int64
	bound int
}

// rules are what processes and coordinators keep to. A weakening replaces one.
type rules struct {
	step  func(ledger.State, ledger.Params, limiter.Instant, ledger.Command) (ledger.State, ledger.Grant)
	fill  func(*escrow.State, *escrow.Command, limiter.Instant) // changes what an answer finds
	given func(before, after *escrow.State)                     // changes what a release left
	lost  func(*ledger.State)                                   // changes what a memory begins with
	since func(limiter.Instant) limiter.Instant
	alive func(until, now int64) bool // of what a process has in hand
	old   bool                        // an overtaken memory may set units aside
}

func production() rules {
	return rules{
		step:  ledger.State.Step,
		fill:  func(*escrow.State, *escrow.Command, limiter.Instant) {},
		given: func(_, _ *escrow.State) {},
		lost:  func(*ledger.State) {},
		since: func(now limiter.Instant) limiter.Instant { return now },
		alive: func(until, now int64) bool { return now < until },
	}
}

// A world is a state of it.
type world struct {
	now      int64 // ticks
	edits    int
	memories []coordinator
	record   ledger.State
	version  int
	regions  []region
	mail     []letter
	repeats  int
	crashes  int
	admitted []int64 // of each window that the coordinator's clock showed
}

type coordinator struct {
	state   ledger.State
	knows   ledger.Memory
	version int
}

type region struct {
	escrow escrow.State
	sent   int
	hand   int64 // units that a process took
	until  int64 // tick from which on it may not spend them
}

// A letter is a command, or its answer.
type letter struct {
	region  int
	asked   limiter.Instant // by the escrow's clock
	sent    int64           // tick
	command ledger.Command
	grant   ledger.Grant
	answer  bool
}

func (c *system) model() explore.Model[world, string] {
	w := world{memories: []coordinator{{knows: ledger.Memory{Term: 1}}}, regions: make([]region, c.regions), admitted: make([]int64, c.windows)}
	return explore.Model[world, string]{
		Init: []world{w}, Next: c.next, Encode: c.encode, Bound: max(c.bound, 600_000),
		Check: func(w world) error {
			for i, n := range w.admitted {
				if n > c.params[0].Limit-c.spare {
					return fmt.Errorf("%d admitted in window %d of %d", n, i, c.params[0].Limit)
				}
			}
			return nil
		},
	}
}

// encode writes all that matters. Fields that only a status shows are left out.
func (c *system) encode(b []byte, w world) []byte {
	strip := func(s ledger.State) ledger.State {
		s.Closed = nil
		s.Standings = slices.Clone(s.Standings)
		for i := range s.Standings {
			s.Standings[i].Seen = 0
		}
		return s
	}
	b = fmt.Append(b, w.now, w.edits, strip(w.record), w.version, w.repeats, w.crashes, w.admitted)
	for _, m := range w.memories {
		b = fmt.Append(b, strip(m.state), m.knows, m.version)
	}
	mail := slices.Clone(w.mail)
	list := make([]string, len(mail))
	for i, l := range mail {
		list[i] = fmt.Sprint(l)
	}
	slices.Sort(list)
	return fmt.Append(b, w.regions, list)
}

// clone returns a copy that may be written to.
func (w world) clone() world {
	w.memories = slices.Clone(w.memories)
	w.regions = slices.Clone(w.regions)
	w.mail = slices.Clone(w.mail)
	w.admitted = slices.Clone(w.admitted)
	return w
}

func (c *system) tick() limiter.Micros { return c.params[0].Window / limiter.Micros(c.ticks) }

// instant is what the coordinator's clock shows, which began in window 10.
func (c *system) instant(now int64) limiter.Instant {
	return limiter.Instant(10*int64(c.params[0].Window)) + limiter.Instant(now*int64(c.tick()))
}

// local is what the clock of the region shows.
func (c *system) local(now int64, n int) limiter.Instant {
	return c.instant(now).Add(c.offset * limiter.Micros(1-2*(n%2)))
}
