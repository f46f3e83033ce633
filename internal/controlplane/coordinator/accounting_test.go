package coordinator

import (
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/weir-dev/weir/internal/controlplane/audit"
	"github.com/weir-dev/weir/internal/fleetpb"
	"github.com/weir-dev/weir/pkg/limiter"
	"github.com/weir-dev/weir/pkg/policy"
)

// TestAccountingAllowsForLossesOfMemory has a sidecar admit twice the limit of a window in which
// the store lost its memory once.
func TestAccountingAllowsForLossesOfMemory(t *testing.T) {
	redis := policy.Store{Type: policy.RedisStore, Address: "redis:6379"}
	resume := limiter.Retention{Durable: true, Resume: true}
	for name, tc := range map[string]struct {
		store  policy.Store
		kept   limiter.Retention
		budget *policy.BudgetRef
		want   audit.Verdict
	}{
		"goes on":                          {redis, resume, nil, audit.Measured},
		"waits":                            {redis, limiter.Retention{Durable: true}, nil, audit.Exceeded},
		"the controller's store waits":     {policy.Store{Type: policy.ControllerStore}, resume, nil, audit.Exceeded},
		"a budget is not kept in that one": {redis, resume, &policy.BudgetRef{ID: "id"}, audit.Exceeded},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := limited("shop", 1, 10, limiter.Second)
				p.Store, p.Limits[0].Retention, p.Limits[0].Budget = tc.store, tc.kept, tc.budget
				b := newAccounting(time.Now().Add(-time.Hour))
				began := time.Now()
				b.remembered = func(of policy.Store) []audit.Unbroken {
					if of != tc.store {
						t.Errorf("asked for %v", of)
					}
					return []audit.Unbroken{{From: began.Add(-time.Hour), To: began.Add(14 * time.Second)}, {From: began.Add(15 * time.Second), To: began.Add(time.Hour)}}
				}
				h := audit.NewHolder("web-0-uid", "1")
				name := types.NamespacedName{Namespace: p.Namespace, Name: p.Name}
				b.enforce(h, &config{policies: map[types.NamespacedName]*policy.Policy{name: &p}}, nil, false)
				time.Sleep(20 * time.Second)
				of := limitName{policy: name, limit: "all"}
				row := audit.Row{Windows: windowsOfSecond(7), Final: true, Age: 9 * time.Second, Admitted: 20}
				for range 3 {
					b.report(h, []types.NamespacedName{name}, map[limitName]audit.Report{of: {Generation: 1, Rows: []audit.Row{row}}}, map[limitName]struct{}{}, false)
					b.advance(time.Now())
					time.Sleep(time.Second)
				}
				if got := b.figures(name)["all"]; got.Verdict != tc.want {
					t.Errorf("verdict %d, want %d: %+v", got.Verdict, tc.want, got.Overshoot)
				}
			})
		})
	}
}

// TestWorstOfALaterTermIsALowerBound has sidecars come back to a later leader, at once or
// late. That leader does not know what the one before measured of the limit. It knows all of
// a limit that is put in force for the first time.
func TestWorstOfALaterTermIsALowerBound(t *testing.T) {
	for name, back := range map[string]time.Duration{"at once": 0, "after all others are counted": 5 * figuresTime} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				terms, births := first(), keepingBirths()
				old, fresh := limited("shop", 1, 10, limiter.Second), limited("shop", 1, 10, limiter.Second)
				fresh.Name = "fresh"
				all := publishing(old)
				l := lead(t, terms, all, births)
				s := l.connect(pod("shop", "web-0"), "1")
				s.config()
				l.end()
				s.close()

				all.set(true, old, fresh)
				l = lead(t, terms, all, births)
				defer l.end()
				time.Sleep(back)
				s = l.connect(pod("shop", "web-0"), "1")
				defer s.close()
				s.config()
				for i := range int64(12) {
					of := func(p policy.Policy) *fleetpb.LimitReport {
						r := counted(8, i)
						r.Policy = p.Name
						return r
					}
					s.report(of(old), of(fresh))
					time.Sleep(time.Second)
				}
				synctest.Wait()
				for name, atLeast := range map[string]bool{old.Name: true, fresh.Name: false} {
					got := l.Observe("shop", name).Limits[0].Figures
					if got.Overshoot == nil || got.Overshoot.AtLeast != atLeast {
						t.Errorf("policy %s: overshoot %+v, want one that is a lower bound: %t", name, got.Overshoot, atLeast)
					}
				}
			})
		})
	}
}
