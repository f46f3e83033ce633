package federation_test

import (
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weir-dev/weir/internal/testing/federationtest"
	"github.com/weir-dev/weir/pkg/federation"
	escrowmemory "github.com/weir-dev/weir/pkg/federation/escrow/memory"
	"github.com/weir-dev/weir/pkg/federation/ledger"
	"github.com/weir-dev/weir/pkg/limiter"
)

// accounts returns what each holder was granted of the open window.
func accounts(t *testing.T, h *federationtest.Hub) []ledger.Account {
	t.Helper()
	s, err := h.Totals().Observe(t.Context(), "acme/checkout")
	if err != nil {
		t.Fatal(err)
	}
	return s.Accounts
}

// holders returns how many accounts there are in the open window.
func holders(t *testing.T, h *federationtest.Hub) int {
	t.Helper()
	return len(accounts(t, h))
}

func TestProcessesShareOneEscrow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := federationtest.NewHub(0)
		p := budget(300, limiter.Second, 1)
		d := newDesk()
		n := newCount(h, p)
		var work sync.WaitGroup
		until := time.Now().Add(10 * time.Second)
		for i := range 4 {
			r := open(t, config(p, 0), federationtest.NewLine(h, time.Duration(i)*time.Millisecond), d)
			work.Go(func() {
				for time.Now().Before(until) {
					n.add(take(t, r, p, 1, 3).Granted)
					time.Sleep(7 * time.Millisecond)
				}
			})
		}
		time.Sleep(5500 * time.Millisecond)
		if got := holders(t, h); got != 1 {
			t.Errorf("%d holders", got)
		}
		work.Wait()
		if total := n.check(t, p.Limit); total < 9*300*98/100 {
			t.Errorf("admitted %d, of 3000", total)
		}
	})
}

func TestWithoutItsEscrowARegionLeasesForItself(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := federationtest.NewHub(0)
		p := budget(100, 10*limiter.Second, 1)
		d := newDesk()
		cfg := config(p, 0)
		cfg.Batch = federation.Batch{Fixed: true, Size: 10}
		r := open(t, cfg, federationtest.NewLine(h, time.Millisecond), d)
		nextWindow(h, p)
		takes(t, r, p, 3, 3)
		d.set(func() { d.away = true })
		takes(t, r, p, 4, 4)
		if got := holders(t, h); got != 2 {
			t.Errorf("%d holders", got)
		}
		if s := r.Stats(); s.EscrowErr == nil || !s.Connected {
			t.Errorf("got %+v", s)
		}
		d.set(func() { d.away = false })
		pass(3 * time.Second)
		if s := r.Stats(); s.EscrowErr != nil {
			t.Errorf("got %+v", s)
		}
		var got int64 = 7
		for range 100 {
			got += take(t, r, p, 1, 1).Granted
		}
		if got < 99 || got > 100 {
			t.Errorf("got %d of the limit of 100; %+v", got, r.Stats())
		}
	})
}

// TestASlowEscrowCostsNoMoreThanPatience has an escrow answer, but later than holders wait.
func TestASlowEscrowCostsNoMoreThanPatience(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := federationtest.NewHub(0)
		p := budget(1000, 10*limiter.Second, 1)
		d := newDesk()
		cfg := config(p, 0)
		cfg.Patience = 50 * time.Millisecond
		r := open(t, cfg, federationtest.NewLine(h, time.Millisecond), d)
		nextWindow(h, p)
		takes(t, r, p, 3, 3)
		d.set(func() { d.slow = 300 * time.Millisecond })
		var got int64
		for range 20 {
			began := time.Now()
			got += take(t, r, p, 1, 1).Granted
			if waited := time.Since(began); waited > cfg.Patience {
				t.Errorf("a request waited for %v", waited)
			}
			time.Sleep(20 * time.Millisecond)
		}
		if got < 10 {
			t.Errorf("got %d of 20: the region leases for itself too seldom", got)
		}
	})
}

// TestUnitsOfWindowsOfAnotherLengthAreNotHandedOn edits the budget while the escrow is
// asked: the numbers of the windows it knows are not those of the new ones.
func TestUnitsOfWindowsOfAnotherLengthAreNotHandedOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := federationtest.NewHub(0)
		p := budget(1000, 10*limiter.Second, 1)
		d := newDesk()
		r := open(t, config(p, 0), federationtest.NewLine(h, time.Millisecond), d)
		nextWindow(h, p)
		takes(t, r, p, 3, 3)
		d.set(func() { d.slow = 20 * time.Millisecond })
		edited := p
		edited.Window = 60 * limiter.Second
		time.AfterFunc(10*time.Millisecond, func() { r.Reconfigure(config(edited, 0)) })
		if res := take(t, r, p, 1, 1); res.Granted > 0 {
			t.Errorf("got %+v", res)
		}
		d.set(func() { d.slow = 0 })
		nextWindow(h, edited)
		takes(t, r, edited, 3, 3)
		if got := r.Stats().Demand; got > 100 {
			t.Errorf("%d units of a window are expected to be wanted, and only 3 were", got)
		}
	})
}

// TestAnEscrowThatLostItsMemoryHasAnotherName flushes the escrow of a window whose every
// unit was handed on: sent its total again, it would hand them on a second time. Units
// leased ahead of need are forfeited with it, however far the lease has come.
func TestAnEscrowThatLostItsMemoryHasAnotherName(t *testing.T) {
	const taken, each = 60, time.Millisecond
	for name, after := range map[string]time.Duration{
		"at any stage of a lease":      0, // it depends on which goroutine runs first
		"a lease is on its way":        each / 2,
		"the answer is on its way":     each * 3 / 2,
		"the lease is in the escrow":   each * 5 / 2,
		"nothing is asked for by then": time.Second,
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := federationtest.NewHub(0)
				p := budget(100, 10*limiter.Second, 1)
				d := newDesk()
				cfg := config(p, 0)
				cfg.Batch = federation.Batch{Fixed: true, Size: 10}
				r := open(t, cfg, federationtest.NewLine(h, each), d)
				nextWindow(h, p)
				n := newCount(h, p)
				n.add(take(t, r, p, taken, taken).Granted)
				lost := accounts(t, h)[0].Holder
				time.Sleep(after)
				d.set(func() { d.to = escrowmemory.New(escrowmemory.Options{}) })
				for range 100 {
					n.add(take(t, r, p, 1, 1).Granted)
				}
				all := accounts(t, h)
				i := slices.IndexFunc(all, func(a ledger.Account) bool { return a.Holder == lost })
				if len(all) != 2 || i < 0 {
					t.Fatalf("the accounts are %+v, want that of the lost memory and another", all)
				}
				ahead := all[i].Granted - taken
				if total := n.check(t, p.Limit); total != p.Limit-ahead || ahead < 0 || ahead > 2*cfg.Batch.Size {
					t.Errorf("admitted %d of %d, %d of them leased ahead and lost", total, p.Limit, ahead)
				}
			})
		})
	}
}

// TestTheSpareEscrowDoesNotGiveUpTheSlice looks what is said of it in its place.
func TestTheSpareEscrowDoesNotGiveUpTheSlice(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := federationtest.NewHub(0)
		p := nominal(budget(90, limiter.Second, 3))
		cfg := config(p, 0)
		cfg.Outage = federation.Nominal
		d, l := newDesk(), federationtest.NewLine(h, time.Millisecond)
		r := open(t, cfg, l, d)
		nextWindow(h, p)
		takes(t, r, p, 1, 1)
		d.set(func() { d.away = true })
		l.Set(func() { l.Commands = nil })
		pass(time.Second)
		take(t, r, p, 1, 1)
		l.Set(func() {
			if len(l.Commands) == 0 {
				t.Error("nothing was asked for")
			}
			for _, c := range l.Commands {
				if c.Slice != 30 {
					t.Errorf("the slice of 30 is said to be %d: %+v", c.Slice, c)
				}
			}
		})
	})
}
