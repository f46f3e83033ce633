package ledger_test

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"

	"github.com/weir-dev/weir/pkg/federation/ledger"
	"github.com/weir-dev/weir/pkg/limiter"
)

// A timeline is a random history of a budget: processes of members that ask, use and
// give back by the rules of the package's doc, a network that loses, repeats and
// reorders, a clock that steps back, memories that are lost, and edits. It keeps by
// itself what was used of each window and knows nothing of how the ledger counts.
type timeline struct {
	rng      *rand.Rand
	kind     string // what the coordinator remembers after a crash: "all", "nothing" or "record"
	params   ledger.Params
	clock    limiter.Instant
	latest   limiter.Instant // that the clock has shown
	served   limiter.Instant // the latest at which any memory granted
	memories []*memory       // the last one is right; those before do not know it yet
	record   ledger.State
	version  int

	processes []*process // one of each member uses its slice
	born      int
	sent      []message // commands on their way
	answers   []message

	used   map[int64]int64 // of each window, slices included
	sliced map[int64]int64
	first  map[int64]int64 // the limit that the first command of a window named
	least  map[int64]int64 // and the smallest
	did    map[string]int
}

// A memory is a coordinator in its own mind.
type memory struct {
	state   ledger.State
	knows   ledger.Memory
	version int // of the record it wrote or read last
}

// A process is one holder, by the rules that holders keep.
type process struct {
	member, name   string
	born           limiter.Instant
	seq, floor     int64
	epoch          ledger.Epoch
	granted, prior int64 // prior is of terms before
	used           int64
	slice          int64 // sent last
	opened         int64 // the latest window whose slice it used
}

type message struct {
	from    *process
	command ledger.Command
	grant   ledger.Grant
}

func newTimeline(seed uint64, kind string) *timeline {
	t := &timeline{
		rng: rand.New(rand.NewPCG(seed, 1)), kind: kind, clock: base, latest: base,
		used: map[int64]int64{}, sliced: map[int64]int64{}, first: map[int64]int64{}, least: map[int64]int64{}, did: map[string]int{},
	}
	t.params = ledger.Params{Limit: 1 + t.rng.Int64N(60), Window: limiter.Second, Strategy: ledger.Strategy(t.rng.IntN(3)), Slices: t.rng.IntN(2) == 0}
	if kind == "record" {
		t.params.Block = 1 + t.rng.Int64N(10)
	}
	for i := range 1 + t.rng.IntN(4) {
		t.params.Members = append(t.params.Members, ledger.Member{Name: string(rune('a' + i))})
	}
	t.edit()
	for _, m := range t.params.Members {
		t.spawn(m.Name)
	}
	t.memories = []*memory{{knows: ledger.Memory{Term: 1}}}
	return t
}

// edit changes what members get, but not the limit.
func (t *timeline) edit() {
	t.params.Members = slices.Clone(t.params.Members)
	left := t.params.Limit
	for i := range t.params.Members {
		m := &t.params.Members[i]
		m.Weight, m.Borrowing = 1+t.rng.Int64N(5), t.rng.Int64N(40)-10
		m.Nominal = t.rng.Int64N(left + 1)
		left -= m.Nominal
		m.Kept = t.rng.Int64N(m.Nominal + 1)
	}
}

// spawn begins the process that uses its member's slice from now on.
func (t *timeline) spawn(member string) {
	t.processes = append(t.processes, &process{member: member, name: t.name(member), born: t.latest})
}

// replace ends the process that uses its member's slice and begins the next one. What
// it sent may be on its way.
func (t *timeline) replace(member string) {
	t.processes = slices.DeleteFunc(t.processes, func(p *process) bool { return p.member == member && p.slices() })
	t.spawn(member)
	t.did["a process was replaced"]++
}

func (p *process) slices() bool { return p.born < limiter.MaxInstant }

// another begins a process beside others of its member, or ends one.
func (t *timeline) another() {
	if !t.processes[0].slices() && t.rng.IntN(2) == 0 {
		t.processes = t.processes[1:]
		return
	}
	member := t.processes[t.rng.IntN(len(t.processes))].member
	t.processes = slices.Insert(t.processes, 0, &process{member: member, name: t.name(member), born: limiter.MaxInstant})
	t.did["another holder of a member"]++
}

// name returns a name that no process had before.
func (t *timeline) name(member string) string {
	t.born++
	return fmt.Sprint(member, t.born)
}

func (t *timeline) window() int64 { return int64(t.clock) / int64(t.params.Window) }

// step lets one thing happen. The error is what went wrong.
func (t *timeline) step() error {
	switch n := t.rng.IntN(100); {
	case n < 18:
		t.send()
	case n < 42:
		return t.arrive()
	case n < 70:
		t.hear()
	case n < 86:
		return t.use()
	case n < 92:
		t.clock += limiter.Instant(t.rng.Int64N(500_000))
		t.latest = max(t.latest, t.clock)
		t.useSlices()
	case n < 93 && t.rng.IntN(3) == 0:
		t.clock -= limiter.Instant(t.rng.Int64N(300_000))
		t.did["the clock stepped back"]++
	case n < 95 && len(t.sent) > 0:
		t.sent = slices.Delete(t.sent, 0, 1)
		t.did["a command was lost"]++
	case n < 96:
		t.crash()
	case n < 97:
		t.replace(t.params.Members[t.rng.IntN(len(t.params.Members))].Name)
	case n < 98:
		t.another()
	default:
		if t.kind != "nothing" || !t.params.Slices { // see the doc: then slices must not be edited
			t.edit()
		}
		if t.rng.IntN(3) == 0 && !t.params.Slices {
			t.params.Limit = max(t.params.Limit-t.rng.Int64N(5), t.nominal(), 1)
			t.did["the limit fell"]++
		}
	}
	return nil
}

func (t *timeline) nominal() (sum int64) {
	for _, m := range t.params.Members {
		sum += m.Nominal
	}
	return sum
}

// send lets a process ask for units or give some back.
func (t *timeline) send() {
	p := t.processes[t.rng.IntN(len(t.processes))]
	p.seq++
	c := ledger.Command{Op: ledger.Lease, Member: p.member, Holder: p.name, Seq: p.seq, Slice: p.slice}
	if t.rng.IntN(4) == 0 {
		c.Op = ledger.Release
		p.granted -= t.rng.Int64N(max(0, min(p.granted, p.granted+p.prior-p.used)) + 1)
		p.floor = p.seq - 1
	} else {
		c.Min = 1 + t.rng.Int64N(8)
		c.Want = c.Min + t.rng.Int64N(20)
	}
	if !p.slices() {
		c.Slice = ledger.NoSlice
	}
	c.Epoch, c.Granted = p.epoch, p.granted
	if t.rng.IntN(2) == 0 {
		c.Demand = t.rng.Int64N(60)
	}
	if t.rng.IntN(5) == 0 {
		c.Weight = 1 + t.rng.Int64N(9)
	}
	t.sent = append(t.sent, message{from: p, command: c})
	if t.rng.IntN(8) == 0 {
		t.sent = append(t.sent, t.sent[len(t.sent)-1])
		t.did["a command was repeated"]++
	}
}

// arrive brings any command on its way to any memory that believes to serve.
func (t *timeline) arrive() error {
	if len(t.sent) == 0 {
		return nil
	}
	i := t.rng.IntN(len(t.sent))
	if t.rng.IntN(4) > 0 {
		i = 0
	}
	m := t.sent[i]
	t.sent = slices.Delete(t.sent, i, i+1)
	serves := t.memories[t.rng.IntN(len(t.memories))]
	g, ok, err := t.serve(serves, m.command)
	if err == nil && ok {
		m.grant = g
		t.answers = append(t.answers, m)
		t.did[fmt.Sprint("reason ", g.Reason)]++
	}
	return err
}

// serve applies a command, after it has written down what has to be. It reports false
// when the memory finds that it was overtaken.
func (t *timeline) serve(m *memory, c ledger.Command) (ledger.Grant, bool, error) {
	c.Memory = m.knows
	for {
		next, g := m.state.Step(t.params, t.clock, c)
		if g.Reason == ledger.Unreserved {
			if !reflect.DeepEqual(next, m.state) {
				return g, false, fmt.Errorf("%+v changed %+v to %+v", g, m.state, next)
			}
			reserve := ledger.Command{Op: ledger.Reserve, Epoch: g.Epoch, Granted: g.Reserve, Memory: m.knows}
			if next, _ = m.state.Step(t.params, t.clock, reserve); !t.write(m, next) {
				return g, false, nil
			}
			m.state = next
			continue
		}
		if t.kind == "record" && larger(m.state, next) && !t.write(m, next) {
			return g, false, nil
		}
		t.served = max(t.served, next.Latest)
		err := t.check(m.state, next, c, g)
		m.state = next
		return g, true, err
	}
}

// larger reports whether a member was sent a slice that is not written down.
func larger(before, after ledger.State) bool {
	for _, s := range after.Standings {
		if was, _ := before.StandingOf(s.Member); s.Next > max(was.Slice, was.Next) {
			return true
		}
	}
	return false
}

// write is the compare-and-swap of the record.
func (t *timeline) write(m *memory, s ledger.State) bool {
	if m.version != t.version {
		t.did["a memory was overtaken"]++
		return false
	}
	t.version++
	m.version = t.version
	t.record = ledger.State{Window: s.Window, Index: s.Index, Term: s.Term, Limit: s.Limit, Reserved: s.Reserved}
	for _, o := range s.Standings {
		if most := max(o.Slice, o.Next); most > 0 {
			t.record.Standings = append(t.record.Standings, ledger.Standing{Member: o.Member, Slice: most, Next: most})
		}
	}
	return true
}

// crash begins another memory. The one before may not know.
func (t *timeline) crash() {
	last := t.memories[len(t.memories)-1]
	next := &memory{knows: ledger.Memory{Term: last.knows.Term + 1}}
	switch t.kind {
	case "all":
		next.state = last.state
		t.memories = nil
	case "nothing":
		next.knows.Since = t.served + 1
		t.memories = nil
	case "record":
		next.state = t.record
		if t.version > 0 {
			t.version++ // the new one writes its term first
		}
		next.version = t.version
	}
	t.memories = append(t.memories, next)
	t.memories = t.memories[max(0, len(t.memories)-2):]
	t.did["a memory was lost"]++
}
