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

func TestResultsNameTheCoordinatorsWindow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := federationtest.NewHub(17 * time.Minute)
		p := budget(100, limiter.Second, 2)
		r := open(t, config(p, 0), federationtest.NewLine(h, 10*time.Millisecond), nil)
		for range 5 {
			nextWindow(h, p)
			for range 9 {
				res := take(t, r, p, 1, 3)
				now := h.Now()
				w := res.Windows.Open[0]
				switch {
				case res.Granted < 1 || res.Windows.N != 1 || w.Rate != (limiter.Rate{Limit: 100, Window: limiter.Second}):
					t.Errorf("got %+v", res)
				case !w.Contains(now) || !w.Contains(res.Now) || now.Add(res.ExpiresIn) > w.End() || res.Now.Add(res.ExpiresIn) > w.End():
					t.Errorf("at %d: got %+v", now, res)
				case res.Algorithm != limiter.FixedWindow || res.Limit != 100 || res.ResetAfter <= 0:
					t.Errorf("got %+v", res)
				}
				time.Sleep(100 * time.Millisecond)
			}
		}
	})
}

// TestWaitingRequestsShareACommand has a hundred requests wait for a coordinator that is far
// away.
func TestWaitingRequestsShareACommand(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := federationtest.NewHub(0)
		p := budget(1000, 10*limiter.Second, 1)
		l := federationtest.NewLine(h, 50*time.Millisecond)
		r := open(t, config(p, 0), l, nil)
		pass(time.Second)
		nextWindow(h, p)
		before := r.Stats().Commands
		var work sync.WaitGroup
		for range 100 {
			work.Go(func() { takes(t, r, p, 2, 2) })
		}
		work.Wait()
		if n := r.Stats().Commands - before; n > 3 {
			t.Errorf("%d commands", n)
		}
		l.Set(func() {
			for i := 1; i < len(l.Sent); i++ {
				if l.Sent[i].Sub(l.Sent[i-1]) < 100*time.Millisecond {
					t.Errorf("command %d was sent before the one before it was answered", i)
				}
			}
		})
	})
}

func TestReturnsServeTheNextRequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := federationtest.NewHub(0)
		p := budget(10, 10*limiter.Second, 1)
		r := open(t, config(p, 0), federationtest.NewLine(h, time.Millisecond), nil)
		nextWindow(h, p)
		res := take(t, r, p, 10, 10)
		refused(t, r, p)
		back := func(windows limiter.Windows, units int64) limiter.Result {
			res, err := r.Apply(t.Context(), key, limitOf(p), limiter.Command{Op: limiter.Return, Want: units, Windows: windows})
			if err != nil {
				t.Fatal(err)
			}
			return res
		}
		other := res.Windows
		other.Open[0].Index--
		if got := back(other, 4); got.Granted != 0 || got.Reason != limiter.Forfeited {
			t.Errorf("got %+v", got)
		}
		if got := back(res.Windows, 4); got.Granted != 4 || got.Reason != limiter.Granted {
			t.Errorf("got %+v", got)
		}
		takes(t, r, p, 9, 4)
		pass(9500 * time.Millisecond)
		if got := back(res.Windows, 2); got.Granted != 2 {
			t.Errorf("got %+v", got)
		}
		nextWindow(h, p)
		if got := back(res.Windows, 4); got.Granted != 0 {
			t.Errorf("got %+v", got)
		}
		if s := r.Stats(); s.Taken != 8 {
			t.Errorf("got %+v", s)
		}
	})
}

func TestPeekTakesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := federationtest.NewHub(0)
		p := budget(100, 10*limiter.Second, 1)
		r := open(t, config(p, 0), federationtest.NewLine(h, time.Millisecond), nil)
		nextWindow(h, p)
		takes(t, r, p, 1, 1)
		pass(time.Second)
		for range 3 {
			res, err := r.Apply(t.Context(), key, limitOf(p), limiter.Command{Op: limiter.Peek, Min: 1, Want: 7})
			if err != nil || res.Granted != 7 || res.Remaining != 99 {
				t.Errorf("got %+v, %v", res, err)
			}
		}
		if s := r.Stats(); s.Taken != 1 {
			t.Errorf("got %+v", s)
		}
	})
}

func TestACommandThatDoesNotFitABudgetIsAnError(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := federationtest.NewHub(0)
		p := budget(100, limiter.Second, 1)
		r := open(t, config(p, 0), federationtest.NewLine(h, time.Millisecond), nil)
		bucket := limitOf(p)
		bucket.Algorithm = limiter.TokenBucket
		one := limiter.Command{Op: limiter.Take, Min: 1, Want: 1}
		for name, c := range map[string]struct {
			params  limiter.Params
			command limiter.Command
			says    string
		}{
			"another algorithm": {bucket, one, "algorithm"},
			"no rate":           {limiter.Params{Algorithm: limiter.FixedWindow}, one, "rates"},
			"nothing wanted":    {limitOf(p), limiter.Command{Op: limiter.Take}, "want"},
			"a reset":           {limitOf(p), limiter.Command{Op: limiter.Reset}, "Reset"},
		} {
			_, err := r.Apply(t.Context(), key, c.params, c.command)
			var away *store.UnavailableError
			if err == nil || errors.As(err, &away) || !strings.Contains(err.Error(), c.says) {
				t.Errorf("%s: got %v", name, err)
			}
		}
		res := take(t, r, p, 101, 101)
		if res.Reason != limiter.TooLarge {
			t.Errorf("got %+v", res)
		}
	})
}

func TestAClosedRegionReturnsUntakenUnits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := federationtest.NewHub(0)
		p := budget(100, 10*limiter.Second, 1)
		cfg := config(p, 0)
		cfg.Batch = federation.Batch{Fixed: true, Size: 40}
		r := federation.New(cfg, federationtest.NewLine(h, time.Millisecond), nil)
		nextWindow(h, p)
		takes(t, r, p, 5, 5)
		pass(time.Second)
		granted := func() int64 {
			s, err := h.Totals().Observe(t.Context(), cfg.ID)
			if err != nil {
				t.Fatal(err)
			}
			return s.GrantedTo(p, cfg.Member)
		}
		if granted() <= 5 {
			t.Fatalf("%d were granted: nothing was leased ahead", granted())
		}
		r.Close(t.Context())
		if granted() != 5 {
			t.Errorf("%d are still granted, 5 of them taken", granted())
		}
		_, err := r.Apply(t.Context(), key, limitOf(p), limiter.Command{Op: limiter.Take, Min: 1, Want: 1})
		if !errors.Is(err, federation.ErrClosed) {
			t.Errorf("got %v", err)
		}
	})
}

func TestARequestThatGivesUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := federationtest.NewHub(0)
		p := budget(100, limiter.Second, 1)
		l := federationtest.NewLine(h, time.Millisecond)
		cfg := config(p, 0)
		cfg.Timeout, cfg.Patience = 10*time.Second, 80*time.Millisecond
		r := open(t, cfg, l, nil)
		pass(100 * time.Millisecond)
		l.SetCut(true)
		began := time.Now()
		refused(t, r, p)
		if waited := time.Since(began); waited != cfg.Patience {
			t.Errorf("it waited for %v", waited)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
		defer cancel()
		_, err := r.Apply(ctx, key, limitOf(p), limiter.Command{Op: limiter.Take, Min: 1, Want: 1})
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v", err)
		}
		l.SetCut(false)
	})
}

// TestIdleUnitsAreGivenBack has one region lease much, and then want nothing any more.
func TestIdleUnitsAreGivenBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := federationtest.NewHub(0)
		p := budget(100, 10*limiter.Second, 2)
		a := open(t, config(p, 0), federationtest.NewLine(h, time.Millisecond), nil)
		b := open(t, config(p, 1), federationtest.NewLine(h, time.Millisecond), nil)
		for range 3 {
			nextWindow(h, p)
			for range 40 {
				takes(t, a, p, 1, 1)
				time.Sleep(100 * time.Millisecond)
			}
		}
		nextWindow(h, p)
		takes(t, a, p, 3, 3)
		pass(9900 * time.Millisecond)
		var got int64
		for range 97 {
			got += take(t, b, p, 1, 1).Granted
		}
		if got < 95 {
			t.Errorf("the other region got %d, of 97 that are not used; %+v", got, a.Stats())
		}
	})
}

func TestReportsReachTheCoordinator(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := federationtest.NewHub(0)
		p := budget(100, limiter.Second, 1)
		l := federationtest.NewLine(h, time.Millisecond)
		r := open(t, config(p, 0), l, nil)
		nextWindow(h, p)
		index := take(t, r, p, 1, 3).Windows.Open[0].Index
		nextWindow(h, p)
		takes(t, r, p, 1, 1)
		if err := r.Report(t.Context(), []ledger.Usage{{Index: index, Admitted: 3, Refused: 2, Complete: true}}); err != nil {
			t.Fatal(err)
		}
		s, _ := h.Totals().Observe(t.Context(), "acme/checkout")
		if len(s.Closed) == 0 || s.Closed[0].Index != index || s.Closed[0].Usage[0].Admitted != 3 || !s.Closed[0].Usage[0].Complete {
			t.Errorf("got %+v", s.Closed)
		}
		h.Stop()
		if err := r.Report(t.Context(), nil); err == nil {
			t.Error("no error of a coordinator that is away")
		}
	})
}

func TestReconfigure(t *testing.T) {
	for name, shared := range map[string]bool{"own escrow": false, "shared escrow": true} {
		t.Run(name, func(t *testing.T) { reconfigure(t, shared) })
	}
}

func reconfigure(t *testing.T, shared bool) {
	synctest.Test(t, func(t *testing.T) {
		h := federationtest.NewHub(0)
		p := budget(100, limiter.Second, 1)
		cfg := config(p, 0)
		var e federation.Escrow
		if shared {
			e = newDesk()
		}
		r := open(t, cfg, federationtest.NewLine(h, time.Millisecond), e)
		nextWindow(h, p)
		takes(t, r, p, 40, 40)
		cfg.Params.Limit = 50
		r.Reconfigure(cfg)
		var got int64
		for range 20 {
			got += take(t, r, cfg.Params, 1, 1).Granted
		}
		if got > 10+60 {
			t.Errorf("got %d more", got)
		}
		nextWindow(h, p)
		if res := take(t, r, cfg.Params, 50, 50); res.Granted != 50 || res.Limit != 50 {
			t.Errorf("got %+v", res)
		}
		refused(t, r, cfg.Params)

		cfg.Params.Window = 10 * limiter.Second
		r.Reconfigure(cfg)
		nextWindow(h, cfg.Params)
		pass(time.Second)
		res := take(t, r, cfg.Params, 50, 50)
		if w := res.Windows.Open[0]; res.Granted != 50 || w.Window != 10*limiter.Second || !w.Contains(h.Now()) {
			t.Errorf("got %+v at %d; %+v", res, h.Now(), r.Stats())
		}
		refused(t, r, cfg.Params)
	})
}

// TestAnAnswerOfWindowsOfAnotherLength arrives after Reconfigure.
func TestAnAnswerOfWindowsOfAnotherLength(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := federationtest.NewHub(0)
		p := budget(100, limiter.Second, 1)
		cfg := config(p, 0)
		l := federationtest.NewLine(h, 20*time.Millisecond)
		r := open(t, cfg, l, nil)
		nextWindow(h, p)
		go func() {
			_, _ = r.Apply(t.Context(), key, limitOf(p), limiter.Command{Op: limiter.Take, Min: 1, Want: 1})
		}()
		pass(30 * time.Millisecond)
		cfg.Params.Window = 10 * limiter.Second
		r.Reconfigure(cfg)
		pass(2 * time.Second)
		nextWindow(h, cfg.Params)
		pass(time.Second)
		if res := take(t, r, cfg.Params, 50, 50); res.Granted != 50 {
			t.Errorf("got %+v; %+v", res, r.Stats())
		}
	})
}

func TestABadConfigurationIsNamed(t *testing.T) {
	p := budget(100, limiter.Second, 2)
	for name, c := range map[string]struct {
		change func(*federation.Config)
		says   string
	}{
		"no id":           {func(c *federation.Config) { c.ID = "" }, "id is empty"},
		"no member":       {func(c *federation.Config) { c.Member = "elsewhere" }, `member is "elsewhere"`},
		"an outage":       {func(c *federation.Config) { c.Outage = 9 }, "outage is 9"},
		"no slices":       {func(c *federation.Config) { c.Outage = federation.Nominal }, "params.slices"},
		"a batch below 0": {func(c *federation.Config) { c.Batch.Size = -1 }, "batch.size is -1"},
		"a timeout":       {func(c *federation.Config) { c.Timeout = -1 }, "timeout is -1ns"},
		"patience":        {func(c *federation.Config) { c.Patience = -1 }, "patience is -1ns"},
		"a probe":         {func(c *federation.Config) { c.Probe = -1 }, "probe is -1ns"},
		"a limit":         {func(c *federation.Config) { c.Params.Limit = 0 }, "params: limit is 0"},
	} {
		t.Run(name, func(t *testing.T) {
			cfg := config(p, 0)
			c.change(&cfg)
			if err := cfg.Validate(); err == nil || !strings.Contains(err.Error(), c.says) {
				t.Errorf("got %v, want %q in it", err, c.says)
			}
		})
	}
	if err := config(p, 0).Validate(); err != nil {
		t.Error(err)
	}
}
