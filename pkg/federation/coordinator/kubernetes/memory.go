package kubernetes

import (
	"slices"

	"github.com/weir-dev/weir/pkg/federation/keys"
	"github.com/weir-dev/weir/pkg/federation/ledger"
	"github.com/weir-dev/weir/pkg/limiter"
)

// A memory is what one process knows of a budget since it took over the record.
type memory struct {
	state   ledger.State
	saved   Record // the latest that is known to be written; its term and writer are this memory's
	version string
	book    *keys.Book // of a budget with a key
}

// newMemory begins a memory with the record it has just written. The state is still of
// the memory before, so that the first command takes it over as the ledger has it.
func newMemory(r Record, version string) *memory {
	m := &memory{state: r.state(), saved: r, version: version, book: newBook(r)}
	m.state.Term--
	return m
}

// first returns the record of a budget that has none. Its term is above all that a
// record that somebody deleted can have counted to.
func first(p ledger.Params, now limiter.Instant) Record {
	return Record{
		Window: p.Window, Index: int64(now) / int64(p.Window), Limit: p.Limit,
		Latest: now, Since: now + 1, // at this very instant another may have granted
		Term: max(1, int64(now)),
	}
}

// state returns what is known after the record was read: all that was set aside may
// have been granted, and all slices may be in use.
func (r Record) state() ledger.State {
	s := ledger.State{
		Window: r.Window, Index: r.Index, Term: r.Term, Limit: r.Limit, Latest: r.Latest,
		Before: r.Reserved, Reserved: r.Reserved,
	}
	for _, slice := range r.Slices {
		s.Standings = append(s.Standings, ledger.Standing{Member: slice.Member, Slice: slice.Units, Next: slice.Units})
	}
	return s
}

// knows completes a command with what the memory knows of its past.
func (m *memory) knows(c ledger.Command) ledger.Command {
	c.Memory = ledger.Memory{Term: m.saved.Term, Since: m.saved.Since}
	return c
}

// record returns what has to be known of a state after a crash.
func (m *memory) record(s ledger.State) Record {
	r := m.saved
	r.Window, r.Index, r.Limit, r.Reserved, r.Latest = s.Window, s.Index, s.Limit, s.Reserved, s.Latest
	r.Slices = nil
	for _, standing := range s.Standings {
		if units := max(standing.Slice, standing.Next); units > 0 {
			r.Slices = append(r.Slices, Slice{Member: standing.Member, Units: units})
		}
	}
	return r
}

// reserved returns the state in which that many units are set aside of the window of that
// index, if it is open at now.
func (m *memory) reserved(p ledger.Params, now limiter.Instant, index, units int64) ledger.State {
	c := ledger.Command{Op: ledger.Reserve, Epoch: ledger.Epoch{Index: index, Term: m.saved.Term}, Granted: units}
	s, _ := m.state.Step(p, now, m.knows(c))
	return s
}

// promises reports whether a state grants a member a slice that is not written down.
func (m *memory) promises(s ledger.State) bool {
	return slices.ContainsFunc(s.Standings, func(standing ledger.Standing) bool {
		units := max(standing.Slice, standing.Next)
		at, found := slices.BinarySearchFunc(m.saved.Slices, standing.Member, Slice.compare)
		return units > 0 && (!found || m.saved.Slices[at].Units < units)
	})
}

// wrote takes note that r is written: what it sets aside may be granted, unless its
// window is over.
func (m *memory) wrote(p ledger.Params, r Record, version string) {
	m.saved, m.version = r, version
	if r.Keys != nil {
		m.book.Saved = *r.Keys
	}
	if m.state.Latest < r.Ends() {
		m.state = m.reserved(p, max(m.state.Latest, r.Latest), r.Index, r.Reserved)
	}
}

// ahead returns up to where units should be set aside now, so that a lease need not wait
// for it: a block beyond what was granted, once less than half a block is left. It
// returns false when enough is set aside.
func (m *memory) ahead(p ledger.Params) (int64, bool) {
	used := m.used()
	if 2*(m.state.Reserved-used) >= p.Block {
		return 0, false
	}
	given := m.state.Allocation(p)
	units := used + min(p.Block, given.Limit-given.Granted)
	return units, units > m.state.Reserved
}

// used returns how many units of the open window may be in use, slices left out.
func (m *memory) used() int64 {
	used := m.state.Before
	for _, account := range m.state.Accounts {
		used += account.Granted
	}
	return used
}
