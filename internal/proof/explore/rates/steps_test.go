package rates_test

import (
	"fmt"
	"iter"

	"github.com/weir-dev/weir/pkg/federation/escrow"
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
