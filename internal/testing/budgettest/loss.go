package budgettest

import (
	"maps"
	"slices"
	"testing"

	"github.com/weir-dev/weir/internal/testing/suite"
	"github.com/weir-dev/weir/pkg/federation/ledger"
)

func testForget(t *testing.T, h *harness) {
	if len(h.Forget)+len(h.Forfeit) == 0 {
		t.Fatal("the subject names no way to forget")
	}
	for _, how := range slices.Sorted(maps.Keys(h.Forget)) {
		t.Run(how, func(t *testing.T) {
			a := h.open(t, h.firstCome(10))
			b := a.with("b", "other")
			before := a.wants(t, 6, 6, ledger.Granted)

			h.Coordinator = h.Forget[how]()
			g := b.wants(t, 1, 0, ledger.Amnesia)
			if g.Epoch.Index != before.Epoch.Index || g.Epoch.Term <= before.Epoch.Term || g.RetryAfter < g.ExpiresIn {
				t.Errorf("got %+v after %+v", g, before)
			}
			if g := a.wants(t, 1, 0, ledger.Amnesia); g.Epoch.Term <= before.Epoch.Term {
				t.Errorf("the holder of a memory before got %+v", g)
			}
			b.wants(t, 4, 0, ledger.Amnesia)

			later := a.with("a", "later")
			later.id, later.params.Window = a.id+"/later", short
			h.Advance(later.touch(t).ExpiresIn)
			later.wants(t, 10, 10, ledger.Granted)
		})
	}
}

// testForfeit loses all but what was set aside, twice in one window.
func testForfeit(t *testing.T, h *harness) {
	for _, how := range slices.Sorted(maps.Keys(h.Forfeit)) {
		t.Run(how, func(t *testing.T) {
			limit := 10 * h.Block
			a := h.open(t, h.firstCome(limit))
			before := a.wants(t, 2*h.Block+1, 2*h.Block+1, ledger.Granted)
			used := a.granted
			for range 2 {
				h.Coordinator = h.Forfeit[how]()
				g := a.wants(t, 1, 1, ledger.Granted)
				used++
				if g.Epoch.Term <= before.Epoch.Term || g.Epoch.Index != before.Epoch.Index {
					t.Errorf("got %+v after %+v", g, before)
				}
				before = g
			}
			b := a.with("b", "other")
			for b.lease(t, 1, limit).Reason == ledger.Granted {
				used += b.granted
				b = a.with("b", b.name+"'")
			}
			if used > limit || used < limit-2*h.Block {
				t.Errorf("granted %d of %d, in which at most two blocks of %d are forfeited", used, limit, h.Block)
			}
		})
	}
}

func testKeep(t *testing.T, h *harness) {
	for _, how := range slices.Sorted(maps.Keys(h.Keep)) {
		t.Run(how, func(t *testing.T) {
			a := h.open(t, h.firstCome(10))
			b := a.with("b", "other")
			before := a.wants(t, 6, 6, ledger.Granted)
			h.Coordinator = h.Keep[how]()
			if g := a.wants(t, 1, 7, ledger.Granted); g.Epoch != before.Epoch {
				t.Errorf("got %+v after %+v", g, before)
			}
			b.wants(t, 4, 0, ledger.Exhausted)
			b.wants(t, 3, 3, ledger.Granted)
		})
	}
}

// testLaterTerm shows a coordinator that its memory is an old copy: it begins another,
// or grants nothing.
func testLaterTerm(t *testing.T, h *harness) {
	if h.Block > 0 {
		t.Skip("what it set aside is nobody else's, so it may grant that")
	}
	a := h.open(t, h.firstCome(10))
	a.wants(t, 6, 6, ledger.Granted)
	b := a.with("b", "other")
	b.epoch = a.epoch
	b.epoch.Term += 7
	g, err := h.Coordinator.Apply(t.Context(), b.id, b.params, b.asking(1, 4))
	if err != nil {
		suite.WantUnavailable(t, err)
		return
	}
	if g.Granted > 0 {
		t.Errorf("got %+v, having named term %d", g, b.epoch.Term)
	}
}
