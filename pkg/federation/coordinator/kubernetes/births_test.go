package kubernetes_test

import (
	"context"
	"errors"
	"testing"

	"github.com/weir-dev/weir/internal/testing/suite"
	"github.com/weir-dev/weir/pkg/federation/coordinator/kubernetes"
	"github.com/weir-dev/weir/pkg/federation/ledger"
	"github.com/weir-dev/weir/pkg/limiter"
)

// TestANewBudgetServesTheOpenWindow asks for a budget that was never kept, of a window
// that began long before. A leader that takes it over then, also after a crash at any call,
// grants the rest of the window and not more.
func TestANewBudgetServesTheOpenWindow(t *testing.T) {
	p := params(100, 10)
	p.Window = limiter.MaxWindow
	for left := range 6 {
		kept, now := newJournal(), suite.NewClock(suite.Start)
		a, b := newHolder(0), newHolder(1)
		crashing := start(kept, now, left, left%2 == 0)
		_, _ = a.lease(t.Context(), crashing.Coordinator, p, 6, 6)
		crashing.Settle()
		c := kubernetes.New(kubernetes.Options{Journal: kept, Births: kept, Clock: now.Now})
		g := wants(t, b, c, p, 80)
		if g.Granted != 80 {
			t.Errorf("after a crash at call %d: %+v", left, g)
		}
		for g.Reason == ledger.Granted {
			g = wants(t, b, c, p, 1)
		}
		requireWithin(t, []*holder{a, b}, p.Limit)
	}
}

// TestALostRecordIsNotABirth deletes the record of a budget before a memory granted
// anything by it: nothing shows then but the birth that the budget is not new.
func TestALostRecordIsNotABirth(t *testing.T) {
	p := params(100, 10)
	p.Window = limiter.MaxWindow
	kept, now := newJournal(), suite.NewClock(suite.Start)
	next := func() *kubernetes.Coordinator {
		return kubernetes.New(kubernetes.Options{Journal: kept, Births: kept, Clock: now.Now})
	}
	wants(t, newHolder(0), next(), p, 100)
	kept.wipe()
	if g := wants(t, newHolder(1), next(), p, 1); g.Reason != ledger.Amnesia {
		t.Errorf("who has no record granted %+v", g)
	}

	// Births that cannot be read, or written, keep the budget from being served.
	for _, op := range []string{"known", "enter"} {
		kept = newJournal()
		kept.trouble(func(_ context.Context, called string) error {
			if called == op {
				return errors.New("no route to the API server")
			}
			return nil
		})
		c := next()
		if g, err := newHolder(0).lease(t.Context(), c, p, 1, 1); err == nil {
			t.Errorf("granted %+v without %s", g, op)
		}
		kept.trouble(nil)
		c.Resume()
		if g := wants(t, newHolder(1), c, p, 100); g.Granted != 100 {
			t.Errorf("after the births are back: %+v", g)
		}
	}

	// A coordinator that keeps no births takes every budget for an old one.
	c := kubernetes.New(kubernetes.Options{Journal: newJournal(), Clock: now.Now})
	if g := wants(t, newHolder(0), c, p, 1); g.Reason != ledger.Amnesia {
		t.Errorf("without births: %+v", g)
	}
}
