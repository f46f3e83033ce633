package kubernetes_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/weir-dev/weir/internal/testing/suite"
	"github.com/weir-dev/weir/pkg/federation/coordinator/kubernetes"
	"github.com/weir-dev/weir/pkg/federation/ledger"
	"github.com/weir-dev/weir/pkg/limiter"
)

func none(string) bool { return false }

// TestTheBookOfABudgetThatIsGoneIsForgotten once its last window is over, and no sooner.
func TestTheBookOfABudgetThatIsGoneIsForgotten(t *testing.T) {
	p := params(100, 10)
	_, now, c := open(t, p)
	wants(t, newHolder(0), c, p, 7)
	c.Settle()
	end := now.Now().Add(p.Window) / limiter.Instant(p.Window) * limiter.Instant(p.Window)
	for _, step := range []struct {
		what   string
		kept   bool
		before limiter.Instant
		want   int
	}{
		{"a budget that is kept", true, end.Add(limiter.MaxWindow), 1},
		{"its window is open", false, end - 1, 1},
		{"its window is over", false, end, 0},
	} {
		c.Sweep(func(string) bool { return step.kept }, step.before)
		if got := c.Len(); got != step.want {
			t.Errorf("%s: %d books, want %d", step.what, got, step.want)
		}
	}
}

// TestABudgetThatIsCreatedAgainGrantsAWindowOnce sweeps at each moment, and asks again: in the
// window that was open the book still has all that was left, and no window has more than its limit.
func TestABudgetThatIsCreatedAgainGrantsAWindowOnce(t *testing.T) {
	for _, after := range []limiter.Micros{0, limiter.Second / 2, limiter.Second, 60 * limiter.Second, 3 * limiter.MaxWindow} {
		for name, lost := range map[string]func(kept *journal){
			"the record stays": func(*journal) {},
			"the record ceased": func(kept *journal) {
				r, version, err := kept.Load(t.Context(), id)
				if err == nil {
					_, err = kept.Save(t.Context(), id, r.Ceased(), version)
				}
				if err != nil {
					t.Fatal(err)
				}
			},
			"the record is deleted": func(kept *journal) { kept.wipe() },
		} {
			p := params(100, 10)
			kept, now, c := open(t, p)
			a, b := newHolder(0), newHolder(1)
			wants(t, a, c, p, 23)
			c.Settle()
			lost(kept)
			now.Advance(after)
			c.Sweep(none, now.Now())
			var got int64
			for range 120 {
				c.Resume()
				g, err := b.lease(t.Context(), c, p, 1, 1)
				if err == nil && g.Reason == ledger.Granted {
					got++
				}
			}
			requireWithin(t, []*holder{a, b}, p.Limit)
			switch same := after < limiter.Second/2; {
			case same && name == "the record stays" && got != 77:
				t.Errorf("%s, after %v: %d units are left of the window, want 77", name, after, got)
			case after >= 60*limiter.Second && name == "the record stays" && got != 100:
				t.Errorf("%s, after %v: %d units of a window that begins later, want 100", name, after, got)
			}
		}
	}
}

// TestSweepWaitsForWhatIsUnderWay holds a write up: its answer belongs to the book.
func TestSweepWaitsForWhatIsUnderWay(t *testing.T) {
	p := params(100, 10)
	kept, now := newJournal(), suite.NewClock(suite.Start)
	c := kubernetes.New(kubernetes.Options{Journal: kept, Births: kept, Clock: now.Now})
	held, released := make(chan struct{}), make(chan struct{})
	var once sync.Once
	kept.trouble(func(context.Context, string) error {
		once.Do(func() { close(held) })
		<-released
		return nil
	})
	done := make(chan error)
	go func() {
		_, err := newHolder(0).lease(t.Context(), c, p, 1, 1)
		done <- err
	}()
	<-held
	c.Sweep(none, limiter.MaxInstant)
	if got := c.Len(); got != 1 {
		t.Errorf("%d books while one is being loaded, want 1", got)
	}
	kept.trouble(nil)
	close(released)
	select {
	case err := <-done:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(10 * time.Second):
		t.Fatal("the command does not end")
	}
}
