package budgettest

import (
	"maps"
	"slices"
	"testing"

	"github.com/weir-dev/weir/pkg/federation/ledger"
	"github.com/weir-dev/weir/pkg/limiter"
)

// testVouched asks for a budget for the first time, long after its window began.
func testVouched(t *testing.T, h *harness) {
	const everyone, others = 7, 8
	p := h.firstCome(10)
	p.Window = limiter.MaxWindow
	a := h.holder(t, "", p)
	b := a.with("b", "other")
	if g := a.lease(t, 1, 1); g.Reason != ledger.Amnesia {
		t.Skip("nobody was asked for it before, and the coordinator knows that")
	}
	term := a.epoch.Term
	vouch := func(m *holder, born, list, units, altogether int64, reason ledger.Reason) {
		t.Helper()
		m.born, m.list = born, list
		m.wants(t, units, altogether, reason)
	}
	vouch(a, term, everyone, 1, 0, ledger.Amnesia) // b does not
	vouch(b, term, others, 1, 0, ledger.Amnesia)   // for other members
	vouch(b, term-1, everyone, 1, 0, ledger.Amnesia)
	vouch(b, 0, everyone, 1, 0, ledger.Amnesia)
	vouch(b, term, everyone, 4, 4, ledger.Granted)
	vouch(a, term, everyone, 2, 2, ledger.Granted)
	vouch(b, 0, 0, 1, 4, ledger.Amnesia) // it takes that back
	vouch(a, term, everyone, 1, 2, ledger.Amnesia)
	vouch(b, term, everyone, 1, 5, ledger.Granted)

	for _, how := range slices.Sorted(maps.Keys(h.Forget)) {
		h.Coordinator = h.Forget[how]()
		vouch(a, term, everyone, 1, 0, ledger.Amnesia)
		vouch(b, term, everyone, 1, 0, ledger.Amnesia)
		vouch(a, term, everyone, 1, 0, ledger.Amnesia)
		if a.epoch.Term <= term {
			t.Fatalf("after %s term %d serves, which the members met before", how, a.epoch.Term)
		}
	}
	a.epoch, a.born, a.list = ledger.Epoch{}, a.epoch.Term+1, everyone // of a later memory than this one
	if g, err := h.Coordinator.Apply(t.Context(), a.id, a.params, a.asking(1, 1)); err == nil && g.Epoch.Term <= a.born {
		t.Errorf("an older memory than the member met answers: %+v", g)
	}
}
