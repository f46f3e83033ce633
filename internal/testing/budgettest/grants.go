package budgettest

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-dev/weir/pkg/federation/ledger"
)

func testGrants(t *testing.T, h *harness) {
	a := h.open(t, h.firstCome(10))
	b := a.with("b", "other")
	g := a.wants(t, 4, 4, ledger.Granted)
	window := int64(a.params.Window)
	if g.Seq != a.seq || g.Limit != 10 || g.Remaining != 6 || g.Epoch.Index != int64(g.Now)/window || g.Epoch.Term < 1 ||
		int64(g.ExpiresIn) != window-int64(g.Now)%window || g.RetryAfter != 0 {
		t.Errorf("got %+v", g)
	}
	b.wants(t, 7, 0, ledger.Exhausted)
	b.wants(t, 6, 6, ledger.Granted)
	if g := a.wants(t, 1, 4, ledger.Exhausted); g.Remaining != 0 || g.RetryAfter < 1 || g.RetryAfter > g.ExpiresIn {
		t.Errorf("got %+v", g)
	}
}

// testLast lets two members ask for more than is left until nothing is.
func testLast(t *testing.T, h *harness) {
	a := h.open(t, h.firstCome(1000))
	b := a.with("b", "other")
	for range 1000 {
		ga, gb := a.lease(t, 1, 300), b.lease(t, 1, 300)
		if ga.Granted+gb.Granted > 1000 {
			t.Fatalf("granted %d and %d of 1000", ga.Granted, gb.Granted)
		}
		if ga.Reason == ledger.Exhausted && gb.Reason == ledger.Exhausted {
			break
		}
	}
	if a.granted+b.granted != 1000 {
		t.Errorf("granted %d and %d of 1000", a.granted, b.granted)
	}
}

func testRepeated(t *testing.T, h *harness) {
	a := h.open(t, h.firstCome(10))
	c := a.asking(1, 4)
	first := a.apply(t, c)
	for range 3 {
		again := a.apply(t, c)
		if again.Granted != first.Granted || again.Seq != first.Seq || again.Epoch != first.Epoch || again.Remaining != first.Remaining {
			t.Errorf("got %+v, at first %+v", again, first)
		}
	}
	a.with("b", "other").wants(t, 10-first.Granted, 10-first.Granted, ledger.Granted)
}

// testLostAnswer asks for what was granted already, because the answer was lost.
func testLostAnswer(t *testing.T, h *harness) {
	a := h.open(t, h.firstCome(10))
	a.wants(t, 2, 2, ledger.Granted)
	a.apply(t, a.asking(3, 3)) // lost
	a.wants(t, 3, 5, ledger.Granted)
	a.wants(t, 1, 6, ledger.Granted)
	a.with("b", "other").wants(t, 4, 4, ledger.Granted)
}

func testReordered(t *testing.T, h *harness) {
	a := h.open(t, h.firstCome(10))
	a.wants(t, 3, 3, ledger.Granted)
	late := a.asking(5, 5)
	later := a.next(ledger.Release)
	later.Granted = 0
	a.wants(t, 2, 5, ledger.Granted)
	for name, c := range map[string]ledger.Command{"a lease": late, "a release": later} {
		if g := a.apply(t, c); g.Reason != ledger.Stale || g.Granted != 5 || g.Seq != a.seq {
			t.Errorf("%s that was overtaken: %+v", name, g)
		}
	}
	a.with("b", "other").wants(t, 5, 5, ledger.Granted)
}

func testRelease(t *testing.T, h *harness) {
	a := h.open(t, h.firstCome(10))
	b := a.with("b", "other")
	a.wants(t, 10, 10, ledger.Granted)
	if g := a.release(t, 3); g.Granted != 3 || g.Reason != ledger.Granted {
		t.Errorf("gave back 7 of 10: %+v", g)
	}
	b.wants(t, 8, 0, ledger.Exhausted)
	b.wants(t, 7, 7, ledger.Granted)
	a.wants(t, 1, 3, ledger.Exhausted)
	if g := a.release(t, 3); g.Granted != 3 {
		t.Errorf("gave back nothing: %+v", g)
	}
	if g := a.release(t, 9); g.Granted != 3 {
		t.Errorf("a release mints: %+v", g)
	}
}

func testIsolation(t *testing.T, h *harness) {
	a := h.open(t, h.firstCome(10))
	a.wants(t, 10, 10, ledger.Granted)
	for _, id := range []string{a.id + "/other", a.id + "é'\"{}", "budget:" + a.id} {
		other := a.with("a", "first")
		other.id = id
		other.params.Window = short
		h.Advance(other.touch(t).ExpiresIn)
		other.wants(t, 10, 10, ledger.Granted)
	}
	a.wants(t, 1, 10, ledger.Exhausted)
}

func testStrangers(t *testing.T, h *harness) {
	a := h.open(t, h.firstCome(1000))
	a.with("nobody", "x").wants(t, 1, 0, ledger.Unknown)
	names := []string{"first", "é", "a'b\"c", "{a}", "f86b5c5c-8d0e-4a4e-9f0e-4cb7a0c5b7c1"}
	for i := len(names); i < ledger.MaxHolders; i++ {
		names = append(names, fmt.Sprint("h", i))
	}
	for _, name := range names {
		a.with("a", name).wants(t, 1, 1, ledger.Granted)
	}
	a.with("a", "one too many").wants(t, 1, 0, ledger.Crowded)
	a.with("b", "h1").wants(t, 1, 1, ledger.Granted)
}

func testUnknownBudget(t *testing.T, h *harness) {
	s, err := h.Coordinator.Observe(t.Context(), t.Name())
	if diff := cmp.Diff(ledger.State{}, s); err != nil || diff != "" {
		t.Errorf("%v (-want +got)\n%s", err, diff)
	}
}
