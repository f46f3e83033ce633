package rates_test

import (
	"fmt"
	"iter"

	"github.com/weir-dev/weir/pkg/federation/escrow"
	"github.com/weir-dev/weir/pkg/federation/ledger"
)

// maxCalls is how many calls of budgets a draw makes at most: each rate is asked, and put back to.
const maxCalls = 2 * both

type step = func(change func(*world), format string, args ...any)

// next yields all that can happen.
func (c *system) next(w world) iter.Seq2[string, world] {
	return func(yield func(string, world) bool) {
		on := true
		do := func(change func(*world), format string, args ...any) {
			if on {
				next := w.copied()
				change(&next)
				on = yield(fmt.Sprintf(format, args...), next)
			}
		}
		if c.passes(&w) {
			do(c.pass, "time passes")
		}
		if w.edits+1 < len(c.limits) {
			do(c.edit, "a limit is edited")
		}
		if len(w.memories) <= c.crashes {
			do(func(w *world) {
				w.memories = append(w.memories, memory{term: w.memories[len(w.memories)-1].term + 1})
			}, "the hub crashes, and another begins")
		}
		for n := range w.members {
			c.memberSteps(&w, n, do)
		}
	}
}

// passes reports whether time may pass.
func (c *system) passes(w *world) bool { return w.now+1 < c.longs*c.length(long) }

// pass has a tick pass. What is left of a draw of windows that are over is of no use.
func (c *system) pass(w *world) {
	w.now++
	for i := range both {
		if index := w.now / c.length(i); w.now%c.length(i) == 0 {
			w.most[i][index] = c.limits[w.edits][i]
		}
	}
	if w.now%c.length(long) == 0 {
		for n := range w.members {
			for i, h := range w.members[n].hands {
				if h.until <= w.now {
					w.members[n].hands[i] = holding{}
				}
			}
		}
	}
}

// edit changes the limits. The largest that a window had counts.
func (c *system) edit(w *world) {
	w.edits++
	for i := range both {
		most := &w.most[i][w.now/c.length(i)]
		*most = max(*most, c.limits[w.edits][i])
	}
}

func (c *system) memberSteps(w *world, n int, do step) {
	m := &w.members[n]
	for i := range both {
		_, has := m.escrows[i].Step(c.local(w.now, n), escrow.Command{Op: escrow.Peek})
		if m.leases[i] == c.leases || has.Remaining >= c.want {
			continue
		}
		for at := range w.memories {
			do(func(w *world) { c.lease(w, n, i, at, true) }, "%s leases of the %s rate from hub %d", name(n), names[i], at+1)
			if w.losses < c.losses {
				do(func(w *world) { c.lease(w, n, i, at, false) }, "%s leases of the %s rate from hub %d, and hears nothing", name(n), names[i], at+1)
			}
		}
	}
	for i := range c.hands {
		c.handSteps(w, n, i, do)
	}
}

// handSteps are those of a process.
func (c *system) handSteps(w *world, n, process int, do step) {
	at := func(w *world) *counter { return &counter{of: c, world: w, n: n} }
	h := w.members[n].hands[process]
	if h.units == 0 {
		do(func(w *world) { at(w).draw(process) }, "%s draws", name(n))
		for slip := 1; slip <= maxCalls && w.slips < c.slips && c.passes(w); slip++ {
			do(func(w *world) {
				k := at(w)
				k.slip = slip
				k.draw(process)
			}, "%s draws, and time passes before call %d", name(n), slip)
		}
		return
	}
	if w.now < h.until {
		do(func(w *world) {
			h := &w.members[n].hands[process]
			if h.units--; h.units == 0 {
				*h = holding{}
			}
			for i := range both {
				w.admitted[i][w.now/c.length(i)]++
			}
		}, "%s admits", name(n))
	}
	do(func(w *world) { at(w).giveBack(process) }, "%s gives back", name(n))
}

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
