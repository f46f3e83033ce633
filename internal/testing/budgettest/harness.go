package budgettest

import (
	"fmt"
	"testing"

	"github.com/weir-dev/weir/pkg/federation/ledger"
	"github.com/weir-dev/weir/pkg/limiter"
)

// A harness adds to a subject what the tests have in common.
type harness struct{ Subject }

// short is a window that ends within a test, and is long enough for a few commands.
const short = 3 * limiter.Second

// firstCome returns parameters of a budget whose units go to any member that asks.
func (h *harness) firstCome(limit int64) ledger.Params {
	return ledger.Params{
		Limit: limit, Strategy: ledger.FirstCome, Block: h.Block,
		Members: []ledger.Member{{Name: "a", Weight: 1, Borrowing: -1}, {Name: "b", Weight: 1, Borrowing: -1}},
	}
}

// A holder is one that does as the coordinator says.
type holder struct {
	h            *harness
	id           string
	params       ledger.Params
	member, name string
	seq          int64
	epoch        ledger.Epoch
	granted      int64
	born, list   int64 // the memory that its member vouches for, and the list of members
}

// open returns a holder of the first member, in a window that has just begun and lasts
// for a month.
func (h *harness) open(t *testing.T, p ledger.Params) *holder {
	t.Helper()
	for try := 0; ; try++ {
		p.Window = h.month(t)
		m := h.holder(t, fmt.Sprint(" ", try), p)
		if left := m.touch(t).ExpiresIn; left <= soon {
			h.Advance(left)
			return m
		} // the machine was busy until the window had begun
	}
}

// openShort is open, with a window that ends soon.
func (h *harness) openShort(t *testing.T, p ledger.Params) *holder {
	t.Helper()
	p.Window = short
	m := h.holder(t, "", p)
	h.Advance(m.touch(t).ExpiresIn)
	return m
}

// holder returns one of a budget that is named after the test.
func (h *harness) holder(t *testing.T, suffix string, p ledger.Params) *holder {
	return &holder{h: h, id: t.Name() + suffix, params: p, member: p.Members[0].Name, name: "first"}
}

// soon is how far ahead the windows begin that last for a month.
const soon = 50 * limiter.Millisecond

// month returns the length of a window that begins in a moment and ends long after the
// test: among the lengths just below the longest, one with a multiple soon.
func (h *harness) month(t *testing.T) limiter.Micros {
	t.Helper()
	p := h.firstCome(1)
	p.Window = limiter.MinWindow
	now := h.holder(t, ", the clock", p).touch(t).Now
	index := int64(now)/int64(limiter.MaxWindow) + 1
	return limiter.Micros(int64(now.Add(soon)) / index)
}

// with returns another holder of the same budget.
func (m *holder) with(member, name string) *holder {
	return &holder{h: m.h, id: m.id, params: m.params, member: member, name: name}
}

// next returns what is in every command that the holder sends next.
func (m *holder) next(op ledger.Op) ledger.Command {
	m.seq++
	return ledger.Command{Op: op, Member: m.member, Holder: m.name, Seq: m.seq, Epoch: m.epoch, Granted: m.granted, Born: m.born, List: m.list}
}

// asking returns a command that asks for that much.
func (m *holder) asking(least, want int64) ledger.Command {
	c := m.next(ledger.Lease)
	c.Min, c.Want = least, want
	return c
}

// touch makes the coordinator begin to remember the budget, and asks for nothing.
func (m *holder) touch(t *testing.T) ledger.Grant {
	t.Helper()
	return m.apply(t, m.next(ledger.Release))
}

// lease asks for that much, and takes what is granted.
func (m *holder) lease(t *testing.T, least, want int64) ledger.Grant {
	t.Helper()
	return m.take(m.apply(t, m.asking(least, want)))
}

// wants leases exactly that much and expects to be granted that much altogether.
func (m *holder) wants(t *testing.T, units, altogether int64, reason ledger.Reason) ledger.Grant {
	t.Helper()
	g := m.lease(t, units, units)
	if g.Granted != altogether || g.Reason != reason {
		t.Errorf("%s of %s asked for %d and was granted %d altogether (%v), want %d (%v): %+v",
			m.name, m.member, units, g.Granted, g.Reason, altogether, reason, g)
	}
	return g
}

// release keeps that much and gives back the rest.
func (m *holder) release(t *testing.T, keeps int64) ledger.Grant {
	t.Helper()
	m.granted = keeps
	return m.take(m.apply(t, m.next(ledger.Release)))
}

func (m *holder) take(g ledger.Grant) ledger.Grant {
	m.epoch, m.granted = g.Epoch, g.Granted
	return g
}

// apply sends a command that must be answered.
func (m *holder) apply(t *testing.T, c ledger.Command) ledger.Grant {
	t.Helper()
	g, err := m.h.Coordinator.Apply(t.Context(), m.id, m.params, c)
	if err != nil {
		t.Fatalf("Apply(%s, %+v, %+v): %v", m.id, m.params, c, err)
	}
	return g
}

// observe returns what must be shown.
func (m *holder) observe(t *testing.T) ledger.State {
	t.Helper()
	s, err := m.h.Coordinator.Observe(t.Context(), m.id)
	if err != nil {
		t.Fatalf("Observe(%s): %v", m.id, err)
	}
	return s
}
