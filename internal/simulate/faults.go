package simulate

import "time"

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
			w.after(l.Down, func() { w.store.rise(w.now, l.Keeps) })
		})
	}
	for _, e := range w.Faults.Edits {
		w.after(e.At, func() { w.edit(e) })
	}
}

// edit tells each holder, in its own time.
func (w *world) edit(e Edit) {
	w.trace.add(w.now, stepFault, -2, e.Params.Generation)
	for _, n := range w.nodes {
		w.after(time.Duration(w.chance.Int64N(int64(e.Spread)+1)), func() {
			n.configure(e.Params)
			w.audit.inForce(w.store.clock.micros(w.now), w.largest())
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

// largest returns the largest limit of the first rate that a holder enforces.
func (w *world) largest() int64 {
	var most int64
	for _, n := range w.nodes {
		most = max(most, n.params.Rates[0].Limit)
	}
	return most
}
