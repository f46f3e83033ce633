package kubernetes_test

import (
	"testing"

	"github.com/weir-dev/weir/pkg/federation/coordinator/kubernetes"
	"github.com/weir-dev/weir/pkg/federation/ledger"
	"github.com/weir-dev/weir/pkg/limiter"
)

// TestAHubThatKeepsABudgetAgain has another hub keep a budget for a while, in a journal of
// its own, and then the first one again: no window is granted by both.
func TestAHubThatKeepsABudgetAgain(t *testing.T) {
	for name, restarts := range map[string]bool{"the same process": false, "another process": true} {
		t.Run(name, func(t *testing.T) {
			p := params(100, 10)
			kept, now, c := open(t, p)
			a, b := newHolder(0), newHolder(1)
			wants(t, a, c, p, 6)
			r, version, err := kept.Load(t.Context(), id)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := kept.Save(t.Context(), id, r.Ceased(), version); err != nil {
				t.Fatal(err)
			}

			now.Advance(p.Window)
			elsewhere := kubernetes.New(kubernetes.Options{Journal: newJournal(), Clock: now.Now})
			wants(t, newHolder(9), elsewhere, p, 1)
			now.Advance(p.Window)
			if g := wants(t, b, elsewhere, p, 100); g.Granted != 100 {
				t.Fatalf("the other hub granted %+v", g)
			}

			if restarts {
				c = kubernetes.New(kubernetes.Options{Journal: kept, Births: kept, Clock: now.Now})
			} else if _, err := a.lease(t.Context(), c, p, 1, 1); err == nil {
				t.Fatal("a memory goes on that ceased")
			}
			c.Resume()
			if g := wants(t, a, c, p, 1); g.Reason != ledger.Amnesia {
				t.Errorf("of a window that another hub served, it granted %+v", g)
			}
			now.Advance(p.Window)
			if g := wants(t, a, c, p, 100); g.Granted != 100 {
				t.Errorf("the next window: %+v", g)
			}
		})
	}
}

// TestAHubThatKeepsABudgetAgainInTheSameWindow cannot know that no other did meanwhile: one whose clock is
// behind may have begun before the window did, by its own clock, and granted all of it.
func TestAHubThatKeepsABudgetAgainInTheSameWindow(t *testing.T) {
	p := params(100, 10)
	kept, now, c := open(t, p)
	a, b := newHolder(0), newHolder(1)
	now.Advance(p.Window - limiter.Micros(int64(now.Now())%int64(p.Window)))
	wants(t, a, c, p, 6)
	r, version, err := kept.Load(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := kept.Save(t.Context(), id, r.Ceased(), version); err != nil {
		t.Fatal(err)
	}

	behind := func() limiter.Instant { return now.Now().Add(-p.Window / 2) }
	elsewhere := kubernetes.New(kubernetes.Options{Journal: newJournal(), Clock: behind})
	if g := wants(t, newHolder(9), elsewhere, p, 1); g.Reason != ledger.Amnesia {
		t.Fatalf("the other hub granted %+v of the window that was open when it began", g)
	}
	now.Advance(p.Window * 3 / 4)
	if g := wants(t, b, elsewhere, p, 94); g.Granted != 94 {
		t.Fatalf("the other hub granted %+v", g)
	}

	c = kubernetes.New(kubernetes.Options{Journal: kept, Births: kept, Clock: now.Now})
	g := wants(t, a, c, p, 1)
	if ends := p.Window - limiter.Micros(int64(now.Now())%int64(p.Window)); g.Reason != ledger.Amnesia || g.RetryAfter != ends {
		t.Errorf("of a window that another hub serves, it granted %+v; want it to say that it waits for %d", g, ends)
	}
	requireWithin(t, []*holder{a, b}, p.Limit)
}
