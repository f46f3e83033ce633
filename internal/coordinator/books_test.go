package coordinator

import (
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/weir-dev/weir/internal/audit"
	"github.com/weir-dev/weir/pkg/limiter"
	"github.com/weir-dev/weir/pkg/policy"
)

// TestBooksAllowForLossesOfMemory has a sidecar admit twice the limit of a window in which
// the store lost its memory once.
func TestBooksAllowForLossesOfMemory(t *testing.T) {
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
				b := newBooks(time.Now().Add(-time.Hour))
				began := time.Now()
				b.remembered = func(of policy.Store) []audit.Unbroken {
					if of != tc.store {
						t.Errorf("asked for %v", of)
					}
					return []audit.Unbroken{{From: began.Add(-time.Hour), To: began.Add(14 * time.Second)}, {From: began.Add(15 * time.Second), To: began.Add(time.Hour)}}
				}
				h := audit.Holder{PodUID: "web-0-uid", Nonce: "1"}
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
