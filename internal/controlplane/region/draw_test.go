package region

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/weir-dev/weir/pkg/federation/ledger"
	"github.com/weir-dev/weir/pkg/limiter"
	"github.com/weir-dev/weir/pkg/policy"
	"github.com/weir-dev/weir/pkg/store"
)

// withRate returns b with another rate, as the cluster takes part in both.
func withRate(b policy.FederatedBudget, limit int64, window limiter.Micros) []policy.FederatedBudget {
	further := b.Params
	further.Limit, further.Window = limit, window
	b.Params.Others, b.Additional = []limiter.Micros{window}, []ledger.Params{further}
	return b.Rates()
}

// draws sends a command of a limit with the rates of the budgets.
func (w *world) draws(of []policy.FederatedBudget, hash string, c limiter.Command) (limiter.Result, error) {
	key := store.Key{Scope: store.Scope{Cluster: "cluster-a", Namespace: "shop", Policy: "checkout", Limit: "all"}, Hash: hash}
	p := limiter.Params{Generation: 1}
	for _, b := range of {
		p.Rates = append(p.Rates, limiter.Rate{Limit: b.Params.Limit, Window: b.Params.Window})
	}
	return w.set.Apply(w.t.Context(), "shop", policy.BudgetRef{ID: of[0].ID, Name: of[0].Name}, key, p, c)
}

// drawAll takes until nothing is granted for a while, and returns how much was.
func (w *world) drawAll(of []policy.FederatedBudget, hash string, tries int) (sum int64) {
	w.t.Helper()
	for range tries {
		res, err := w.draws(of, hash, limiter.Command{Op: limiter.Take, Min: 1, Want: 8})
		if err != nil {
			w.t.Fatal(err)
		}
		sum += res.Granted
		time.Sleep(time.Millisecond)
	}
	return sum
}

// TestALimitDrawsFromEachRate, in windows of its own, and from all of them or none.
func TestALimitDrawsFromEachRate(t *testing.T) {
	for name, keys := range map[string]int64{"of all requests": 0, "of a value": 10} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				first := own("acme/checkout", 20)
				first.Params.Keys = keys
				b := withRate(first, 50, 60*limiter.Second)
				w := start(t, b...)
				defer w.end()
				time.Sleep(time.Minute - time.Duration(time.Now().UnixNano()%int64(time.Minute)))
				var got []int64
				for range 4 {
					got = append(got, w.drawAll(b, "x", 60))
					time.Sleep(time.Second - time.Duration(time.Now().UnixNano()%int64(time.Second)))
				}
				if got[0] != 20 || got[1] != 20 || got[2] != 10 || got[3] != 0 {
					t.Errorf("%v were granted in seconds of 20, and a minute of 50", got)
				}
				res, err := w.draws(b, "x", one)
				if err != nil || res.Reason != limiter.Exhausted || res.Limit != 50 || res.RetryAfter <= limiter.Second || res.Windows.N != 2 {
					t.Errorf("beyond the minute: %+v, %v", res, err)
				}
				time.Sleep(time.Minute)
				if got := w.drawAll(b, "x", 60); got != 20 {
					t.Errorf("%d were granted in the next minute, want 20", got)
				}
			})
		})
	}
}

// TestWhatARateDoesNotGrantGoesBack: a second time it is there for others.
func TestWhatARateDoesNotGrantGoesBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := withRate(own("acme/checkout", 100), 10, 60*limiter.Second)
		w := start(t, b...)
		defer w.end()
		w.drawAll(b, "", 40)
		w.set.mu.RLock()
		taken := w.set.parts[b[0].ID].stats().Taken
		w.set.mu.RUnlock()
		if taken != 10 {
			t.Errorf("%d of a second are handed on with 10 of the minute, want 10", taken)
		}
	})
}

// TestALimitWithOtherRatesIsRefused until both know the same: it would not be charged to all of them.
func TestALimitWithOtherRatesIsRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := withRate(own("acme/checkout", 100), 10, 60*limiter.Second)
		w := start(t, b...)
		defer w.end()
		if got := w.drawAll(b, "", 20); got == 0 {
			t.Fatal("nothing is granted")
		}
		for name, of := range map[string][]policy.FederatedBudget{
			"without the further rate": b[:1],
			"in the other order":       {b[0], b[0]},
		} {
			res, err := w.draws(of, "", one)
			if err == nil && (res.Granted > 0 || res.RetryAfter <= 0) {
				t.Errorf("%s: %+v", name, res)
			}
		}
		back := limiter.Command{Op: limiter.Return, Want: 1, Windows: limiter.Windows{N: 1}}
		if res, err := w.draws(b[:1], "", back); err != nil || res.Reason != limiter.Forfeited {
			t.Errorf("a return: %+v, %v", res, err)
		}
	})
}

// TestEachRateIsObserved under the one object.
func TestEachRateIsObserved(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := withRate(own("acme/checkout", 100), 40, 60*limiter.Second)
		w := start(t, b...)
		defer w.end()
		w.drawAll(b, "", 40)
		time.Sleep(lookSeldom)
		o := w.set.Observe("shop", "budget")
		if o.Generation != 1 || o.Ledger == nil || o.Ledger.Limit != 100 || len(o.Further) != 1 || o.Further[0].Generation != 1 {
			t.Fatalf("observed %+v", o)
		}
		if l := o.Further[0].Ledger; l == nil || l.Limit != 40 || l.Window != 60*limiter.Second {
			t.Errorf("of the further rate %+v", l)
		}
		w.has(b[0])
		if o := w.set.Observe("shop", "budget"); len(o.Further) != 1 || o.Further[0].Generation != 0 {
			t.Errorf("without the part of the further rate %+v", o.Further)
		}
		w.mu.Lock()
		defer w.mu.Unlock()
		for _, l := range w.looked {
			if l.id != b[0].ID && l.id != b[1].ID {
				t.Errorf("counts of %q were looked at", l.id)
			}
		}
	})
}
