package budgettest

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-dev/weir/pkg/federation/ledger"
	"github.com/weir-dev/weir/pkg/limiter"
)

func testNextWindow(t *testing.T, h *harness) {
	a := h.openShort(t, h.firstCome(10))
	b := a.with("b", "other")
	first := a.wants(t, 10, 10, ledger.Granted)
	h.Advance(b.wants(t, 1, 0, ledger.Exhausted).RetryAfter)
	b.wants(t, 7, 7, ledger.Granted)
	g := a.wants(t, 3, 3, ledger.Granted) // it names the epoch before
	if g.Epoch.Index <= first.Epoch.Index || g.Epoch.Term != first.Epoch.Term {
		t.Errorf("got %+v after %+v", g, first)
	}
	a.wants(t, 1, 3, ledger.Exhausted)
}

func testForfeited(t *testing.T, h *harness) {
	a := h.openShort(t, h.firstCome(10))
	b := a.with("b", "other")
	h.Advance(a.wants(t, 10, 10, ledger.Granted).ExpiresIn)
	b.wants(t, 8, 8, ledger.Granted)
	if g := a.release(t, 0); g.Reason != ledger.Forfeited || g.Granted != 0 {
		t.Errorf("gave back of a window that is over: %+v", g)
	}
	a.wants(t, 3, 0, ledger.Exhausted)
	a.wants(t, 2, 2, ledger.Granted)
}

func testReport(t *testing.T, h *harness) {
	a := h.openShort(t, h.firstCome(10))
	b := a.with("b", "other")
	b.wants(t, 2, 2, ledger.Granted)
	g := a.wants(t, 6, 6, ledger.Granted)
	h.Advance(g.ExpiresIn)
	a.touch(t)
	for _, u := range []ledger.Usage{{Index: g.Epoch.Index, Admitted: 4}, {Index: g.Epoch.Index, Admitted: 5, Refused: 3, Complete: true}} {
		report := ledger.Command{Op: ledger.Report, Member: "a", Holder: "first", Usage: []ledger.Usage{u}}
		if got := a.apply(t, report); got.Epoch.Index <= g.Epoch.Index {
			t.Errorf("a report is answered by %+v", got)
		}
	}
	closed := a.observe(t).Closed
	if len(closed) == 0 {
		t.Fatal("no window is over")
	}
	want := ledger.Closed{Index: g.Epoch.Index, Limit: 10, Granted: 8, Usage: []ledger.MemberUsage{
		{Member: "a", Granted: 6, Admitted: 5, Refused: 3, Reported: true, Complete: true}, {Member: "b", Granted: 2},
	}}
	if diff := cmp.Diff(want, closed[0]); diff != "" {
		t.Errorf("the window that is over (-want +got)\n%s", diff)
	}
}

func testLimits(t *testing.T, h *harness) {
	a := h.openShort(t, h.firstCome(10))
	b := a.with("b", "other")
	a.wants(t, 4, 4, ledger.Granted)
	b.params.Limit = 6
	b.wants(t, 3, 0, ledger.Exhausted)
	a.wants(t, 3, 4, ledger.Exhausted)
	if g := a.wants(t, 2, 6, ledger.Granted); g.Limit != 6 {
		t.Errorf("the limit is %d, want 6", g.Limit)
	}
	b.params.Limit = 5 // nothing is taken back
	h.Advance(b.wants(t, 1, 0, ledger.Exhausted).RetryAfter)
	a.wants(t, 10, 10, ledger.Granted)
}

func testLengths(t *testing.T, h *harness) {
	a := h.openShort(t, h.firstCome(10))
	g := a.wants(t, 4, 4, ledger.Granted)
	b := a.with("b", "other")
	b.params.Window = 2 * short / 3
	b.wants(t, 1, 0, ledger.Mismatched)
	a.wants(t, 1, 5, ledger.Granted)
	h.Advance(g.ExpiresIn)
	for range 2 { // of a window that began while the other length's was open nothing is granted
		g = b.lease(t, 10, 10)
		if g.Granted == 10 {
			return
		}
		h.Advance(g.RetryAfter)
	}
	b.wants(t, 10, 10, ledger.Granted)
}

func testSetBack(t *testing.T, h *harness) {
	if h.Set == nil {
		t.Skip("the clock cannot be set")
	}
	a := h.openShort(t, h.firstCome(10))
	g := a.wants(t, 10, 10, ledger.Granted)
	h.Advance(g.ExpiresIn)
	a.wants(t, 1, 1, ledger.Granted)
	for _, earlier := range []limiter.Instant{g.Now, 1} {
		h.Set(earlier)
		if got := a.lease(t, 9, 9); got.Reason != ledger.Behind || got.RetryAfter < 1 {
			t.Errorf("at %d: %+v", earlier, got)
		}
	}
}

func testSetForward(t *testing.T, h *harness) {
	if h.Set == nil {
		t.Skip("the clock cannot be set")
	}
	a := h.openShort(t, h.firstCome(10))
	for _, windows := range []int64{1, 2, ledger.MaxClosed + 3, 1000} {
		g := a.wants(t, 10, 10, ledger.Granted)
		h.Set(g.Now.Add(limiter.Micros(windows) * short))
	}
	a.wants(t, 10, 10, ledger.Granted)
}
