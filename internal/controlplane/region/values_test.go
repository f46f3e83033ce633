package region

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"

	"github.com/weir-dev/weir/internal/controlplane/audit"
	"github.com/weir-dev/weir/internal/controlplane/audit/budgetaudit"
	"github.com/weir-dev/weir/internal/controlplane/budget"
	"github.com/weir-dev/weir/internal/controlplane/hub"
	"github.com/weir-dev/weir/internal/testing/fieldtest"
	"github.com/weir-dev/weir/pkg/federation/keys"
	"github.com/weir-dev/weir/pkg/federation/ledger"
	"github.com/weir-dev/weir/pkg/limiter"
	"github.com/weir-dev/weir/pkg/policy"
	"github.com/weir-dev/weir/pkg/store"
)

// perValue returns a budget with a key.
func perValue(id string, limit int64) policy.FederatedBudget {
	b := own(id, limit)
	b.Params.Keys = 1000
	return b
}

// take asks for units of a value on behalf of a limit.
func (w *world) take(of policy.FederatedBudget, limit, value string, want int64) limiter.Result {
	w.t.Helper()
	key := store.Key{Scope: store.Scope{Cluster: "cluster-a", Namespace: of.Namespace, Policy: "checkout", Limit: limit}, Hash: store.HashValue(value)}
	p := limiter.Params{Rates: []limiter.Rate{{Limit: of.Params.Limit, Window: of.Params.Window}}, Generation: 1}
	res, err := w.set.Apply(w.t.Context(), of.Namespace, policy.BudgetRef{ID: of.ID, Name: of.Name}, key, p, limiter.Command{Op: limiter.Take, Min: 1, Want: want})
	if err != nil {
		w.t.Fatal(err)
	}
	return res
}

// all asks until nothing is granted, and returns how much was.
func (w *world) all(of policy.FederatedBudget, limit, value string) (sum int64) {
	w.t.Helper()
	for {
		res := w.take(of, limit, value, 3)
		if res.Granted == 0 {
			return sum
		}
		sum += res.Granted
	}
}

// TestEachValueHasTheLimit of a budget that this cluster keeps, and of one that a hub does.
func TestEachValueHasTheLimit(t *testing.T) {
	for name, of := range map[string]policy.FederatedBudget{
		"own":      perValue("shop/users", 10),
		"at a hub": at(perValue("shop/users", 10), "hub:1"),
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := start(t, of)
				defer w.end()
				time.Sleep(time.Until(time.Now().Truncate(time.Second).Add(time.Second)))
				if got := w.all(of, "one", "alice"); got != 10 {
					t.Errorf("%d units, want the limit of 10", got)
				}
				if got := w.all(of, "two", "alice"); got != 0 {
					t.Errorf("%d units more by another limit", got)
				}
				if got := w.all(of, "two", "bob"); got != 10 {
					t.Errorf("%d units of another value, want 10", got)
				}
			})
		})
	}
}

// TestABudgetWithAKeyInStatus shows its figures, and says what the coordinator does.
func TestABudgetWithAKeyInStatus(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		of := at(perValue("shop/users", 10), "hub:1")
		w := start(t, of)
		defer w.end()
		w.all(of, "one", "alice")
		part := w.set.parts[of.ID]
		if s := part.stats(); s.Granted < 10 || s.Taken < 10 || s.Refused == 0 || s.Commands == 0 {
			t.Errorf("%+v", s)
		}
		w.root("hub:1").fail(errCut)
		time.Sleep(7 * time.Second)
		if o := w.set.Observe("shop", "budget"); o.Link.Problem != budget.Partitioned {
			t.Errorf("%+v", o.Link)
		}
		if res := w.take(of, "one", "carol", 1); res.Granted != 0 || res.RetryAfter <= 0 {
			t.Errorf("%+v is granted without the hub", res)
		}
	})
}

// TestASliceOfEachValueGoesOnWithoutTheHub for windows, and what others have of a value counts
// beside it.
func TestASliceOfEachValueGoesOnWithoutTheHub(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		of := at(perValue("shop/users", 10), "hub:1")
		of.OnCoordinatorOutage = policy.BudgetNominal
		of.Params.Slices = true
		of.Params.Members[0].Nominal, of.Params.Members[0].Kept = 4, 4
		w := start(t, of)
		defer w.end()
		time.Sleep(12 * time.Second) // until the slice is known, and the clock of the hub
		begin := func() {
			time.Sleep(time.Until(time.Now().Truncate(time.Second).Add(time.Second + 100*time.Millisecond)))
		}
		begin()
		if got := w.all(of, "one", "alice"); got != 10 {
			t.Errorf("%d units with the hub, want the limit of 10", got)
		}
		w.root("hub:1").fail(errCut)
		for range 3 {
			begin()
			for _, value := range []string{"alice", "bob"} {
				if got := w.all(of, "one", value); got != 4 {
					t.Errorf("%d units of %s without the hub, want the slice of 4", got, value)
				}
			}
		}
		w.root("hub:1").fail(nil)
		begin()
		r, err := w.root("hub:1").ApplyKeys(t.Context(), of.ID, of.Params, keys.Request{Member: "b", Asks: []keys.KeyAsk{
			{Hash: store.HashValue("alice"), Ask: keys.Ask{Min: 1, Want: 100}},
		}})
		if err != nil || r.Grants[0].Units != 6 {
			t.Errorf("%+v, %v, want 6 units beside the slice of 4", r, err)
		}
	})
}

// TestAHubThatKeepsTheBudgetWithoutAKey answers looks, and no value is granted anything: status says so
// though nobody asks, until the hub's object has a key.
func TestAHubThatKeepsTheBudgetWithoutAKey(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		of := at(perValue("shop/users", 10), "hub:1")
		w := start(t, of)
		defer w.end()
		time.Sleep(7 * time.Second)
		if o := w.set.Observe("shop", "budget"); o.Link.Problem != "" {
			t.Fatalf("of a hub that knows the key: %+v", o.Link)
		}
		w.root("hub:1").knows(&hub.RefusedError{Endpoint: "hub:1", Reason: hub.Mismatched, Message: "give both the same"})
		time.Sleep(7 * time.Second)
		if o := w.set.Observe("shop", "budget"); o.Link.Problem != budget.Mismatched || !strings.Contains(o.Link.Detail, "give both the same") {
			t.Errorf("%+v, want Mismatched", o.Link)
		}
		w.root("hub:1").knows(&hub.RefusedError{Endpoint: "hub:1", Reason: hub.Invalid, Message: "of another version"})
		time.Sleep(7 * time.Second)
		if o := w.set.Observe("shop", "budget"); o.Link.Problem != "" {
			t.Errorf("a hub that does not measure values: %+v", o.Link)
		}
	})
}

// TestTheRoomForValuesIsKnown of the hub and of this process, and for no longer than it matters.
func TestTheRoomForValuesIsKnown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		of := at(perValue("shop/users", 10), "hub:1")
		of.Params.Keys = 2
		plain := own("shop/plain", 10)
		plain.Name = "plain"
		w := start(t, of, plain)
		defer w.end()
		begin := func() {
			time.Sleep(time.Until(time.Now().Truncate(time.Second).Add(time.Second + 100*time.Millisecond)))
		}
		begin()
		has := func(when string, want budget.Keys) {
			t.Helper()
			if got := w.set.Observe("shop", "budget").Keys; got != want {
				t.Errorf("%s: %+v, want %+v", when, got, want)
			}
		}
		w.all(of, "one", "alice")
		w.all(of, "one", "bob")
		has("as many as there is room for", budget.Keys{InCluster: 2, InUse: 2})
		w.all(of, "one", "carol")
		has("one more", budget.Keys{InCluster: 3, InUse: 3, Full: true})
		if !w.set.parts[of.ID].turned() {
			t.Error("that is not written at once")
		}
		begin()
		w.all(of, "one", "alice")
		if got := w.set.Observe("shop", "budget").Keys; got.InUse != 3 || !got.Full {
			t.Errorf("in the next window: %+v, want what the one before was", got)
		}
		begin()
		if got := w.set.Observe("shop", "budget").Keys; got.InUse != 1 || got.Full {
			t.Errorf("in the window after that: %+v", got)
		}
		if got := w.set.Observe("shop", "plain").Keys; got != (budget.Keys{}) {
			t.Errorf("of a budget without a key: %+v", got)
		}
	})
}

// TestTheKeyIsTakenAwayAndGiven deletes a budget and creates it with a key, and without.
func TestTheKeyIsTakenAwayAndGiven(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		plain, with := at(own("shop/users", 10), "hub:1"), at(perValue("shop/users", 10), "hub:1")
		w := start(t, plain)
		defer w.end()
		w.takes(plain, 4)
		w.has(with)
		time.Sleep(time.Until(time.Now().Truncate(time.Second).Add(time.Second)))
		if got := w.all(with, "one", "alice"); got != 10 {
			t.Errorf("%d units of a value, want 10", got)
		}
		w.has(plain)
		time.Sleep(time.Second)
		w.takes(plain, 4)
	})
}

// TestAnEditReachesTheValues lowers the limit.
func TestAnEditReachesTheValues(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		of := perValue("shop/users", 10)
		w := start(t, of)
		defer w.end()
		w.all(of, "one", "alice")
		of.Params.Limit = 5
		w.has(of)
		time.Sleep(time.Until(time.Now().Truncate(time.Second).Add(time.Second)))
		if got := w.all(of, "one", "alice"); got != 5 {
			t.Errorf("%d units, want the limit of 5", got)
		}
	})
}

func TestEveryFieldOfABudgetReachesTheValues(t *testing.T) {
	in := &policy.FederatedBudget{
		ID: "acme/world", Member: "eu-west",
		Params: ledger.Params{
			Limit: 1, Window: 2, Strategy: 3, Slices: true, Block: 4, Keys: 5, Others: []limiter.Micros{11},
			Members:   []ledger.Member{{Name: "eu-west", Weight: 5, Nominal: 6, Kept: 7, Borrowing: 8}},
			Overrides: []ledger.Override{{Hash: "x", Limit: 9, Block: 10}},
		},
	}
	fieldtest.Matter(t, []*policy.FederatedBudget{in}, func(b *policy.FederatedBudget) (any, error) { return valuesConfig(b), nil },
		"FederatedBudget.Namespace", "FederatedBudget.Name", "FederatedBudget.Generation", // which the part reads
		"FederatedBudget.Hub", "FederatedBudget.Coordinator", "FederatedBudget.Escrow", // which places read
		"FederatedBudget.OnCoordinatorOutage", "FederatedBudget.Batch", // which are of budgets without a key
		"FederatedBudget.Key", "FederatedBudget.Overrides", // by which sidecars count
		"FederatedBudget.Additional", "FederatedBudget.Of", // which have parts of their own
		"Config.Patience", "Config.Timeout", "Config.Probe", "Config.Clock", "Config.Keys") // which are the same for all
}

// countsOf returns what was counted of values. It names those that are wanted or beyond 5
// units.
func countsOf(units map[string]int64, wanted []string) audit.ValueUsage {
	u := audit.ValueUsage{Usage: audit.Usage{Complete: true}, Keys: map[string]audit.KeyCount{}}
	for _, hash := range wanted {
		u.Keys[hash] = audit.KeyCount{Hash: hash}
	}
	for hash, n := range units {
		u.Admitted += n
		if _, named := u.Keys[hash]; named || n > 5 {
			u.Keys[hash] = audit.KeyCount{Hash: hash, Admitted: n}
		} else {
			u.Hidden = max(u.Hidden, n)
		}
	}
	return u
}

// TestTheValuesOfABudgetAreMeasuredOverClusters has another member report a value beyond its
// part, which this cluster then has to count exactly.
func TestTheValuesOfABudgetAreMeasuredOverClusters(t *testing.T) {
	for name, tc := range map[string]struct {
		here    int64 // units of the value in this cluster; the other admitted 7 of 10
		silent  bool  // the other reports nothing
		verdict audit.Verdict
		worst   int64
	}{
		"within the limit":     {here: 3, verdict: audit.Measured},
		"beyond the limit":     {here: 4, verdict: audit.Exceeded, worst: 1},
		"the other is silent":  {here: 3, silent: true, verdict: audit.ReportsMissing},
		"beyond it alone here": {here: 12, silent: true, verdict: audit.Exceeded, worst: 2},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				of := at(perValue("shop/users", 10), "hub:1")
				w := start(t, of)
				defer w.end()
				w.mu.Lock()
				w.valued = func(_ int64, wanted []string) audit.ValueUsage {
					return countsOf(map[string]int64{"x": tc.here, "y": 2}, wanted)
				}
				w.mu.Unlock()
				root, wanted := w.root("hub:1"), map[int64][]string{}
				for range 20 {
					w.take(of, "one", "alice", 1)
					time.Sleep(time.Second)
					if tc.silent {
						continue
					}
					for index := window() - ledger.MaxClosed; index < window(); index++ {
						u := countsOf(map[string]int64{"x": 7}, wanted[index])
						row := rowFrom(&ledger.Closed{Index: index, Limit: 10}, u, wanted[index])
						answer, err := root.audits.ReportKeys(context.Background(), of.ID, "b", of.Params, &row)
						if err != nil {
							t.Fatal(err)
						}
						for _, q := range answer.Wanted {
							wanted[q.Index] = q.Hashes
						}
					}
				}
				f := w.set.Observe("shop", "budget").Figures
				if f.Verdict != tc.verdict || f.Overshoot != nil && f.Overshoot.Worst != tc.worst {
					t.Errorf("verdict %d with %+v, want %d and a worst of %d", f.Verdict, f.Overshoot, tc.verdict, tc.worst)
				}
			})
		})
	}
}

// TestAStoreLeavesValuesUnknown since no hub measures them there.
func TestAStoreLeavesValuesUnknown(t *testing.T) {
	line := newLine(place{}, logr.Discard())
	line.Replace(&connection{}, nil)
	if _, err := (ledgerLine{line}).ReportKeys(t.Context(), "x", "a", ledger.Params{}, nil); !errors.Is(err, errUnmeasured) {
		t.Errorf("%v", err)
	}
}

func TestRowOfValues(t *testing.T) {
	closed := &ledger.Closed{Index: 7, Limit: 10}
	key := func(hash string, n int64) audit.KeyCount { return audit.KeyCount{Hash: hash, Admitted: n, Refused: 1} }
	usage := audit.ValueUsage{
		Usage: audit.Usage{Admitted: 20, Refused: 3, Complete: true}, Hidden: 4,
		Keys: map[string]audit.KeyCount{"b": key("b", 6), "a": key("a", 9)},
	}
	want := budgetaudit.ValueRow{
		Index: 7, Limit: 10, Admitted: 20, Refused: 3, Hidden: 4, Complete: true, Keys: []audit.KeyCount{key("a", 9), key("b", 6)},
	}
	if diff := cmp.Diff(want, rowFrom(closed, usage, []string{"b", "c"})); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	usage.Hidden, want.Hidden = 0, 0
	want.Keys = append(want.Keys, audit.KeyCount{Hash: "c"})
	if diff := cmp.Diff(want, rowFrom(closed, usage, []string{"b", "c"})); diff != "" {
		t.Errorf("all is named (-want +got)\n%s", diff)
	}
	for i := range int64(budgetaudit.MaxRowKeys) {
		k := key(fmt.Sprint("many", i), 2+i%2)
		usage.Keys[k.Hash] = k
	}
	usage.Keys["z"] = key("z", 1)
	row := rowFrom(closed, usage, []string{"z"})
	named := map[string]bool{}
	for _, k := range row.Keys {
		named[k.Hash] = true
	}
	if len(row.Keys) != budgetaudit.MaxRowKeys || row.Hidden != 2 || !named["z"] || !named["a"] {
		t.Errorf("%d values are named, others were admitted %d at most", len(row.Keys), row.Hidden)
	}
}
