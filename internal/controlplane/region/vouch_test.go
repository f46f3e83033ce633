package region

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-dev/weir/pkg/federation"
	"github.com/weir-dev/weir/pkg/federation/birth"
	coordinator "github.com/weir-dev/weir/pkg/federation/coordinator/memory"
	"github.com/weir-dev/weir/pkg/federation/ledger"
	"github.com/weir-dev/weir/pkg/limiter"
)

// A register is the births of one cluster.
type register struct {
	mu      sync.Mutex
	of      birth.Birth
	failure error
}

func (r *register) Meet(_ context.Context, _ string, term int64) (birth.Birth, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.failure != nil && term > 0 {
		return birth.Birth{}, r.failure
	}
	r.of = r.of.Meet(term)
	return r.of, nil
}

const shelf = "redis|here"

// monthly is a budget of two members, in a window that began long ago.
var monthly = ledger.Params{
	Limit: 10, Window: limiter.MaxWindow, Strategy: ledger.FirstCome,
	Members: []ledger.Member{{Name: "a", Weight: 1, Borrowing: -1}, {Name: "b", Weight: 1, Borrowing: -1}},
}

// newborn returns the births of a cluster that sees the budget for the first time.
func newborn() *register { return &register{of: birth.New(shelf, monthly.Names())} }

// forgetful returns a store whose memory began now.
func forgetful(term int64) *root {
	return &root{Coordinator: coordinator.New(coordinator.Options{Clock: wall, Term: term})}
}

func leases(t *testing.T, c federation.Coordinator, member string, seq int64, reason ledger.Reason) {
	t.Helper()
	g, err := c.Apply(t.Context(), "id", monthly, ledger.Command{
		Op: ledger.Lease, Member: member, Holder: member, Seq: seq, Min: 1, Want: 1,
	})
	if err != nil || g.Reason != reason {
		t.Errorf("%s got %+v, %v; want reason %d", member, g, err, reason)
	}
}

// TestANewBudgetInAStoreServesAtOnce once both clusters have met the memory that keeps it,
// and waits when that is not the first.
func TestANewBudgetInAStoreServesAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		kept, one, other := forgetful(7), newborn(), newborn()
		a, b := vouching(kept, one, shelf), vouching(kept, other, shelf)
		leases(t, a, "a", 1, ledger.Amnesia) // b might know better
		leases(t, b, "b", 1, ledger.Granted)
		leases(t, a, "a", 2, ledger.Granted)
		if commands := kept.sent(ledger.Lease); len(commands) != 3 || one.of.Memory != 7 {
			t.Errorf("%+v were sent, and %+v is remembered", commands, one.of)
		}

		lost := forgetful(8) // and the processes start again
		a, b = vouching(lost, one, shelf), vouching(lost, other, shelf)
		for seq := range int64(3) {
			leases(t, a, "a", 3+seq, ledger.Amnesia)
			leases(t, b, "b", 3+seq, ledger.Amnesia)
		}
	})
}

// TestNothingIsAskedBeforeItIsWrittenDown which memory serves.
func TestNothingIsAskedBeforeItIsWrittenDown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		kept, births := forgetful(7), newborn()
		births.failure = errors.New("the API server is away")
		c := vouching(kept, births, shelf)
		ask := ledger.Command{Op: ledger.Lease, Member: "a", Holder: "a", Seq: 1, Min: 1, Want: 1}
		if g, err := c.Apply(t.Context(), "id", monthly, ask); !errors.Is(err, births.failure) {
			t.Errorf("got %+v, %v", g, err)
		}
		if sent := kept.sent(ledger.Lease); len(sent) > 0 {
			t.Errorf("%+v was sent", sent)
		}
		births.failure = nil
		leases(t, c, "a", 1, ledger.Amnesia)
		if sent := kept.sent(ledger.Lease); len(sent) != 1 || sent[0].Born != 7 || sent[0].List == 0 {
			t.Errorf("%+v was sent", sent)
		}
	})
}

// TestWhichMemoryServesIsAskedForTheHolder that asks for units.
func TestWhichMemoryServesIsAskedForTheHolder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		kept := forgetful(7)
		kept.fail(errCut)
		ask := ledger.Command{Op: ledger.Lease, Member: "a", Holder: "h", Epoch: ledger.Epoch{Index: 1, Term: 2}, Slice: 3, Seq: 4, Min: 5, Want: 6}
		_, err := vouching(kept, newborn(), shelf).Apply(t.Context(), "id", monthly, ask)
		want := []ledger.Command{{Op: ledger.Report, Member: "a", Holder: "h", Epoch: ask.Epoch, Slice: 3}}
		if diff := cmp.Diff(want, kept.commands); !errors.Is(err, errCut) || diff != "" {
			t.Errorf("error %v; sent (-want +got):\n%s", err, diff)
		}
	})
}

// TestAnOldBudgetIsNotVouchedFor: the cluster cannot say where it was kept.
func TestAnOldBudgetIsNotVouchedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		kept := forgetful(7)
		leases(t, vouching(kept, &register{}, shelf), "a", 1, ledger.Amnesia)
		if len(kept.commands) != 1 || kept.commands[0].Born != 0 || kept.commands[0].List != 0 {
			t.Errorf("%+v were sent", kept.commands)
		}
		if vouching(kept, newborn(), "") != federation.Coordinator(kept) {
			t.Error("a hub is asked by vouches")
		}
	})
}
