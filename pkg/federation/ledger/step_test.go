package ledger_test

import (
	"fmt"
	"testing"

	"github.com/weir-dev/weir/pkg/federation/ledger"
	"github.com/weir-dev/weir/pkg/limiter"
)

func TestLeaseIsSentAgain(t *testing.T) {
	w := newScript(t, budget(100, members("a", "b")))
	c := lease(1, 10)
	c.Seq = 7
	first := w.at(0, "a", c)
	expect(t, first, ledger.Granted, 10)
	before := w.state
	again := w.at(1, "a", c)
	expect(t, again, ledger.Stale, 10)
	if again.Seq != 7 || again.Epoch != first.Epoch {
		t.Errorf("sent again as %+v", again)
	}
	if fmt.Sprint(before.Accounts, before.Standings) != fmt.Sprint(w.state.Accounts, w.state.Standings) {
		t.Errorf("a repeated command changed %+v to %+v", before, w.state)
	}
	c.Seq = 8 // the answer was lost: the holder still names no epoch
	expect(t, w.at(2, "a", c), ledger.Granted, 10)
	w.seq = c.Seq
	c = following(lease(1, 10), first)
	expect(t, w.at(3, "a", c), ledger.Granted, 20)
}

func TestWindowsBeginFromNothing(t *testing.T) {
	w := newScript(t, budget(10, members("a")))
	var g ledger.Grant
	for range 5 {
		g = w.at(0, "a", following(lease(1, 10), g))
	}
	expect(t, g, ledger.Exhausted, 10)
	if g.RetryAfter != limiter.Second || g.ExpiresIn != limiter.Second || g.Remaining != 0 {
		t.Errorf("an exhausted window: %+v", g)
	}
	next := w.at(limiter.Second, "a", following(lease(3, 3), g))
	expect(t, next, ledger.Granted, 3)
	if next.Epoch.Index != g.Epoch.Index+1 {
		t.Errorf("window %d follows %d", next.Epoch.Index, g.Epoch.Index)
	}
	release := following(ledger.Command{Op: ledger.Release}, g)
	release.Granted = 0
	expect(t, w.at(limiter.Second, "a", release), ledger.Forfeited, 3)
}

func TestClockAndTermGoForward(t *testing.T) {
	w := newScript(t, budget(10, members("a")))
	expect(t, w.at(500_000, "a", lease(1, 1)), ledger.Granted, 1)
	g := w.at(499_999, "a", lease(1, 1))
	expect(t, g, ledger.Behind, 0)
	if g.Epoch != (ledger.Epoch{}) || g.RetryAfter != 1 {
		t.Errorf("a clock that went back: %+v", g)
	}
	w.memory.Term = 2
	g = w.at(500_000, "a", lease(1, 4))
	expect(t, g, ledger.Granted, 4)
	if w.state.Before != 1 {
		t.Errorf("a new memory takes %d for granted by the one before, want 1", w.state.Before)
	}
	w.memory.Term = 1
	expect(t, w.at(600_000, "a", lease(1, 1)), ledger.Behind, 0)
}

func TestRefusals(t *testing.T) {
	p := budget(10, members("a", "b"))
	w := newScript(t, p)
	w.memory.Since = base + 1
	expect(t, w.at(2, "a", lease(1, 1)), ledger.Amnesia, 0)
	w.memory.Since = 0
	expect(t, w.at(2, "z", lease(1, 1)), ledger.Unknown, 0)
	for i := range ledger.MaxHolders {
		c := lease(1, 1)
		c.Holder = fmt.Sprintf("a%02d", i)
		w.at(2, "a", c)
	}
	c := lease(1, 1)
	c.Holder = "another"
	expect(t, w.at(2, "a", c), ledger.Crowded, 0)
	w.params.Window = 2 * limiter.Second
	g := w.at(3, "b", lease(1, 1))
	expect(t, g, ledger.Mismatched, 0)
	if g.RetryAfter != limiter.Second-3 {
		t.Errorf("windows of another length in %v, want the end of the open one", g.RetryAfter)
	}
	expect(t, w.at(limiter.Second, "b", lease(1, 1)), ledger.Granted, 1)
}

func TestBlocksAreSetAsideBeforeTheyAreGranted(t *testing.T) {
	p := budget(100, members("a"))
	p.Block = 10
	w := newScript(t, p)
	g := w.at(0, "a", lease(1, 4))
	expect(t, g, ledger.Unreserved, 0)
	if g.Reserve != 10 || len(w.state.Accounts) != 0 {
		t.Errorf("asked to set aside %d, want 10; %+v", g.Reserve, w.state)
	}
	reserve := ledger.Command{Op: ledger.Reserve, Epoch: g.Epoch, Granted: g.Reserve}
	w.at(0, "a", reserve)
	g = w.at(0, "a", lease(1, 4))
	expect(t, g, ledger.Granted, 4)
	g = w.at(0, "a", following(lease(1, 20), g))
	expect(t, g, ledger.Unreserved, 4)
	if g.Reserve != 24 {
		t.Errorf("asked to set aside %d, want 24", g.Reserve)
	}
	// The memory is lost: the next one takes what was set aside for granted.
	record := ledger.State{Window: p.Window, Index: w.state.Index, Term: 1, Limit: 100, Reserved: w.state.Reserved}
	w.state, w.memory.Term = record, 2
	g = w.at(1, "a", lease(1, 4))
	expect(t, g, ledger.Unreserved, 0)
	if g.Reserve != 20 {
		t.Errorf("asked to set aside %d, want 20", g.Reserve)
	}
}
