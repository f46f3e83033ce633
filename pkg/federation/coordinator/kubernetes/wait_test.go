package kubernetes_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weir-dev/weir/pkg/federation/ledger"
)

// TestOnlyCommandsThatNeedAWriteWaitForIt holds up a write: what is set aside is granted meanwhile, other
// budgets are served, and all that wait for the write go on with it.
func TestOnlyCommandsThatNeedAWriteWaitForIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := params(100, 10)
		kept, _, c := open(t, p)
		a := newHolder(0)
		wants(t, a, c, p, 1)

		var calls, most atomic.Int64
		held := make(chan struct{})
		kept.trouble(func(context.Context, string) error {
			most.Store(max(most.Load(), calls.Add(1)))
			<-held
			calls.Add(-1)
			return nil
		})
		if g, err := a.lease(t.Context(), c, p, 6, 6); err != nil || g.Granted != 7 { // begins a write ahead
			t.Fatalf("%+v, %v", g, err)
		}
		synctest.Wait()
		if calls.Load() != 1 {
			t.Fatal("nothing is set aside ahead")
		}
		if g, err := a.lease(t.Context(), c, p, 1, 1); err != nil || g.Granted != 8 {
			t.Errorf("what is set aside waits for a write: %+v, %v", g, err)
		}
		var waiting sync.WaitGroup
		for i := range 5 {
			waiting.Go(func() {
				if g, err := newHolder(10+i).lease(t.Context(), c, p, 1, 4); err != nil || g.Reason != ledger.Granted {
					t.Errorf("%+v, %v", g, err)
				}
			})
		}
		synctest.Wait()
		if got := most.Load(); got != 1 {
			t.Errorf("%d calls of the journal at once for one budget", got)
		}
		close(held)
		waiting.Wait()
		c.Settle()
		if got := most.Load(); got != 1 {
			t.Errorf("%d calls of the journal at once for one budget", got)
		}
	})
}

// TestBudgetsDoNotWaitForEachOther holds up all calls for one of two.
func TestBudgetsDoNotWaitForEachOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := params(100, 10)
		kept, _, c := open(t, p)
		held := make(chan struct{})
		kept.trouble(func(context.Context, string) error { <-held; return nil })
		go func() { _, _ = newHolder(1).lease(t.Context(), c, p, 1, 1) }()
		synctest.Wait()
		kept.trouble(nil)
		lease := ledger.Command{Op: ledger.Release, Member: "a", Holder: "h", Seq: 1}
		if _, err := c.Apply(t.Context(), "another", p, lease); err != nil {
			t.Error(err)
		}
		close(held)
		synctest.Wait()
	})
}

// TestImpatience ends a wait with the caller's context, and leaves the write to others.
func TestImpatience(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := params(100, 10)
		kept, _, c := open(t, p)
		held := make(chan struct{})
		kept.trouble(func(context.Context, string) error { <-held; return nil })
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		a := newHolder(0)
		if _, err := a.lease(ctx, c, p, 1, 1); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v", err)
		}
		close(held)
		kept.trouble(nil)
		if g := wants(t, a, c, p, 1); g.Granted != 1 {
			t.Errorf("%+v", g)
		}
	})
}

// TestPauseAfterFailure asks a journal that fails only now and then.
func TestPauseAfterFailure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := params(100, 10)
		kept, _, c := open(t, p)
		down := errors.New("no route to the API server")
		var calls atomic.Int64
		kept.trouble(func(context.Context, string) error { calls.Add(1); return down })
		a := newHolder(0)
		for range 1000 {
			if _, err := a.lease(t.Context(), c, p, 1, 1); !errors.Is(err, down) {
				t.Fatalf("got %v", err)
			}
			<-time.After(time.Millisecond)
		}
		if got := calls.Load(); got < 3 || got > 5 {
			t.Errorf("%d calls in a second", got)
		}
		kept.trouble(nil)
		<-time.After(time.Second)
		if g := wants(t, a, c, p, 1); g.Granted != 1 {
			t.Errorf("%+v", g)
		}
	})
}
