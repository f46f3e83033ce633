package federation_test

import (
	"encoding/binary"
	"fmt"
	"iter"
	"testing"

	"github.com/weir-dev/weir/internal/proof/explore"
	"github.com/weir-dev/weir/pkg/federation/escrow"
	"github.com/weir-dev/weir/pkg/federation/ledger"
	"github.com/weir-dev/weir/pkg/limiter"
)

// A published is the module GaleFederatedLeasing or, with a block, GaleFederatedBlocks:
// messages take no time, a region leases a whole batch when it has nothing left, and
// what it has dies with the window.
type published struct {
	regions      int
	limit, batch int64
	block        int64 // units set aside at once, 0 for a coordinator that forgets nothing
	crashes      int   // at most
	forgets      bool  // takes the rule away that what is set aside counts as granted
	spare        int64 // by how much the bound is lowered

	states, most, steps int // that the search has to find
}

func (p published) String() string {
	name := fmt.Sprintf("%d-%d-%d", p.regions, p.limit, p.batch)
	if p.block > 0 {
		name += fmt.Sprintf("-%d-%d", p.block, p.crashes)
	}
	return name
}

// A place is a state of it.
type place struct {
	window   int64
	memories []memory // the last one may set units aside
	record   int64    // units that are set aside, of the window
	regions  []escrow.State
	admitted int64
}

// A memory is a coordinator in its own mind.
type memory struct {
	state ledger.State
	term  int64
}

func (p published) params() ledger.Params {
	params := ledger.Params{Limit: p.limit, Window: limiter.MinWindow, Strategy: ledger.FirstCome, Block: p.block}
	for n := range p.regions {
		params.Members = append(params.Members, ledger.Member{Name: name(n), Weight: 1, Borrowing: -1})
	}
	return params
}

func name(n int) string { return string(rune('a' + n)) }

// opens returns the beginning of a window. The first one is not the first of all time.
func opens(window int64) limiter.Instant {
	return limiter.Instant((window + 10) * int64(limiter.MinWindow))
}

func (p published) model() explore.Model[place, string] {
	return explore.Model[place, string]{
		Init:   []place{{memories: []memory{{term: 1}}, regions: make([]escrow.State, p.regions)}},
		Next:   p.next,
		Encode: p.encode,
		Check: func(s place) error {
			if s.admitted > p.limit-p.spare {
				return fmt.Errorf("%d admitted of %d", s.admitted, p.limit)
			}
			return nil
		},
		Bound: 200_000,
	}
}

func (p published) next(s place) iter.Seq2[string, place] {
	return func(yield func(string, place) bool) {
		for n := range p.regions {
			if s.hand(n) > 0 {
				if !yield(name(n)+" serves", p.serve(s, n)) {
					return
				}
				continue
			}
			for m := range s.memories {
				if next, ok := p.lease(s, m, n); ok && !yield(fmt.Sprintf("%s leases of memory %d", name(n), m+1), next) {
					return
				}
			}
		}
		if next, ok := p.reserve(s); ok && !yield("a block is set aside", next) {
			return
		}
		if len(s.memories) <= p.crashes && !yield("another memory begins", p.crash(s)) {
			return
		}
		yield("the window ends", place{window: s.window + 1, memories: s.memories, regions: s.regions})
	}
}

// hand returns what a region has in hand of the open window.
func (s *place) hand(n int) int64 {
	_, r := s.regions[n].Step(opens(s.window), escrow.Command{Op: escrow.Peek})
	return r.Remaining
}

func (p published) serve(s place, n int) place {
	next := s
	next.regions = append([]escrow.State(nil), s.regions...)
	var r escrow.Result
	next.regions[n], r = next.regions[n].Step(opens(s.window), escrow.Command{Op: escrow.Take, Min: 1, Want: 1})
	next.admitted += r.Granted
	return next
}

// lease has a region lease a batch and, where nothing has to be set aside for it,
// serve from it at once. It reports false when it gets nothing.
func (p published) lease(s place, m, n int) (place, bool) {
	next := s
	next.regions = append([]escrow.State(nil), s.regions...)
	next.memories = append([]memory(nil), s.memories...)
	now, e, o := opens(s.window), &next.regions[n], &next.memories[m]
	var r escrow.Result
	*e, r = e.Step(now, escrow.Command{Op: escrow.Ask, Holder: name(n)})
	if o.term < r.From.Term { // it would not take the answer
		return s, false
	}
	before := o.granted(s.window, p.params())
	var g ledger.Grant
	o.state, g = o.state.Step(p.params(), now, ledger.Command{
		Op: ledger.Lease, Member: name(n), Holder: r.Holder, Seq: r.Seq, Epoch: r.From, Granted: r.Told,
		Min: p.batch, Want: p.batch, Memory: ledger.Memory{Term: o.term},
	})
	if o.granted(s.window, p.params()) == before {
		return s, false
	}
	*e, _ = e.Step(now, escrow.Command{Op: escrow.Fill, Holder: r.Holder, Grant: g, At: r.Now, ExpiresIn: g.ExpiresIn})
	if p.block > 0 {
		return next, true
	}
	return p.serve(next, n), true
}

// reserve sets a block aside, of the record too. It reports false when all is.
func (p published) reserve(s place) (place, bool) {
	next := s
	next.memories = append([]memory(nil), s.memories...)
	o := &next.memories[len(next.memories)-1]
	_, reserved, _ := o.open(s.window, p.params())
	if p.block == 0 || reserved == p.limit {
		return s, false
	}
	next.record = min(reserved+p.block, p.limit)
	epoch := ledger.Epoch{Index: s.window + 10, Term: o.term}
	o.state, _ = o.state.Step(p.params(), opens(s.window), ledger.Command{
		Op: ledger.Reserve, Epoch: epoch, Granted: next.record, Memory: ledger.Memory{Term: o.term},
	})
	return next, true
}

// crash begins a memory that knows the record. The ones before do not know of it.
func (p published) crash(s place) place {
	next := s
	term := int64(len(s.memories))
	fresh := memory{term: term + 1, state: ledger.State{
		Window: limiter.MinWindow, Index: s.window + 10, Term: term, Limit: p.limit, Reserved: s.record,
	}}
	if p.forgets {
		fresh.state.Reserved = 0
	}
	next.memories = append(append([]memory(nil), s.memories...), fresh)
	return next
}

// open returns what a memory takes for granted before it, for set aside, and has
// granted itself of the window. It steps a copy, because a ledger notices the time
// and its own term with the next command.
func (o memory) open(window int64, p ledger.Params) (before, reserved, granted int64) {
	s, _ := o.state.Step(p, opens(window), ledger.Command{
		Op: ledger.Reserve, Epoch: ledger.Epoch{Term: 1}, Memory: ledger.Memory{Term: o.term},
	})
	for _, a := range s.Accounts {
		granted += a.Granted
	}
	return s.Before, s.Reserved, granted
}

func (o memory) granted(window int64, p ledger.Params) int64 {
	_, _, granted := o.open(window, p)
	return granted
}

// encode writes the variables of the module.
func (p published) encode(b []byte, s place) []byte {
	b = binary.AppendVarint(b, s.admitted)
	b = binary.AppendVarint(b, s.record)
	for _, o := range s.memories {
		before, reserved, granted := o.open(s.window, p.params())
		for _, v := range []int64{before, reserved, granted} {
			b = binary.AppendVarint(b, v)
		}
	}
	for n := range s.regions {
		b = binary.AppendVarint(b, s.hand(n))
		if p.block > 0 {
			b = binary.AppendVarint(b, s.regions[n].Epoch.Term)
		}
	}
	return b
}

// publishedModels are what a search of the modules has to find. The first three are
// published for ThrottleKit.
var publishedModels = []published{
	{regions: 2, limit: 4, batch: 2, states: 8, most: 4, steps: 4},
	{regions: 3, limit: 6, batch: 3, states: 27, most: 6, steps: 6},
	{regions: 5, limit: 10, batch: 2, states: 112, most: 10, steps: 10},
	{regions: 2, limit: 2, batch: 1, block: 1, crashes: 1, states: 156, most: 2, steps: 6},
	{regions: 2, limit: 4, batch: 1, block: 2, crashes: 1, states: 304, most: 4, steps: 10},
	{regions: 2, limit: 4, batch: 2, block: 2, crashes: 2, states: 642, most: 4, steps: 8},
}

func TestPublishedStatesAreReached(t *testing.T) {
	for _, p := range publishedModels {
		t.Run(p.String(), func(t *testing.T) {
			most := 0
			r := explore.Hold(t, p.model(), func(s place) { most = max(most, int(s.admitted)) })
			tight := p
			tight.spare = 1
			if steps := explore.Refute(t, tight.model()); r.States != p.states || most != p.most || steps != p.steps {
				t.Errorf("%d states, at most %d admitted in %d steps, want %d, %d and %d", r.States, most, steps, p.states, p.most, p.steps)
			}
		})
	}
}

// TestUnitsSetAsideCountAsGranted refutes a memory that begins without the record.
func TestUnitsSetAsideCountAsGranted(t *testing.T) {
	p := publishedModels[3]
	p.forgets = true
	explore.Refute(t, p.model())
}
