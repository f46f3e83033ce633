package coordinator

import (
	"fmt"
	"maps"
	"math/rand/v2"
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

// TestStepsForgetNothing serves sessions at random, by parts and wholes, while they come, go and are replaced
// by others of the same process. Each process accounts for just what it is served by, and has the number of
// holders of each policy: all shares together are the limit at most.
func TestStepsForgetNothing(t *testing.T) {
	for seed := range uint64(20) {
		r := rand.New(rand.NewPCG(seed, 5))
		w := stepping{T: t, term: newBenchmarkTerm(t, publishing()), r: r, by: map[string]*session{}}
		for range 12 {
			w.configs = append(w.configs, w.config())
		}
		for range 150 {
			w.step()
			w.accounts()
			if r.IntN(2) == 0 {
				w.term.sendHolders("shop")
				w.shares()
			}
		}
	}
}

// stepping is a term without streams, and what is done to it.
type stepping struct {
	*testing.T
	term    *term
	r       *rand.Rand
	configs []*config
	by      map[string]*session // by pod
}

// config returns one of some policies, each of one of a few generations.
func (w *stepping) config() *config {
	var all []policy.Policy
	for i := range 5 {
		if w.r.IntN(3) > 0 {
			p := limited("shop", 1+w.r.Int64N(2), 10, limiter.Second)
			p.Name = fmt.Sprint("p", i)
			all = append(all, p)
		}
	}
	return configOf(w.T, all...)
}

func (w *stepping) step() {
	id := pod("shop", fmt.Sprint("web-", w.r.IntN(5)))
	s := w.by[id.Pod]
	switch action := w.r.IntN(10); {
	case s == nil || action == 0:
		hello := helloOf(id, fmt.Sprint(w.r.IntN(2)))
		hello.Edits = true
		s = newSession(id, hello, func(error) {})
		w.term.admit(s)
		w.by[id.Pod] = s
		w.term.arrive(s)
	case action == 1:
		w.term.leave(s, []error{errLeft, errSilent}[w.r.IntN(2)])
		delete(w.by, id.Pod)
	case action == 2:
		w.configs[w.r.IntN(len(w.configs))] = w.config()
	default:
		next, send := w.configs[w.r.IntN(len(w.configs))], w.r.IntN(4) > 0
		if by, sent := s.served(); (by != next || sent != send) && (send || !sent) {
			w.term.serveBy(s, next, send)
		}
	}
}

// accounts requires that just those account for a policy that are served by it, by its generation.
func (w *stepping) accounts() {
	w.Helper()
	for i := range 5 {
		name := types.NamespacedName{Namespace: "shop", Name: fmt.Sprint("p", i)}
		want := map[audit.Holder]struct{}{}
		for _, s := range w.by {
			if s.enforces(name) {
				want[s.holder] = struct{}{}
			}
		}
		got := map[audit.Holder]struct{}{}
		if entry := w.term.accounting.byName[name]; entry != nil {
			got = entry.holders
		}
		if !maps.Equal(got, want) {
			w.Fatalf("%d account for %s, of %d that are served by it", len(got), name, len(want))
		}
	}
}

// shares requires that all have the number of holders, or a larger one while some were sent nothing.
func (w *stepping) shares() {
	w.Helper()
	all, count := true, map[types.NamespacedName]int64{}
	for _, s := range w.by {
		_, sent := s.served()
		all = all && sent
		for _, name := range s.policies() {
			count[name]++
		}
	}
	for pod, s := range w.by {
		for _, name := range s.policies() {
			if got := s.shares()[name]; got < count[name] || all && got != count[name] {
				w.Fatalf("%s has %d holders of %s, which are %d; all were sent what they enforce: %t", pod, got, name, count[name], all)
			}
		}
	}
}
