package ledger_test

import (
	"testing"

	"github.com/weir-dev/weir/pkg/federation/ledger"
	"github.com/weir-dev/weir/pkg/limiter"
)

// TestAFirstMemoryServesTheOpenWindow once all members vouch for it and name the same ones.
func TestAFirstMemoryServesTheOpenWindow(t *testing.T) {
	w := newScript(t, budget(10, members("a", "b")))
	w.memory = ledger.Memory{Term: 7, Since: base + 2}
	born := func(term, list int64) ledger.Command {
		c := lease(1, 1)
		c.Born, c.List = term, list
		return c
	}
	for i, step := range []struct {
		member  string
		c       ledger.Command
		reason  ledger.Reason
		granted int64
	}{
		{"a", born(7, 1), ledger.Amnesia, 0},
		{"b", born(0, 0), ledger.Amnesia, 0},
		{"b", born(6, 1), ledger.Amnesia, 0},
		{"b", born(7, 2), ledger.Amnesia, 0},
		{"b", born(7, 1), ledger.Granted, 1},
		{"a", born(7, 2), ledger.Amnesia, 0},
		{"a", born(7, 1), ledger.Granted, 1},
	} {
		t.Log("step", i)
		expect(t, w.at(limiter.Micros(10+i), step.member, step.c), step.reason, step.granted)
	}
	w.params.Members = members("a", "b", "c")
	expect(t, w.at(30, "a", born(7, 1)), ledger.Amnesia, 1)

	// Vouches for a memory say nothing of the next, be it in the window or after it.
	w.params.Members = members("a", "b")
	before := w.state
	w.memory = ledger.Memory{Term: 8, Since: base + 40}
	expect(t, w.at(50, "a", born(8, 1)), ledger.Amnesia, 0)
	for _, s := range []ledger.State{w.state, before} {
		w.state = s
		expect(t, w.at(limiter.Second, "a", born(7, 1)), ledger.Granted, 1)
		if closed, vouches := w.state.Closed, w.state.Vouches; len(closed)+len(vouches) > 0 {
			t.Errorf("%+v hears of a window whose grants were forgotten in part, and %+v vouch", closed, vouches)
		}
	}
}
