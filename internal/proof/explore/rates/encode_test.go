package rates_test

import (
	"encoding/binary"

	"github.com/weir-dev/weir/pkg/federation/escrow"
)

// encode writes all that matters: not when something was served last, what was only wanted of an escrow, and
// what is of windows that are over.
func (c *system) encode(b []byte, w world) []byte {
	put := func(all ...int64) {
		for _, v := range all {
			b = binary.AppendVarint(b, v)
		}
	}
	put(w.now, int64(w.edits), int64(w.slips), int64(w.losses), int64(len(w.memories)))
	for i := range both {
		put(w.admitted[i]...)
		put(w.most[i]...)
		r := w.records[i]
		put(r.state.Term, r.state.Index, r.state.Limit, r.state.Reserved)
		for _, m := range w.memories {
			s, own := &m.states[i], int64(0)
			if m.begun[i] {
				own = 1 + int64(r.version-m.saved[i])
			}
			put(min(own, 2), s.Index, s.Term, s.Limit, s.Before, s.Reserved, int64(len(s.Accounts)), int64(len(s.Standings)))
			for _, a := range s.Accounts {
				b = append(b, a.Member...)
				put(a.Seq, a.Granted)
			}
			for _, t := range s.Standings {
				b = append(b, t.Member...)
				put(t.Demand, t.Before)
			}
		}
		for n, m := range w.members {
			e, r := m.escrows[i].Step(c.local(w.now, n), escrow.Command{Op: escrow.Peek})
			put(int64(m.leases[i]), e.Seq, e.Epoch.Index, e.Epoch.Term, int64(e.Ends))
			if r.Epoch.Index > 0 {
				put(e.Before, e.Granted, e.Taken, m.used[i].index, m.used[i].units)
			}
		}
	}
	for _, m := range w.members {
		for _, h := range m.hands {
			put(h.units, h.until, int64(h.windows.N), h.windows.Open[short].Index, h.windows.Open[long].Index)
		}
	}
	return b
}
