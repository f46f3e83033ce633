package postgres

import (
	"testing"
	"time"

	"github.com/weir-dev/weir/internal/testing/postgrestest"
	"github.com/weir-dev/weir/pkg/federation/ledger"
	"github.com/weir-dev/weir/pkg/limiter"
)

// lease asks for 1 unit of a budget of 10 each second.
func lease(t *testing.T, c *Coordinator, id string, seq int64) ledger.Grant {
	t.Helper()
	p := ledger.Params{Limit: 10, Window: limiter.Second, Members: []ledger.Member{{Name: "a", Weight: 1, Borrowing: -1}}}
	g, err := c.Apply(t.Context(), id, p, ledger.Command{Op: ledger.Lease, Member: "a", Holder: "h", Seq: seq, Min: 1, Want: 1})
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// hold keeps others away from a budget until release is called.
func hold(server *postgrestest.Server, id string) (release func()) {
	return server.Hold("SELECT pg_advisory_xact_lock(hashtext('weir.budgets'), hashtext(encode('" + id + "'::bytea, 'hex')))")
}

// TestBudgetsThatNobodyAsksForAreDropped lets months pass.
func TestBudgetsThatNobodyAsksForAreDropped(t *testing.T) {
	t.Parallel()
	server := postgrestest.Start(t)
	subject := clocked(t, server)
	c := subject.Coordinator.(*Coordinator)
	lease(t, c, "gone", 1)
	subject.Advance(limiter.Second)
	lease(t, c, "gone", 2)
	lease(t, c, "used", 1)
	subject.Advance(2*limiter.MaxWindow - limiter.Second)
	lease(t, c, "used", 2)
	subject.Advance(limiter.Second + 1)
	release := hold(server, "gone")
	lease(t, c, "third", 1)
	if got := server.Do("SELECT count(*) FROM weir.budgets")[0][0]; got != int64(3) {
		t.Errorf("%v budgets are left while one of them is asked for, want 3", got)
	}
	release()
	server.Await()
	lease(t, c, "fourth", 1)
	for _, table := range []string{"budgets", "budget_members", "budget_holders", "budget_closed"} {
		if got := server.Do("SELECT count(*) FROM weir." + table + " WHERE budget = 'gone'")[0][0]; got != int64(0) {
			t.Errorf("of %s %v rows are left", table, got)
		}
	}
	if g := lease(t, c, "used", 3); g.Reason != ledger.Granted {
		t.Errorf("a budget in use was dropped: %+v", g)
	}
}

// TestTheClockIsReadUnderTheLock lets a lease wait for its budget over the end of a
// window.
func TestTheClockIsReadUnderTheLock(t *testing.T) {
	t.Parallel()
	server := postgrestest.Start(t)
	subject := clocked(t, server)
	c := subject.Coordinator.(*Coordinator)
	before := lease(t, c, "budget", 1)
	release := hold(server, "budget")
	answer := make(chan ledger.Grant)
	go func() { answer <- lease(t, c, "budget", 2) }()
	for server.Do("SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'")[0][0] == int64(0) {
		<-time.After(time.Millisecond)
	}
	subject.Advance(limiter.Second)
	release()
	if g := <-answer; g.Epoch.Index != before.Epoch.Index+1 || g.Granted != 1 {
		t.Errorf("decided before it had its budget: %+v after %+v", g, before)
	}
}

// TestTermsRise lets the server lose all it knows while its clock stands before terms
// that were served.
func TestTermsRise(t *testing.T) {
	t.Parallel()
	subject := clocked(t, postgrestest.Start(t))
	c := subject.Coordinator.(*Coordinator)
	first := lease(t, c, "budget", 1)
	subject.Forget["TRUNCATE of the budgets"]()
	subject.Set(first.Now - 1000)
	p := ledger.Params{Limit: 10, Window: limiter.Second, Members: []ledger.Member{{Name: "a", Weight: 1, Borrowing: -1}}}
	for _, named := range []int64{first.Epoch.Term, limiter.MaxExact, limiter.MaxExact} {
		cmd := ledger.Command{Op: ledger.Lease, Member: "a", Holder: "h", Seq: 2, Epoch: ledger.Epoch{Term: named}, Min: 1, Want: 1}
		g, err := c.Apply(t.Context(), "budget", p, cmd)
		if err != nil || g.Epoch.Term < min(named+1, limiter.MaxExact) || g.Reason != ledger.Amnesia {
			t.Errorf("got %+v, %v, having named term %d", g, err, named)
		}
	}
}
