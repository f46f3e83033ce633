package federation_test

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weir-dev/weir/internal/testing/federationtest"
	"github.com/weir-dev/weir/pkg/federation"
	"github.com/weir-dev/weir/pkg/limiter"
)

// TestSlicesKeepServing cuts a region off for ten windows.
func TestSlicesKeepServing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := federationtest.NewHub(0)
		p := nominal(budget(90, limiter.Second, 3))
		cfg := config(p, 0)
		cfg.Outage = federation.Nominal
		l := federationtest.NewLine(h, 5*time.Millisecond)
		r := open(t, cfg, l, nil)
		nextWindow(h, p)
		nextWindow(h, p)
		takes(t, r, p, 10, 10)
		if s := r.Stats(); s.Slice != 30 {
			t.Fatalf("got %+v", s)
		}
		l.SetCut(true)
		nextWindow(h, p)
		for range 10 {
			nextWindow(h, p)
			pass(100 * time.Millisecond)
			var got int64
			for {
				res := take(t, r, p, 1, 7)
				if res.Granted == 0 {
					break
				}
				if !res.Windows.Open[0].Contains(h.Now()) || !res.Windows.Open[0].Contains(res.Now) {
					t.Errorf("got %+v at %d", res, h.Now())
				}
				got += res.Granted
			}
			if got != 30 {
				t.Errorf("got %d, want the slice", got)
			}
		}
		l.SetCut(false)
		pass(8 * time.Second)
		nextWindow(h, p)
		takes(t, r, p, 10, 10)
		if s := r.Stats(); !s.Connected {
			t.Errorf("got %+v", s)
		}
	})
}

// TestSlicesAreNotUsedOfWindowsThatBeganBefore starts a region in the middle of a window,
// whose slice a process before it may have used.
func TestSlicesAreNotUsedOfWindowsThatBeganBefore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := federationtest.NewHub(0)
		p := nominal(budget(90, 10*limiter.Second, 3))
		cfg := config(p, 0)
		cfg.Outage = federation.Nominal
		first := open(t, cfg, federationtest.NewLine(h, time.Millisecond), nil)
		nextWindow(h, p)
		nextWindow(h, p)
		pass(10 * time.Millisecond)
		if res := take(t, first, p, 30, 30); res.Granted != 30 {
			t.Errorf("got %+v", res)
		}
		pass(time.Second)
		cfg = config(p, 0)
		cfg.Outage = federation.Nominal
		second := open(t, cfg, federationtest.NewLine(h, time.Millisecond), nil)
		var got int64
		for range 40 {
			got += take(t, second, p, 1, 1).Granted
		}
		if got > 0 {
			t.Errorf("got %d of a window that is used up", got)
		}
		nextWindow(h, p)
		pass(10 * time.Millisecond)
		if res := take(t, second, p, 20, 20); res.Granted != 20 {
			t.Errorf("got %+v", res)
		}
	})
}

// TestNominalRegionsStayWithinTheLimit cuts three regions off at random, and takes all
// that they give.
func TestNominalRegionsStayWithinTheLimit(t *testing.T) {
	for seed := range uint64(20) {
		t.Run(fmt.Sprintf("seed %d", seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				rng := rand.New(rand.NewPCG(seed, 3))
				h := federationtest.NewHub(time.Duration(rng.Int64N(int64(time.Hour))))
				p := nominal(budget(99, limiter.Second, 3))
				n := newCount(h, p)
				var lines []*federationtest.Line
				var work sync.WaitGroup
				until := time.Now().Add(20 * time.Second)
				for i := range p.Members {
					p.Members[i].Kept = rng.Int64N(p.Members[i].Nominal + 1)
				}
				for i := range p.Members {
					cfg := config(p, i)
					cfg.Outage, cfg.Timeout = federation.Nominal, 200*time.Millisecond
					l := federationtest.NewLine(h, time.Duration(rng.IntN(10))*time.Millisecond)
					lines = append(lines, l)
					r := open(t, cfg, l, nil)
					work.Go(func() {
						for time.Now().Before(until) {
							n.add(take(t, r, p, 1, 5).Granted)
							time.Sleep(10 * time.Millisecond)
						}
					})
				}
				for time.Now().Before(until) {
					time.Sleep(300 * time.Millisecond)
					l := lines[rng.IntN(3)]
					l.SetCut(rng.IntN(2) == 0)
				}
				work.Wait()
				if total := n.check(t, p.Limit); total < 20*99/3 {
					t.Errorf("admitted %d: the test tests little", total)
				}
			})
		})
	}
}
