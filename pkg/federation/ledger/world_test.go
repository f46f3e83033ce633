package ledger_test

import (
	"testing"

	"github.com/weir-dev/weir/pkg/federation/ledger"
	"github.com/weir-dev/weir/pkg/limiter"
)

// base is the beginning of a window of a second.
const base = limiter.Instant(1_790_000_000_000_000)

// members returns members of weight 1 that are guaranteed nothing.
func members(names ...string) []ledger.Member {
	list := make([]ledger.Member, len(names))
	for i, n := range names {
		list[i] = ledger.Member{Name: n, Weight: 1, Borrowing: -1}
	}
	return list
}

func budget(limit int64, members []ledger.Member) ledger.Params {
	return ledger.Params{Limit: limit, Window: limiter.Second, Members: members}
}

// A script applies commands to one ledger, at instants after base.
type script struct {
	t      *testing.T
	params ledger.Params
	state  ledger.State
	memory ledger.Memory
	seq    int64
}

func newScript(t *testing.T, p ledger.Params) *script {
	t.Helper()
	if err := p.Validate(); err != nil {
		t.Fatal(err)
	}
	return &script{t: t, params: p, memory: ledger.Memory{Term: 1}}
}

// at applies a command of member m's only holder unless it names another.
func (w *script) at(after limiter.Micros, m string, c ledger.Command) ledger.Grant {
	w.t.Helper()
	if c.Member = m; c.Holder == "" {
		c.Holder = m + "1"
	}
	if c.Seq == 0 {
		w.seq++
		c.Seq = w.seq
	}
	c.Memory = w.memory
	if err := c.Validate(); err != nil {
		w.t.Fatal(err)
	}
	var g ledger.Grant
	w.state, g = w.state.Step(w.params, base.Add(after), c)
	return g
}

func lease(minimum, want int64) ledger.Command {
	return ledger.Command{Op: ledger.Lease, Min: minimum, Want: want}
}

// following names the epoch and the total of an answer in a command.
func following(c ledger.Command, g ledger.Grant) ledger.Command {
	c.Epoch, c.Granted = g.Epoch, g.Granted
	return c
}

func expect(t *testing.T, g ledger.Grant, reason ledger.Reason, granted int64) {
	t.Helper()
	if g.Reason != reason || g.Granted != granted {
		t.Errorf("answer %+v, want reason %d and %d granted", g, reason, granted)
	}
}
