package coordinator

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"

	"github.com/weir-dev/weir/internal/controlplane/audit"
	"github.com/weir-dev/weir/pkg/federation/ledger"
	"github.com/weir-dev/weir/pkg/limiter"
	"github.com/weir-dev/weir/pkg/policy"
)

// A ledgerFixture is the accounting of a term that began long ago, and holders that report every
// second.
type ledgerFixture struct {
	t          *testing.T
	accounting *accounting
}

const (
	web = "web"
	api = "api"
)

// holder returns the process of that name.
func holderOf(name string) audit.Holder { return audit.NewHolder(name, "1") }

func (b *ledgerFixture) publish(policies ...policy.Policy) {
	b.t.Helper()
	c, err := newConfig(policy.Snapshot{Cluster: "test", Policies: policies}, nil)
	if err != nil {
		b.t.Fatal(err)
	}
	for _, name := range []string{web, api} {
		b.accounting.enforce(holderOf(name), c, nil, false)
	}
}

// row is what a holder counted of a limit in second 100.
func row(admitted, refused int64) audit.Report {
	var w limiter.Windows
	w.N, w.Open[0] = 1, limiter.OpenWindow{Rate: limiter.Rate{Limit: 10, Window: limiter.Second}, Index: 100}
	return audit.Report{
		Generation: 1, Totals: audit.Totals{Admitted: admitted},
		Rows: []audit.Row{{Windows: w, Final: true, Admitted: admitted, Refused: refused}},
	}
}

// federatedOf returns a policy with limits that draw from budgets by their names.
func federatedOf(name string, budgets map[string]string) policy.Policy {
	p := limited("shop", 1, 10, limiter.Second)
	p.Name, p.Limits = name, nil
	for limit, id := range budgets {
		l := policy.Limit{Name: limit, Rates: []limiter.Rate{{Limit: 10, Window: limiter.Second}}}
		if id != "" {
			l.Budget = &policy.BudgetRef{ID: id, Name: "world"}
		}
		p.Limits = append(p.Limits, l)
	}
	return p
}

// TestSourcesOfABudget follows which limits draw from it.
func TestSourcesOfABudget(t *testing.T) {
	s, begun := newBoundLimits(), time.Unix(1000, 0)
	at := func(seconds int) time.Time { return begun.Add(time.Duration(seconds) * time.Second) }
	p := federatedOf("checkout", map[string]string{"a": "x", "b": "x", "c": "y", "d": ""})
	s.adopt(&p, at(0))
	s.adopt(&p, at(1)) // again, for another session
	name := limitName{policy: policyName("checkout"), limit: "a"}
	if len(s.byBudget["x"]) != 2 || len(s.byBudget["y"]) != 1 || !s.byPolicy[name.policy]["a"].since.Equal(at(0)) || len(s.ceased) != 0 {
		t.Errorf("got %+v", s)
	}
	p = federatedOf("checkout", map[string]string{"a": "y", "b": "x", "d": "x"})
	s.adopt(&p, at(2))
	if len(s.byBudget["x"]) != 2 || len(s.byBudget["y"]) != 1 || !s.byPolicy[name.policy]["a"].since.Equal(at(2)) ||
		!s.byPolicy[name.policy]["b"].since.Equal(at(0)) || !s.ceased["x"].Equal(at(2)) || !s.ceased["y"].Equal(at(2)) {
		t.Errorf("after an edit: %+v", s)
	}
	s.forget(name.policy)
	if len(s.byBudget) != 0 || len(s.byPolicy) != 0 {
		t.Errorf("when nobody enforces it: %+v", s)
	}
	s.sweep(at(3))
	if len(s.ceased) != 2 {
		t.Error("what a window may look back on is forgotten")
	}
	s.sweep(at(3).Add(2 * time.Duration(limiter.MaxWindow) * time.Microsecond))
	if len(s.ceased) != 0 {
		t.Errorf("never forgotten: %v", s.ceased)
	}
}

// TestUsageIsTheSumOverAllLimits counts in two policies, with three limits that draw from
// the budget. The window is that of the last two seconds.
func TestUsageIsTheSumOverAllLimits(t *testing.T) {
	first := federatedOf("checkout", map[string]string{"a": "x", "b": "x", "c": "y", "d": ""})
	second := federatedOf("search", map[string]string{"a": "x"})
	window := limiter.OpenWindow{Rate: limiter.Rate{Limit: 10, Window: limiter.Second}, Index: 100}
	tests := map[string]struct {
		during func(b *ledgerFixture) // before the reports
		silent string                 // a holder that reports nothing any more
		want   ledger.Usage
	}{
		"all reported":                {want: ledger.Usage{Index: 100, Admitted: 2 * (1 + 2 + 8), Refused: 6, Complete: true}},
		"one holder has not reported": {silent: api, want: ledger.Usage{Index: 100, Admitted: 1 + 2 + 8, Refused: 3}},
		"one ceased to draw from it": {
			during: func(b *ledgerFixture) {
				p := federatedOf("checkout", map[string]string{"a": "x", "c": "y", "d": ""})
				p.Generation = 2
				b.publish(p, second)
			},
			want: ledger.Usage{Index: 100, Admitted: 2 * (1 + 8), Refused: 4},
		},
		"one draws from it since": {
			during: func(b *ledgerFixture) {
				p := federatedOf("checkout", map[string]string{"a": "x", "b": "x", "c": "y", "d": "x"})
				p.Generation = 2
				b.publish(p, second)
			},
			want: ledger.Usage{Index: 100, Admitted: 2 * (1 + 2 + 8), Refused: 6},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := &ledgerFixture{t: t, accounting: newAccounting(time.Now())}
				b.publish(first, second)
				counts := map[limitName]audit.Report{}
				for limit, n := range map[string]int64{"a": 1, "b": 2, "c": 4, "d": 16} {
					counts[limitName{policy: policyName("checkout"), limit: limit}] = row(n, 1)
				}
				counts[limitName{policy: policyName("search"), limit: "a"}] = row(8, 1)
				all := policyNames("checkout", "search")
				reportAll := func(reports map[limitName]audit.Report) {
					for _, h := range []string{web, api} {
						if h != tc.silent || reports == nil {
							b.accounting.report(holderOf(h), all, reports, map[limitName]struct{}{}, false)
						}
					}
					b.accounting.advance(time.Now())
					time.Sleep(time.Second)
				}
				for range 10 {
					reportAll(nil)
				}
				before := time.Now()
				if tc.during != nil {
					tc.during(b)
				}
				reportAll(counts)
				over := time.Now()
				for range 4 {
					reportAll(map[limitName]audit.Report{})
				}
				if got := b.accounting.usage("x", window, before, over); got != tc.want {
					t.Errorf("got %+v, want %+v", got, tc.want)
				}
				if got := b.accounting.usage("nobody's", window, before, over); got != (ledger.Usage{Index: 100, Complete: true}) {
					t.Errorf("of a budget that no limit draws from: %+v", got)
				}
			})
		})
	}
}

// TestUsageOfEachRate counts the same requests in the windows of each rate.
func TestUsageOfEachRate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := &ledgerFixture{t: t, accounting: newAccounting(time.Now())}
		p := federatedOf("checkout", map[string]string{"a": "x"})
		long := limiter.Rate{Limit: 25, Window: 3 * limiter.Second}
		p.Limits[0].Rates = append(p.Limits[0].Rates, long)
		b.publish(p)
		all, of := policyNames("checkout"), limitName{policy: policyName("checkout"), limit: "a"}
		report := func(reports map[limitName]audit.Report) {
			for _, h := range []string{web, api} {
				b.accounting.report(holderOf(h), all, reports, map[limitName]struct{}{}, false)
			}
			b.accounting.advance(time.Now())
			time.Sleep(time.Second)
		}
		for range 10 {
			report(nil)
		}
		before := time.Now()
		for i, n := range []int64{1, 2, 4} { // the seconds 99 to 101
			r := row(n, 1)
			w := &r.Rows[0].Windows
			w.Open[0].Index = 99 + int64(i)
			w.N, w.Open[1] = 2, limiter.OpenWindow{Rate: long, Index: 33}
			report(map[limitName]audit.Report{of: r})
		}
		over := time.Now()
		for range 6 {
			report(map[limitName]audit.Report{})
		}
		second := limiter.OpenWindow{Rate: limiter.Rate{Limit: 10, Window: limiter.Second}, Index: 100}
		if got, want := b.accounting.usage("x", second, before, over), (ledger.Usage{Index: 100, Admitted: 4, Refused: 2, Complete: true}); got != want {
			t.Errorf("of a second %+v, want %+v", got, want)
		}
		window := limiter.OpenWindow{Rate: long, Index: 33}
		if got, want := b.accounting.usage(policy.RateID("x", long.Window), window, before, over), (ledger.Usage{Index: 33, Admitted: 14, Refused: 6, Complete: true}); got != want {
			t.Errorf("of three seconds %+v, want %+v", got, want)
		}
	})
}

// TestAWindowThatNobodyNamedIsKnownToBeEmptyOnceAllReported, and not before.
func TestAWindowThatNobodyNamedIsKnownToBeEmptyOnceAllReported(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := &ledgerFixture{t: t, accounting: newAccounting(time.Now())}
		b.publish(federatedOf("checkout", map[string]string{"a": "x"}))
		all := policyNames("checkout")
		window := limiter.OpenWindow{Rate: limiter.Rate{Limit: 10, Window: limiter.Second}, Index: 100}
		silence := func(seconds int, holders ...string) {
			for range seconds {
				for _, h := range holders {
					b.accounting.report(holderOf(h), all, nil, nil, false)
				}
				time.Sleep(time.Second)
			}
		}
		silence(10, web, api)
		before, over := time.Now(), time.Now().Add(time.Second)
		for _, step := range []struct {
			seconds int
			holders []string
			want    bool
		}{{1, []string{web, api}, false}, {4, []string{web}, false}, {1, []string{api}, false}, {1, []string{api}, true}} {
			silence(step.seconds, step.holders...)
			if got := b.accounting.usage("x", window, before, over); got.Complete != step.want || got.Admitted != 0 {
				t.Errorf("after %d seconds of %v: %+v, want complete %t", step.seconds, step.holders, got, step.want)
			}
		}
		b.accounting.lose(holderOf(api), all)
		if got := b.accounting.usage("x", window, time.Now(), time.Now()); got.Complete {
			t.Errorf("though a holder vanished: %+v", got)
		}
	})
}

func policyName(name string) types.NamespacedName {
	return types.NamespacedName{Namespace: "shop", Name: name}
}

func policyNames(names ...string) (out []types.NamespacedName) {
	for _, name := range names {
		out = append(out, policyName(name))
	}
	return out
}

// TestValuesAreTheSumOverAllLimits counts values in two limits that draw from the budget. Sidecars
// are asked for those beyond this cluster's part, and for those that are wanted.
func TestValuesAreTheSumOverAllLimits(t *testing.T) {
	p := federatedOf("checkout", map[string]string{"a": "x", "b": "x", "c": "y"})
	for i := range p.Limits {
		p.Limits[i].Key, p.Limits[i].Clusters = &policy.Key{Parts: []policy.KeyPart{{Type: policy.HeaderKey, Header: "x-user"}}, MaxKeys: 100, OnMissing: policy.Skip}, 2
	}
	window := limiter.OpenWindow{Rate: limiter.Rate{Limit: 10, Window: limiter.Second}, Index: 100}
	synctest.Test(t, func(t *testing.T) {
		b := &ledgerFixture{t: t, accounting: newAccounting(time.Now())}
		b.publish(p)
		asked := map[string]struct{}{}
		second := func(reports map[limitName]audit.Report) {
			for _, h := range []string{web, api} {
				b.accounting.report(holderOf(h), policyNames("checkout"), reports, map[limitName]struct{}{}, false)
			}
			ask, _ := b.accounting.advance(time.Now())
			for _, q := range ask {
				for _, hash := range q.Hashes {
					asked[hash] = struct{}{}
				}
				for _, h := range q.Holders {
					b.accounting.reply(h, question{limit: q.limit, id: q.ID}, []audit.KeyCount{{Hash: "u", Admitted: 3}, {Hash: "v", Admitted: 1, Refused: 1}}, false)
				}
			}
			time.Sleep(time.Second)
		}
		for range 10 {
			second(nil)
		}
		before := time.Now()
		counted := row(5, 1) // 3 of u, 1 of v and 1 of another
		counted.Rows[0].Keys = []audit.KeyCount{{Hash: "u", Admitted: 3}}
		counted.Rows[0].Unlisted[0] = 1
		reports := map[limitName]audit.Report{}
		for _, limit := range []string{"a", "b", "c"} {
			reports[limitName{policy: policyName("checkout"), limit: limit}] = counted
		}
		second(reports)
		over := time.Now()
		settle := func() {
			for range 4 {
				second(map[limitName]audit.Report{})
			}
		}
		settle()
		want := audit.ValueUsage{
			Usage: audit.Usage{Admitted: 20, Refused: 4, Complete: true}, Hidden: 4,
			Keys: map[string]audit.KeyCount{"u": {Hash: "u", Admitted: 12}},
		}
		if diff := cmp.Diff(want, b.accounting.values("x", window, before, over, nil)); diff != "" {
			t.Errorf("values (-want +got)\n%s", diff)
		}
		b.accounting.values("x", window, before, over, []string{"v"})
		settle()
		want.Keys["v"] = audit.KeyCount{Hash: "v", Admitted: 4, Refused: 4}
		if diff := cmp.Diff(want, b.accounting.values("x", window, before, over, []string{"v"})); diff != "" {
			t.Errorf("values that are wanted (-want +got)\n%s", diff)
		}
		if _, v := asked["v"]; !v {
			t.Errorf("asked for %v", asked)
		}
		if got := b.accounting.values("nobody's", window, before, over, nil); !got.Complete || len(got.Keys) != 0 {
			t.Errorf("of a budget that no limit draws from: %+v", got)
		}
	})
}
