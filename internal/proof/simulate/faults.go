package simulate

import (
	"time"

	"github.com/weir-dev/weir/pkg/limiter"
)

// schedule lets the faults happen at their time.
func (w *world) schedule() {
	for _, c := range w.Faults.Crashes {
		n := w.nodes[c.Holder]
		w.after(c.At, func() {
			w.trace.add(w.now, stepFault, c.Holder, 0)
			n.crash()
			w.after(c.Down, n.start)
		})
	}
	for _, l := range w.Faults.Losses {
		w.after(l.At, func() {
			w.trace.add(w.now, stepFault, -1, 0)
			w.store.lose(l.Keeps)
			w.after(l.Down, func() { w.store.rise(l.Keeps) })
		})
	}
	for _, e := range w.Faults.Edits {
		w.after(e.At, func() { w.edit(e) })
	}
	for _, s := range w.Faults.Steps {
		w.after(s.At, func() { w.clocks()[s.Node].set += int64(s.By) })
	}
	for _, e := range w.Faults.Ends {
		w.after(e.At, func() { w.finish(w.controllers.all[e.Controller], e) })
	}
}

// clocks returns those of all nodes, in the order of Step.Node.
func (w *world) clocks() (all []*clock) {
	for _, n := range w.nodes {
		all = append(all, &n.clock)
	}
	all = append(all, &w.store.clock)
	if w.controllers != nil {
		for _, c := range w.controllers.all {
			all = append(all, &c.clock)
		}
	}
	return all
}

// finish ends the process of a controller, or cuts it off.
func (w *world) finish(c *controller, e End) {
	w.trace.add(w.now, stepFault, -4, int64(e.How))
	switch {
	case e.How == CutOff:
		c.cut = true
		w.after(e.Down, func() { c.cut = false })
	case c.identity == 0: // another one begins soon
	case e.How == InOrder:
		c.handOver()
		c.restart(e.Down)
	default:
		c.restart(e.Down)
	}
}

// edit reaches each holder in its own time.
func (w *world) edit(e Edit) {
	w.trace.add(w.now, stepFault, -2, e.Params.Generation)
	for _, n := range w.nodes {
		w.after(time.Duration(w.chance.Int64N(int64(e.Spread)+1)), func() {
			n.configure(e.Params)
			w.recount()
		})
	}
}

// cut reports whether a partition is between the holder and the store.
func (w *world) cut(holder int) bool {
	for _, p := range w.Faults.Partitions {
		if int64(p.From) <= w.now && w.now < int64(p.To) && p.First <= holder && holder <= p.Last {
			return true
		}
	}
	return false
}

// recount gives the auditor what limits are in force, if that can have changed.
func (w *world) recount() {
	if len(w.Faults.Edits) > 0 {
		w.audit.inForce(w.time(), w.largest)
	}
}

// largest returns the largest limit for windows of a length that a holder enforces,
// or asks for by a command that is still on its way.
func (w *world) largest(window limiter.Micros) int64 {
	var most int64
	consider := func(p limiter.Params) {
		for _, r := range p.Rates {
			if r.Window == window {
				most = max(most, r.Limit)
			}
		}
	}
	for _, n := range w.nodes {
		consider(n.params)
	}
	for _, c := range w.flying {
		consider(c.params)
	}
	return most
}
