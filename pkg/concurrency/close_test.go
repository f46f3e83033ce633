package concurrency

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weir-dev/weir/pkg/concurrency/pool"
	"github.com/weir-dev/weir/pkg/limiter"
	"github.com/weir-dev/weir/pkg/monotonic"
)

// shut closes a guard and returns how long that took.
func shut(t *testing.T, g *Guard, within time.Duration) time.Duration {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), within)
	defer cancel()
	began := time.Now()
	g.Close(ctx)
	return time.Since(began)
}

// opened returns a guard that the test closes.
func opened(cfg Config, c Coordinator) *Guard {
	g := newGuard(cfg, c, new(monotonic.Clock))
	synctest.Wait()
	return g
}

func TestCloseWaitsUntilNothingIsInFlight(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		coordinator := remember()
		l := newLine(coordinator)
		g := opened(queued("a", 2, 4, 30*limiter.Second), l)
		s := take(t, g, 2)
		waiting := newQueuer(t, g)
		waiting.ask(t.Context(), "waits")
		go func() {
			time.Sleep(100 * time.Millisecond)
			waiting.expect("waits: Closed at 0s")
			expect(t, g, Closed)
			s[0].Release(Served)
			expect(t, g, Closed)
			time.Sleep(5 * time.Second)
			s[1].Release(Served)
		}()
		if took := shut(t, g, time.Minute); took != 5100*time.Millisecond {
			t.Errorf("closed after %v, want as soon as the last request ended", took)
		}
		if n := len(l.beats()); n != 7 {
			t.Errorf("%d commands in 5.1 s: it has to beat while something is in flight", n)
		}
		for _, c := range l.beats()[:6] {
			if c.Op != pool.Beat {
				t.Errorf("gave the share up while it was in use: %+v", c)
			}
		}
		if c := l.last(t); c.Op != pool.Leave || c.InFlight != 0 {
			t.Errorf("the last command: %+v", c)
		}
		next := open(t, fixed("b", 2), coordinator)
		take(t, next, 2)
		expect(t, g, Closed)
	})
}

func TestCloseThatMayNotWaitLeavesTheShareToExpire(t *testing.T) {
	for action, ended := range map[FenceAction]bool{Drain: false, Abort: true} {
		synctest.Test(t, func(t *testing.T) {
			l := newLine(remember())
			cfg := fixed("a", 2)
			cfg.OnFenced = action
			g := opened(cfg, l)
			s := take(t, g, 1)
			if took := shut(t, g, 300*time.Millisecond); took != 300*time.Millisecond {
				t.Errorf("closed after %v", took)
			}
			if c := l.last(t); c.Op != pool.Beat {
				t.Errorf("gave the share up while it was in use: %+v", c)
			}
			select {
			case <-s[0].Fenced():
				if !ended {
					t.Error("a request that may drain has to end")
				}
			default:
				if ended {
					t.Error("nobody will end the request when the share expired")
				}
			}
			release(s)
		})
	}
}

// TestLeaveIsTheLastCommand closes while a beat is on the way.
func TestLeaveIsTheLastCommand(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		coordinator := remember()
		l := newLine(coordinator)
		l.there = 400 * time.Millisecond
		g := opened(fixed("a", 2), l)
		if took := shut(t, g, time.Minute); took != 800*time.Millisecond {
			t.Errorf("closed after %v, want after the beat and the farewell", took)
		}
		if c := l.last(t); c.Op != pool.Leave || c.Seq != 2 {
			t.Errorf("the last command: %+v", c)
		}
		next := open(t, fixed("b", 2), coordinator)
		take(t, next, 2)
	})
}

func TestCloseGivesUpACoordinatorThatIsSilent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLine(nil)
		l.deaf = true
		g := opened(fixed("a", 2), l)
		if took := shut(t, g, 200*time.Millisecond); took != 200*time.Millisecond {
			t.Errorf("closed after %v", took)
		}
	})
}
