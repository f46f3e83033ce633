package rates_test

import (
	"github.com/weir-dev/weir/pkg/federation/escrow"
	"github.com/weir-dev/weir/pkg/federation/ledger"
)

// lease asks a hub for units of one rate. When it could not set aside what it has to, or when the answer is
// lost, the member hears nothing.
func (c *system) lease(w *world, n, i, at int, heard bool) {
	m, o := &w.members[n], &w.memories[at]
	m.leases[i]++
	local, now, p := c.local(w.now, n), c.instant(w.now), c.params(w.edits, i)
	var ask escrow.Result
	m.escrows[i], ask = m.escrows[i].Step(local, escrow.Command{Op: escrow.Ask, Holder: name(n)})
	command := ledger.Command{
		Op: ledger.Lease, Member: name(n), Holder: ask.Holder, Seq: ask.Seq, Epoch: ask.From, Granted: ask.Told, Min: 1, Want: c.want,
		Memory: ledger.Memory{Term: o.term},
	}
	if !heard {
		w.losses++
	}
	if !o.begun[i] {
		c.takeOver(w, o, i)
	}
	for {
		next, g := c.rules.step(o.states[i], p, now, command)
		if g.Reason == ledger.Unreserved {
			reserve := ledger.Command{Op: ledger.Reserve, Epoch: g.Epoch, Granted: g.Reserve, Memory: command.Memory}
			if next, _ = c.rules.step(o.states[i], p, now, reserve); !c.write(w, o, i, next) {
				return
			}
			o.states[i] = next
			continue
		}
		o.states[i] = next
		if heard {
			fill := escrow.Command{Op: escrow.Fill, Holder: ask.Holder, Grant: g, At: ask.Now, ExpiresIn: g.ExpiresIn}
			m.escrows[i], _ = m.escrows[i].Step(local, fill)
		}
		return
	}
}

// takeOver has a hub begin with the record of a rate, which it writes as its own.
func (c *system) takeOver(w *world, o *memory, i int) {
	r := &w.records[i]
	r.version++
	o.begun[i], o.states[i], o.saved[i] = true, r.state, r.version
	c.rules.lost(i, &o.states[i])
}

// write is the compare-and-swap of a record.
func (c *system) write(w *world, o *memory, i int, s ledger.State) bool {
	r := &w.records[i]
	if o.saved[i] != r.version && !c.rules.old {
		return false
	}
	r.version++
	o.saved[i] = r.version
	r.state = ledger.State{Window: s.Window, Index: s.Index, Term: s.Term, Limit: s.Limit, Reserved: s.Reserved}
	return true
}
