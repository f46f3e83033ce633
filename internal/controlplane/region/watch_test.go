package region

import (
	"cmp"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weir-dev/weir/internal/controlplane/budget"
	"github.com/weir-dev/weir/internal/controlplane/hub"
	"github.com/weir-dev/weir/pkg/federation/ledger"
	"github.com/weir-dev/weir/pkg/limiter"
	"github.com/weir-dev/weir/pkg/policy"
	"github.com/weir-dev/weir/pkg/store"
)

// window returns the number of the second that is open.
func window() int64 { return int64(wall()) / int64(limiter.Second) }

// count has the audit say that much of a window.
func (w *world) count(u ledger.Usage) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.counted[u.Index] = u
}

// reported returns what was reported to the ledger of a window.
func (w *world) reported(id string, index int64) (ledger.MemberUsage, bool) {
	w.t.Helper()
	s, err := w.local.Coordinator.Observe(w.t.Context(), id)
	if err != nil {
		w.t.Fatal(err)
	}
	for _, c := range s.Closed {
		for _, u := range c.Usage {
			if c.Index == index && u.Member == "a" {
				return u, true
			}
		}
	}
	return ledger.MemberUsage{}, false
}

func TestWhatWasCountedIsReportedOnceAndUntilItArrived(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := own("acme/checkout", 100)
		w := start(t, b)
		defer w.end()
		spend := func(seconds int) { // so that windows pass
			for range seconds {
				w.takes(b, 1)
				time.Sleep(time.Second)
			}
		}
		first := window()
		w.count(ledger.Usage{Index: first, Admitted: 40, Refused: 2})
		spend(3)
		if u, _ := w.reported(b.ID, first); u.Admitted != 40 || u.Refused != 2 || u.Complete {
			t.Errorf("reported %+v, want what is known so far", u)
		}
		w.count(ledger.Usage{Index: first, Admitted: 41, Refused: 2, Complete: true})
		spend(2)
		if u, _ := w.reported(b.ID, first); u.Admitted != 41 || !u.Complete {
			t.Errorf("reported %+v, want all of it", u)
		}
		w.count(ledger.Usage{Index: first, Admitted: 7})
		spend(2)
		if u, _ := w.reported(b.ID, first); u.Admitted != 41 || !u.Complete {
			t.Errorf("reported %+v, want what was complete to stay", u)
		}
		if n := len(w.local.sent(ledger.Report)); n != 2 {
			t.Errorf("%d reports were sent, want one for each change", n)
		}

		late := window() - 1
		w.local.lose(ledger.Report)
		w.count(ledger.Usage{Index: late, Admitted: 1, Complete: true})
		spend(2)
		w.local.lose(0)
		spend(2)
		if u, _ := w.reported(b.ID, late); !u.Complete {
			t.Errorf("reported %+v, want what was lost to be sent again", u)
		}
		if f := w.set.Observe("shop", "budget").Figures; f.LeasesPerSecond <= 0 || f.UnitsPerLease <= 0 || f.Window == nil {
			t.Errorf("figures %+v, want leases and a window that was measured", f)
		}
	})
}

// TestAWindowIsAskedForByWhenItEnded: between two looks at the ledger, however often it is
// asked for.
func TestAWindowIsAskedForByWhenItEnded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := own("acme/checkout", 100)
		w := start(t, b)
		defer w.end()
		for range 6 {
			w.takes(b, 1)
			time.Sleep(time.Second)
		}
		w.mu.Lock()
		defer w.mu.Unlock()
		spans := map[int64]span{}
		for _, a := range w.looked {
			ended, s := time.UnixMicro(int64(a.open.End())), span{a.before, a.after}
			if a.id != b.ID || a.open.Limit != 100 || a.open.Window != limiter.Second {
				t.Errorf("it is asked of %s for %+v", a.id, a.open)
			}
			if before, again := spans[a.open.Index]; again && before != s {
				t.Errorf("window %d ended in %v, and later in %v", a.open.Index, before, s)
			}
			spans[a.open.Index] = s
			if len(spans) > 1 && (s.before.IsZero() || s.before.After(ended) || s.after.Before(ended) || s.after.Sub(s.before) > 2*time.Second) {
				t.Errorf("window %d, which ended at %v, is asked for as one that ended in %v", a.open.Index, ended, s)
			}
		}
		if len(spans) < 3 {
			t.Errorf("%d windows were asked for", len(spans))
		}
	})
}

func TestWhatIsWrongWithACoordinatorIsReported(t *testing.T) {
	for name, tc := range map[string]struct {
		err    error
		own    bool
		want   budget.Problem
		detail string // when it is not the error
	}{
		"cut off":             {err: errCut, want: budget.Partitioned},
		"its journal is away": {err: errCut, own: true, want: budget.NoRoot},
		"a server that says more": {
			err:  &store.UnavailableError{Store: "redis at redis:1", Cause: &store.Failure{Why: "it loads", Cause: errors.New("TOPSECRET")}},
			want: budget.Partitioned, detail: "redis at redis:1: it loads",
		},
		"a server that says anything": {
			err: errors.New("TOPSECRET"), want: budget.Partitioned, detail: store.Plain(errors.New("")).Error(),
		},
		"a hub that says more": {
			err:  &hub.RefusedError{Endpoint: "hub:1", Reason: hub.UnknownMember, Message: "list it", Cause: errors.New("TOPSECRET")},
			want: budget.UnknownMember, detail: "hub hub:1: UnknownMember: list it",
		},
		"refused credentials":    {err: &hub.RefusedError{Reason: hub.Unauthorized}, want: budget.Unauthorized},
		"somebody else answers":  {err: &hub.RefusedError{Reason: hub.Untrusted}, want: budget.Unauthorized},
		"an expired certificate": {err: &hub.RefusedError{Reason: hub.CertificateExpired}, want: budget.CertificateExpired},
		"no such budget":         {err: &hub.RefusedError{Reason: hub.UnknownBudget}, want: budget.UnknownBudget},
		"no such member":         {err: &hub.RefusedError{Reason: hub.UnknownMember}, want: budget.UnknownMember},
		"another length":         {err: &hub.RefusedError{Reason: hub.Mismatched}, want: budget.Mismatched},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := own("acme/checkout", 100)
				if !tc.own {
					b = at(b, "hub:1")
				}
				w := start(t, b)
				defer w.end()
				to := w.local
				if !tc.own {
					to = w.root("hub:1")
				}
				w.takes(b, 1)
				time.Sleep(3 * time.Second)
				if got := w.set.Observe("shop", "budget").Link; got.Problem != "" {
					t.Fatalf("while it answers: %+v", got)
				}
				before := w.changes()
				began := time.Now()
				to.fail(tc.err)
				time.Sleep(8 * time.Second)
				got := w.set.Observe("shop", "budget")
				if got.Link.Problem != tc.want || got.Link.Detail != cmp.Or(tc.detail, tc.err.Error()) || got.Link.Since.Before(began) {
					t.Errorf("got %+v, want %s since the failure", got.Link, tc.want)
				}
				if w.changes() == before {
					t.Error("changed was not called")
				}
				to.fail(nil)
				time.Sleep(8 * time.Second)
				if got := w.set.Observe("shop", "budget").Link; got.Problem != "" || got.Detail != "" {
					t.Errorf("afterwards: %+v", got)
				}
			})
		})
	}
}

func TestAMemberThatTheLedgerDoesNotListIsRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := at(own("acme/checkout", 100), "hub:1")
		w := start(t, b)
		defer w.end()
		w.root("hub:1").lists("b")
		_ = second(w.apply("shop", b, one))
		time.Sleep(3 * time.Second)
		if got := w.set.Observe("shop", "budget").Link; got.Problem != budget.UnknownMember || got.Detail != answers[ledger.Unknown].detail {
			t.Errorf("got %+v, want UnknownMember with its reason", got)
		}
	})
}

func TestWhatIsKnownOfABudget(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := own("acme/checkout", 100)
		w := start(t, b)
		defer w.end()
		if got := w.set.Observe("shop", "none"); got.Generation != 0 {
			t.Errorf("of what is not there: %+v", got)
		}
		w.takes(b, 1)
		time.Sleep(1500 * time.Millisecond)
		got := w.set.Observe("shop", "budget")
		if got.Generation != 1 || got.Root.Member != "a" || got.Root.Term != 1 || got.Root.Since.IsZero() || got.Ledger == nil {
			t.Errorf("got %+v", got)
		}
		if off := wall().Sub(got.Read); off < 0 || off > 2*limiter.Second {
			t.Errorf("the ledger was read %dµs ago", off)
		}
	})
}

func TestMissingCredentialsAreAProblemOfTheirs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := start(t)
		defer w.end()
		w.secret("shop/hub", "")
		w.has(at(own("acme/checkout", 100), "hub:1"))
		time.Sleep(3 * time.Second)
		if got := w.set.Observe("shop", "budget").Link.Problem; got != budget.Unauthorized {
			t.Errorf("problem %q, want Unauthorized", got)
		}
	})
}

func TestHowOftenTheLedgerIsLookedAt(t *testing.T) {
	for window, want := range map[limiter.Micros]time.Duration{
		limiter.MinWindow: lookOften, 4 * limiter.Second: 2 * time.Second, limiter.Day: lookSeldom,
	} {
		if got := pace(window); got != want {
			t.Errorf("windows of %dµs: every %v, want %v", window, got, want)
		}
	}
}

// TestWordsOfAPolicy holds the engine's configuration to the policy's.
func TestWordsOfAPolicy(t *testing.T) {
	for _, action := range []policy.BudgetOutage{policy.BudgetFailClosed, policy.BudgetRegionalOnly, policy.BudgetNominal} {
		b := own("acme/checkout", 100)
		b.OnCoordinatorOutage = action
		b.Params.Slices = action == policy.BudgetNominal
		if err := engineConfig(&b).Validate(); err != nil {
			t.Errorf("%s: %v", action, err)
		}
		if _, known := outages[action]; !known {
			t.Errorf("%s is not known", action)
		}
	}
}
