package twotier

import (
	"context"
	"testing"
	"testing/synctest"
	"time"
	"unsafe"

	"github.com/weir-dev/weir/pkg/limiter"
	"github.com/weir-dev/weir/pkg/store"
)

func TestSettleReplacesTheCost(t *testing.T) {
	for name, mode := range modes() {
		for what, tc := range map[string]struct{ actual, charged, left int64 }{
			"less was used":     {2, -3, 18},
			"nothing was used":  {0, -5, 20},
			"as much as is was": {5, 0, 15},
		} {
			t.Run(name+", "+what, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					s := newFakeStore()
					cfg := perSecond(20, 20)
					cfg.Mode = mode
					l := open(t, cfg, s)
					d := acquire(t, l, "", 5)
					if got := d.Settle(tc.actual); got != tc.charged {
						t.Errorf("charged %d more, want %d", got, tc.charged)
					}
					if got := d.Settle(0); got != 0 {
						t.Errorf("settled twice: charged %d more", got)
					}
					d.Cancel()
					synctest.Wait()
					if got := admitted(t, l, 40); got != tc.left {
						t.Errorf("admitted %d more, want %d", got, tc.left)
					}
				})
			})
		}
	}
}

// TestADecisionNamesTheTextThatIsKept, and no other: of a value that is a part of a longer text only
// the part is kept, and those that share a counter have none.
func TestADecisionNamesTheTextThatIsKept(t *testing.T) {
	const request = "GET /?user=ann"
	value := request[len(request)-3:]
	for name, mode := range modes() {
		for what, tc := range map[string]struct {
			tenant string
			keys   int
			cost   int64
			want   bool
		}{
			"admitted":         {"", 2, 1, true},
			"refused":          {"", 2, 21, false},
			"of a tenant":      {store.HashValue("gold"), 2, 1, false},
			"shares a counter": {"", 1, 1, false},
		} {
			t.Run(name+", "+what, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					cfg := perSecond(20, 20)
					cfg.Mode, cfg.MaxKeys, cfg.SharedKeys = mode, tc.keys, 1
					if tc.tenant != "" {
						cfg.Params.Fairness.Default = 1
					}
					l := open(t, cfg, newFakeStore())
					acquire(t, l, "bob", 1)
					d, err := l.Acquire(t.Context(), Request{Value: value, Tenant: tc.tenant, Cost: tc.cost})
					if err != nil {
						t.Fatal(err)
					}
					want := tc.want || tc.keys == 1 && mode != Leased // a key that holds nothing makes room
					kept, ok := d.Kept(value)
					if ok != want || ok && (kept != value || unsafe.StringData(kept) == unsafe.StringData(value)) {
						t.Errorf("%q is kept, %v, want %v", kept, ok, want)
					}
				})
			})
		}
	}
}

func TestUnitsBeyondTheCostArePaidFirst(t *testing.T) {
	for name, mode := range modes() {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newFakeStore()
				cfg := perSecond(20, 8)
				cfg.Mode = mode
				l := open(t, cfg, s)
				d := acquire(t, l, "", 5)
				charged := d.Settle(16)
				var used, paid int64 = 5, 0
				for range 40 {
					d := acquire(t, l, "", 1)
					paid += d.Paid
					if d.Allowed {
						used++
					}
				}
				if charged+paid != 11 {
					t.Errorf("charged %d at once and %d later, want the 11 in all", charged, paid)
				}
				if used+charged+paid != 20 {
					t.Errorf("%d admitted and %d charged on top, want the limit in all", used, charged+paid)
				}
			})
		})
	}
}

func TestADebtOutlivesItsWindow(t *testing.T) {
	for name, mode := range modes() {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newFakeStore()
				cfg := perSecond(20, 20)
				cfg.Mode = mode
				l := open(t, cfg, s)
				d := acquire(t, l, "", 20)
				if got := d.Settle(27); got != 0 {
					t.Errorf("charged %d more of a limit that is used up", got)
				}
				nextWindow()
				first := acquire(t, l, "", 1)
				if !first.Allowed || first.Paid != 7 || first.Windows.Open[0].Index != window(s) {
					t.Errorf("got %+v, want 7 paid in window %d", first, window(s))
				}
				if got := admitted(t, l, 40); got != 12 {
					t.Errorf("admitted %d more, want 12 after 7 were paid and 1 was admitted", got)
				}
			})
		})
	}
}

// TestPaidUnitsAreReportedInTheirWindow: the request for which a lease was asked has gone
// away when the debt is paid, and the next one comes in another window.
func TestPaidUnitsAreReportedInTheirWindow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newFakeStore()
		l := open(t, perSecond(20, 10), s)
		d := acquire(t, l, "", 10)
		d.Settle(15)
		s.set(func() { s.back = constant(50 * time.Millisecond) })
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
		defer cancel()
		if _, err := l.Acquire(ctx, Request{Cost: 1}); err == nil {
			t.Fatal("the request waited")
		}
		nextWindow()
		time.Sleep(100 * time.Millisecond) // the refusal counts from when it was received
		if d := acquire(t, l, "", 1); !d.Allowed || d.Paid != 0 {
			t.Errorf("got %+v, want nothing of what the window before has paid", d)
		}
	})
}

func TestADebtIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newFakeStore()
		l := open(t, perSecond(20, 20), s)
		d := acquire(t, l, "", 20)
		d.Settle(1_000_000)
		nextWindow()
		if got := admitted(t, l, 40); got != 0 {
			t.Errorf("admitted %d in the window that pays the debt, want none", got)
		}
		nextWindow()
		if got := admitted(t, l, 40); got != 20 {
			t.Errorf("admitted %d in the window after, want 20: no more than the limit is owed", got)
		}
	})
}

func TestResetOpensTheLimitAgain(t *testing.T) {
	for name, mode := range modes() {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newFakeStore()
				cfg := perSecond(20, 5)
				cfg.Mode = mode
				l := open(t, cfg, s)
				admitted(t, l, 40)
				if err := l.Reset(t.Context(), Request{}); err != nil {
					t.Fatal(err)
				}
				if got := admitted(t, l, 40); got != 20 {
					t.Errorf("admitted %d after the reset, want 20", got)
				}
				if got := s.count(limiter.Reset); got != 1 {
					t.Errorf("%d resets at the store", got)
				}
			})
		})
	}
}
