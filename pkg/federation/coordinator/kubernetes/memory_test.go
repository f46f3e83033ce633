package kubernetes_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/weir-dev/weir/internal/testing/suite"
	"github.com/weir-dev/weir/pkg/federation/coordinator/kubernetes"
	"github.com/weir-dev/weir/pkg/federation/ledger"
	"github.com/weir-dev/weir/pkg/limiter"
)

// open returns a journal and a clock of a budget that was first kept in the window before
// the open one.
func open(t *testing.T, p ledger.Params) (*journal, *suite.Clock, *kubernetes.Coordinator) {
	t.Helper()
	kept, now := newJournal(), suite.NewClock(suite.Start)
	c := kubernetes.New(kubernetes.Options{Journal: kept, Births: kept, Clock: now.Now})
	if g := wants(t, newHolder(9), c, p, 1); g.Granted != 1 {
		t.Fatalf("the window that is open when a budget is first kept is not served: %+v", g)
	}
	now.Advance(p.Window)
	return kept, now, c
}

// wants leases exactly that much, and must be answered.
func wants(t *testing.T, h *holder, c *kubernetes.Coordinator, p ledger.Params, units int64) ledger.Grant {
	t.Helper()
	g, err := h.lease(t.Context(), c, p, units, units)
	if err != nil {
		t.Fatal(err)
	}
	c.Settle()
	return g
}

// TestPausedLeader lets a process that was overtaken go on: it grants what it set
// aside, and learns with its next write that it is not the one any more.
func TestPausedLeader(t *testing.T) {
	p := params(100, 10)
	kept, now, old := open(t, p)
	a, b, late := newHolder(0), newHolder(1), newHolder(2)
	wants(t, a, old, p, 4) // of 10, then 14

	next := kubernetes.New(kubernetes.Options{Journal: kept, Births: kept, Clock: now.Now})
	if g := wants(t, b, next, p, 80); g.Granted != 80 || g.Epoch.Term <= a.last.Epoch.Term {
		t.Fatalf("the new leader granted %+v", g)
	}
	if g := wants(t, a, old, p, 4); g.Granted != 8 {
		t.Fatalf("the old leader does not grant what it set aside: %+v", g)
	}
	_, err := late.lease(t.Context(), old, p, 9, 9)
	if conflict := (*kubernetes.ConflictError)(nil); !errors.As(err, &conflict) || conflict.ID != id {
		t.Fatalf("got %v, want a conflict", err)
	}
	if got := old.Stats().Conflicts; got != 1 {
		t.Errorf("%d conflicts, want 1", got)
	}
	for wants(t, b, next, p, 1).Reason == ledger.Granted {
	}
	requireWithin(t, []*holder{a, b, late}, 100)
}

// TestOlderMemoryIsNotBelieved shows the old leader a holder of the new one.
func TestOlderMemoryIsNotBelieved(t *testing.T) {
	p := params(100, 10)
	kept, now, old := open(t, p)
	a := newHolder(0)
	wants(t, a, old, p, 4)
	wants(t, a, kubernetes.New(kubernetes.Options{Journal: kept, Births: kept, Clock: now.Now}), p, 4)
	if g, err := a.lease(t.Context(), old, p, 1, 1); err == nil {
		t.Errorf("a memory that is overtaken granted %+v", g)
	}
}

// TestLostAnswers loses the answer of every write of a window. Written units count as
// set aside: nothing is granted twice, and nothing is forfeited.
func TestLostAnswers(t *testing.T) {
	p := params(100, 10)
	kept, now, c := open(t, p)
	a := newHolder(0)
	term := wants(t, a, c, p, 1).Epoch.Term
	kept.lose(true)
	for range 400 {
		if _, err := a.lease(t.Context(), c, p, 1, 1); err != nil {
			c.Resume()
		}
	}
	if a.last.Granted != 100 || a.last.Epoch.Term != term || c.Stats().Conflicts > 0 {
		t.Errorf("granted %d of 100 by term %d, which began as %d: %+v", a.last.Granted, a.last.Epoch.Term, term, c.Stats())
	}
	kept.lose(false)
	now.Advance(p.Window)
	if g := wants(t, a, c, p, 100); g.Granted != 100 {
		t.Errorf("the next window: %+v", g)
	}
}

// TestHandOver seals one coordinator after another: nothing is forfeited.
func TestHandOver(t *testing.T) {
	p := params(100, 10)
	kept, now, c := open(t, p)
	a := newHolder(0)
	for range 100 {
		if g := wants(t, a, c, p, 1); g.Reason != ledger.Granted {
			t.Fatalf("after %d units: %+v", granted([]*holder{a})[g.Epoch.Index], g)
		}
		c.Seal(t.Context())
		if _, err := a.lease(t.Context(), c, p, 1, 1); !errors.Is(err, kubernetes.ErrSealed) {
			t.Fatalf("a sealed coordinator: %v", err)
		}
		c = kubernetes.New(kubernetes.Options{Journal: kept, Births: kept, Clock: now.Now})
	}
	if g := wants(t, a, c, p, 1); g.Reason != ledger.Exhausted {
		t.Errorf("beyond the limit: %+v", g)
	}
}

// TestDeletedRecord deletes the record while a leader runs. It grants what it set aside,
// then gives up; the next leader does not serve the open window.
func TestDeletedRecord(t *testing.T) {
	p := params(100, 10)
	kept, now, c := open(t, p)
	a, b := newHolder(0), newHolder(1)
	wants(t, a, c, p, 6)
	kept.wipe()
	wants(t, a, c, p, 6)
	if _, err := b.lease(t.Context(), c, p, 50, 50); err == nil {
		t.Fatal("units were granted that are not set aside")
	}
	c.Resume()
	for _, next := range []*kubernetes.Coordinator{c, kubernetes.New(kubernetes.Options{Journal: kept, Births: kept, Clock: now.Now})} {
		c = next
		if g := wants(t, b, c, p, 1); g.Reason != ledger.Amnesia {
			t.Errorf("who has no record granted %+v", g)
		}
	}
	now.Advance(p.Window)
	if g := wants(t, b, c, p, 100); g.Granted != 100 {
		t.Errorf("the next window: %+v", g)
	}
}

// TestWritesAreBoundedByBlocks uses up a window unit by unit.
func TestWritesAreBoundedByBlocks(t *testing.T) {
	p := params(5000, 500)
	_, _, c := open(t, p)
	a, before := newHolder(0), c.Stats()
	for range p.Limit {
		if g := wants(t, a, c, p, 1); g.Reason != ledger.Granted {
			t.Fatalf("%+v", g)
		}
	}
	s := c.Stats()
	if leases := s.Leases - before.Leases; leases != 5000 {
		t.Errorf("%d leases are counted, want 5000", leases)
	}
	if writes := s.Writes - before.Writes; writes < 10 || writes > 2*5000/500+2 {
		t.Errorf("%d writes for 10 blocks, want one for each half of one at most", writes)
	}
}

// TestSlicesAreWrittenBeforeTheyAreSent crashes the coordinator at every write: the next
// one knows all slices that any member was sent.
func TestSlicesAreWrittenBeforeTheyAreSent(t *testing.T) {
	dice := seeded(t)
	p := params(100, 10)
	p.Slices = true
	kept, now, _ := open(t, p)
	sent := map[string]int64{}
	for round := range 300 {
		if round%3 == 0 {
			for i := range p.Members {
				p.Members[i].Nominal = dice.Int64N(51)
				p.Members[i].Kept = p.Members[i].Nominal
			}
			now.Advance(p.Window)
		}
		run := start(kept, now, 1+dice.IntN(6), dice.IntN(2) == 0)
		for i := range 2 {
			h := newHolder(i)
			h.last.Slice = sent[h.member]
			if g, err := h.lease(t.Context(), run.Coordinator, p, 1, 5); err == nil {
				sent[h.member] = g.Slice
				r, _ := kept.record(id)
				if known := sliceOf(r, h.member); known < max(g.Slice, g.NowSlice) {
					t.Fatalf("member %s was sent a slice of %d, the record says %d: %+v", h.member, g.Slice, known, g)
				}
			}
		}
		run.Settle()
	}
	if sent["a"]+sent["b"] == 0 {
		t.Error("no member was sent a slice")
	}
}

func sliceOf(r kubernetes.Record, member string) int64 {
	for _, s := range r.Slices {
		if s.Member == member {
			return s.Units
		}
	}
	return 0
}

// TestObserveBeforeServing reads the record of another's budget, and takes nothing over.
func TestObserveBeforeServing(t *testing.T) {
	p := params(100, 10)
	kept, now, c := open(t, p)
	a := newHolder(0)
	g := wants(t, a, c, p, 4)
	other := kubernetes.New(kubernetes.Options{Journal: kept, Births: kept, Clock: now.Now})
	s, err := other.Observe(t.Context(), id)
	if err != nil || s.Index != g.Epoch.Index || s.Reserved < 4 || s.Term != g.Epoch.Term {
		t.Errorf("observed %+v, %v", s, err)
	}
	kept.trouble(func(context.Context, string) error { return errors.New("no route to the API server") })
	if _, err := other.Observe(t.Context(), id); err == nil || !strings.Contains(err.Error(), "no route") {
		t.Errorf("got %v", err)
	}
	kept.trouble(nil)
	if wants(t, a, c, p, 90); c.Stats().Conflicts > 0 {
		t.Error("observing took the budget over")
	}
}

// TestDamagedRecords are refused before anything is granted by them.
func TestDamagedRecords(t *testing.T) {
	good := kubernetes.Record{
		Window: limiter.Second, Index: 5, Limit: 10, Reserved: 3, Term: 1, Writer: "w",
		Slices: []kubernetes.Slice{{Member: "a", Units: 1}, {Member: "b", Units: 1}},
	}
	if err := good.Validate(); err != nil {
		t.Fatal(err)
	}
	for what, damage := range map[string]func(*kubernetes.Record){
		"window": func(r *kubernetes.Record) { r.Window = 1 }, "index": func(r *kubernetes.Record) { r.Index = 1 << 52 },
		"limit": func(r *kubernetes.Record) { r.Limit = 0 }, "reserved": func(r *kubernetes.Record) { r.Reserved = -1 },
		"latest": func(r *kubernetes.Record) { r.Latest = -1 }, "since": func(r *kubernetes.Record) { r.Since = 1 << 60 },
		"term": func(r *kubernetes.Record) { r.Term = 0 }, "writer": func(r *kubernetes.Record) { r.Writer = "" },
		"slice": func(r *kubernetes.Record) {
			r.Slices = []kubernetes.Slice{{Member: "b", Units: 1}, {Member: "a", Units: 1}}
		},
	} {
		r := good
		damage(&r)
		if err := r.Validate(); err == nil || !strings.Contains(err.Error(), what) {
			t.Errorf("%s: got %v", what, err)
		}
	}
}
