package federation_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weir-dev/weir/internal/testing/federationtest"
	"github.com/weir-dev/weir/pkg/federation"
	"github.com/weir-dev/weir/pkg/federation/ledger"
	"github.com/weir-dev/weir/pkg/limiter"
	"github.com/weir-dev/weir/pkg/store"
)

// refused expects a refusal that says when to come again, and no error.
func refused(t *testing.T, r *federation.Region, p ledger.Params) limiter.Result {
	t.Helper()
	res := take(t, r, p, 1, 1)
	if res.Granted != 0 || res.Reason != limiter.Exhausted || res.RetryAfter <= 0 {
		t.Errorf("got %+v, want a refusal; %+v", res, r.Stats())
	}
	return res
}

func TestARegionThatIsCutOffHandsOnItsUnitsAndThenRefuses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := federationtest.NewHub(0)
		p := budget(100, 10*limiter.Second, 2)
		l := federationtest.NewLine(h, time.Millisecond)
		cfg := config(p, 0)
		cfg.Batch = federation.Batch{Fixed: true, Size: 16}
		r := open(t, cfg, l, nil)
		nextWindow(h, p)
		takes(t, r, p, 1, 1)
		pass(time.Second)
		left := r.Stats().Remaining
		if left < 1 {
			t.Fatalf("nothing was leased ahead: %+v", r.Stats())
		}
		if s := r.Stats(); s.Limit != 100 || s.Grant.Limit != 100 || time.Since(s.Heard) > 2*time.Second {
			t.Errorf("got %+v, want the last answer", s)
		}
		cut := time.Now()
		l.SetCut(true)
		for range left {
			takes(t, r, p, 1, 1)
		}
		pass(2 * time.Second) // the command is given up
		for range 3 {
			refused(t, r, p)
		}
		if s := r.Stats(); s.Connected || s.Err == nil || s.Outages != 1 || s.Since.Before(cut) || s.Refused < 3 {
			t.Errorf("got %+v", s)
		}
		l.SetCut(false)
		pass(2 * time.Second)
		takes(t, r, p, 1, 1)
		if s := r.Stats(); !s.Connected || s.Err != nil {
			t.Errorf("got %+v", s)
		}
	})
}

func TestTheCoordinatorIsDownAcrossABoundary(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := federationtest.NewHub(0)
		p := budget(100, limiter.Second, 1)
		r := open(t, config(p, 0), federationtest.NewLine(h, time.Millisecond), nil)
		nextWindow(h, p)
		takes(t, r, p, 5, 5)
		h.Stop()
		nextWindow(h, p)
		pass(200 * time.Millisecond)
		refused(t, r, p) // nothing of the window before is good any more
		pass(3 * time.Second)
		refused(t, r, p)
		h.Restart(false)
		nextWindow(h, p)
		pass(7 * time.Second)
		nextWindow(h, p)
		if res := take(t, r, p, 100, 100); res.Granted != 100 {
			t.Errorf("got %+v; %+v", res, r.Stats())
		}
		refused(t, r, p)
	})
}

// TestATermThatBeginsInAWindow loses the memory of the coordinator.
func TestATermThatBeginsInAWindow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := federationtest.NewHub(0)
		p := budget(100, 10*limiter.Second, 1)
		cfg := config(p, 0)
		cfg.Batch = federation.Batch{Fixed: true, Size: 16}
		r := open(t, cfg, federationtest.NewLine(h, time.Millisecond), nil)
		nextWindow(h, p)
		takes(t, r, p, 4, 4)
		pass(100 * time.Millisecond)
		left := r.Stats().Remaining
		h.Restart(false)
		got := int64(0)
		for {
			res := take(t, r, p, 1, 1)
			if res.Granted == 0 {
				if res.RetryAfter < 5*limiter.Second {
					t.Errorf("the window is not served again, but %+v", res)
				}
				break
			}
			got++
		}
		if got != left {
			t.Errorf("got %d of the %d that were granted before", got, left)
		}
		if s := r.Stats(); !s.Learning || !s.Connected || s.Epoch.Term != 2 {
			t.Errorf("got %+v", s)
		}
		nextWindow(h, p)
		takes(t, r, p, 50, 50)
		if s := r.Stats(); s.Learning {
			t.Errorf("got %+v", s)
		}
	})
}

// TestAnEarlierTermHasNoSay has the coordinator that was replaced answer again.
func TestAnEarlierTermHasNoSay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := federationtest.NewHub(0)
		p := budget(100, 10*limiter.Second, 1)
		cfg := config(p, 0)
		cfg.Batch = federation.Batch{Fixed: true, Size: 1}
		r := open(t, cfg, federationtest.NewLine(h, time.Millisecond), nil)
		nextWindow(h, p)
		takes(t, r, p, 4, 4)
		h.ReplaceTotals(&naive{h: h, term: 2})
		if res := take(t, r, p, 30, 30); res.Granted != 30 { // an order may have brought a few before
			t.Errorf("got %+v; %+v", res, r.Stats())
		}
		h.ReplaceTotals(&naive{h: h, term: 1})
		res := take(t, r, p, 40, 90)
		s := r.Stats()
		if res.Granted != 0 || s.Connected || s.Epoch.Term != 2 {
			t.Errorf("got %+v; %+v", res, s)
		}
		if want := "an earlier memory of the coordinator answered"; s.Err == nil || !strings.Contains(s.Err.Error(), want) {
			t.Errorf("the coordinator is away because of %v, want %q", s.Err, want)
		}
	})
}

// naive is a coordinator that does not know when another followed it.
type naive struct {
	h    *federationtest.Hub
	term int64

	mu    sync.Mutex
	state ledger.State // guarded by mu
}

// Apply implements federation.Coordinator.
func (n *naive) Apply(_ context.Context, _ string, p ledger.Params, c ledger.Command) (g ledger.Grant, _ error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	c.Memory = ledger.Memory{Term: n.term}
	n.state, g = n.state.Step(p, n.h.Now(), c)
	return g, nil
}

// Observe implements federation.Coordinator.
func (n *naive) Observe(context.Context, string) (ledger.State, error) { return n.state, nil }

func TestAnErrorOnlyBeforeAnythingWasKnown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := federationtest.NewHub(0)
		p := budget(100, limiter.Second, 1)
		h.Stop()
		r := open(t, config(p, 0), federationtest.NewLine(h, time.Millisecond), nil)
		pass(50 * time.Millisecond)
		_, err := r.Apply(t.Context(), key, limitOf(p), limiter.Command{Op: limiter.Take, Min: 1, Want: 1})
		if _, away := errors.AsType[*store.UnavailableError](err); !away {
			t.Errorf("got %v", err)
		}
		h.Restart(true)
		pass(time.Second)
		takes(t, r, p, 1, 1)
		h.Stop()
		pass(2 * time.Second)
		refused(t, r, p)
	})
}

// TestRegionalOnlyLeasesAhead cuts a region off in the middle of a window.
func TestRegionalOnlyLeasesAhead(t *testing.T) {
	served := func(action federation.Outage) (n int64) {
		synctest.Test(t, func(t *testing.T) {
			h := federationtest.NewHub(0)
			p := budget(1000, 10*limiter.Second, 2)
			cfg := config(p, 0)
			cfg.Outage = action
			l := federationtest.NewLine(h, time.Millisecond)
			r := open(t, cfg, l, nil)
			nextWindow(h, p)
			for range 3 * 100 { // 10 a second, in three windows
				takes(t, r, p, 1, 1)
				time.Sleep(100 * time.Millisecond)
			}
			for range 50 {
				takes(t, r, p, 1, 1)
				time.Sleep(100 * time.Millisecond)
			}
			l.SetCut(true)
			for range 40 {
				n += take(t, r, p, 1, 1).Granted
				time.Sleep(100 * time.Millisecond)
			}
		})
		return n
	}
	closed, regional := served(federation.FailClosed), served(federation.RegionalOnly)
	t.Logf("of 40 in the outage: %d by FailClosed, %d by RegionalOnly", closed, regional)
	if closed >= 35 || regional < 38 {
		t.Errorf("of 40 in the outage: %d by FailClosed, %d by RegionalOnly", closed, regional)
	}
}

// TestALateAnswerIsOfNoUse lets an answer arrive after its window.
func TestALateAnswerIsOfNoUse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := federationtest.NewHub(0)
		p := budget(100, limiter.Second, 1)
		cfg := config(p, 0)
		cfg.Timeout = 10 * time.Second
		l := federationtest.NewLine(h, time.Millisecond)
		n := newCount(h, p)
		r := open(t, cfg, l, nil)
		nextWindow(h, p)
		l.Set(func() { l.Back = federationtest.Always(1500 * time.Millisecond) })
		for range 8 {
			res := take(t, r, p, 1, 100)
			if res.Granted > 0 && !res.Windows.Open[0].Contains(h.Now()) {
				t.Errorf("got %+v at %d", res, h.Now())
			}
			n.add(res.Granted)
		}
		n.check(t, p.Limit)
		l.Set(func() { l.Back = federationtest.Always(time.Millisecond) })
		pass(2 * time.Second)
		nextWindow(h, p)
		takes(t, r, p, 50, 50)
	})
}

// TestASuspendedMachineUsesNothingOld moves the clock as the watchdog does after a resume.
func TestASuspendedMachineUsesNothingOld(t *testing.T) {
	for name, shared := range map[string]bool{"own escrow": false, "an escrow whose clock stood still": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := federationtest.NewHub(0)
				p := budget(100, 10*limiter.Second, 1)
				cfg := config(p, 0)
				cfg.Batch = federation.Batch{Fixed: true, Size: 50}
				l := federationtest.NewLine(h, time.Millisecond)
				var e federation.Escrow
				if shared {
					e = newDesk()
				}
				r := open(t, cfg, l, e)
				nextWindow(h, p)
				takes(t, r, p, 1, 1)
				pass(100 * time.Millisecond)
				if r.Stats().Remaining == 0 {
					t.Fatalf("nothing was leased ahead: %+v", r.Stats())
				}
				l.SetCut(true)
				cfg.Clock.Skip(11 * time.Second)
				refused(t, r, p)
			})
		})
	}
}

// TestARegionKeepsInTouch counts the commands of a region that nobody asks for anything.
func TestARegionKeepsInTouch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := federationtest.NewHub(0)
		p := budget(100, limiter.Second, 1)
		l := federationtest.NewLine(h, time.Millisecond)
		r := open(t, config(p, 0), l, nil)
		pass(61 * time.Second)
		if s := r.Stats(); s.Commands < 12 || s.Commands > 14 || !s.Connected || s.Granted != 0 {
			t.Errorf("got %+v, want a command every 5 s", s)
		}
		h.Stop()
		pass(10 * time.Second)
		if s := r.Stats(); s.Connected || s.Err == nil {
			t.Errorf("got %+v", s)
		}
	})
}
