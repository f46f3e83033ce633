package coordinator

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"
	"k8s.io/apimachinery/pkg/types"

	"github.com/weir-dev/weir/internal/controlplane/audit"
	"github.com/weir-dev/weir/internal/controlplane/coordinator/podauth"
	"github.com/weir-dev/weir/internal/fleetpb"
	"github.com/weir-dev/weir/pkg/limiter"
	"github.com/weir-dev/weir/pkg/policy"
)

// wholeOf is the version that a holder enforces which was sent the policies, with a pool
// or, for nil, without.
func wholeOf(p *policy.Pool, all ...policy.Policy) string {
	return versionOf(policy.Snapshot{Cluster: "test", Policies: all, Pool: p})
}

// countedOf returns the final counts of the window that ends now.
func countedOf(p policy.Policy, admitted int64) *fleetpb.LimitReport {
	r := counted(admitted, 0)
	r.Policy = p.Name
	return r
}

// serving returns what the pod is served by.
func (l *leader) serving(id podauth.Identity) *config {
	synctest.Wait()
	by, _ := l.present.Load().sessions.of(id.PodUID).served()
	return by
}

// holdersOf returns how many holders of the policy the pod heard of.
func (l *leader) holdersOf(id podauth.Identity, p policy.Policy) int64 {
	synctest.Wait()
	s := l.present.Load().sessions.of(id.PodUID)
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.holders[types.NamespacedName{Namespace: p.Namespace, Name: p.Name}]
}

// TestANewLeaderServesWhatIsNotBroken, and nothing else, to a pod that it must not send
// that; what is repaired it sends once, and grants nothing twice.
func TestANewLeaderServesWhatIsNotBroken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		good := limited("shop", 1, 10, limiter.Day)
		broken, db := secondOf(good), pooled("shop", 1, 10)
		resolver := sharing(db)
		resolver.lack(errPartial, good)
		l := lead(t, first(), resolver)
		defer l.end()
		id := pod("shop", "web-0")
		h := &holder{sidecar: l.connectWith(id, "1", wholeOf(db, good, broken))}
		defer h.close()
		l.requireSent(id)

		began := time.Now()
		refused := h.lease(broken, broken.Limits[0])
		if !strings.Contains(refused.GetError(), "policy shop/second is not among what can be put in force on this pod") || refused.GetDefect() || !refused.GetOfLimit() {
			t.Errorf("of the broken policy = %v, want an outage of that limit alone", refused)
		}
		if waited := time.Since(began); waited != 0 {
			t.Errorf("the refusal came after %s, though all was known", waited)
		}
		if reply := h.lease(good, good.Limits[0], want(7)); reply.GetGranted() != 7 {
			t.Errorf("of the other = %v, want 7 units", reply)
		}
		if share := h.beat(db); share.GetError() != "" || share.GetShare() != 10 {
			t.Errorf("share = %v, want 10", share)
		}
		other := *db
		other.Name = "cache"
		if share := h.beat(&other); !strings.Contains(share.GetError(), "not among what can be put in force") || share.GetDefect() {
			t.Errorf("share of another pool = %v, want an outage", share)
		}
		h.acknowledge(l.serving(id).version, "")
		synctest.Wait()
		if got := l.Observe("shop", "checkout"); got.Holders != 1 || len(got.Sessions) != 1 || got.Sessions[0].Generation != 0 {
			t.Errorf("observation = %+v, want a holder that says of nothing that it enforces it", got)
		}
		if got := l.Observe("shop", "second"); got.Holders != 0 || len(got.Sessions) != 0 {
			t.Errorf("observation of the broken policy = %+v, want nobody", got)
		}

		repaired := nextGeneration(broken)
		resolver.lack(nil, good, repaired)
		for range 3 {
			l.Refresh("shop")
			synctest.Wait()
		}
		l.requireSent(id, good, repaired)
		if n := testutil.ToFloat64(l.metrics.pushes); n != 1 {
			t.Errorf("%v configurations were sent, want one", n)
		}
		if got := h.config(); len(got.Policies) != 2 || got.Pool == nil {
			t.Errorf("configuration = %+v, want all", got)
		}
		if got := l.observed(); got.Generation != 1 {
			t.Errorf("session = %+v, want generation 1 in force", got)
		}
		if reply := h.lease(good, good.Limits[0], want(7)); reply.GetGranted() != 3 {
			t.Errorf("of the same window = %v, want what is left of it", reply)
		}
		if reply := h.lease(repaired, repaired.Limits[0]); reply.GetGranted() != 1 {
			t.Errorf("of the repaired policy = %v, want one unit", reply)
		}
	})
}

// TestAHolderThatEnforcesTheWholeIsNotSentIt when what was broken is as it was.
func TestAHolderThatEnforcesTheWholeIsNotSentIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		good := limited("shop", 1, 10, limiter.Second)
		l, resolver := leadWithout(t, good)
		defer l.end()
		id := pod("shop", "web-0")
		s := l.connectWith(id, "1", wholeOf(nil, good, secondOf(good)))
		defer s.close()
		resolver.lack(nil, good, secondOf(good))
		l.Refresh("shop")
		l.requireSent(id, good, secondOf(good))
		if n := testutil.ToFloat64(l.metrics.pushes); n != 0 {
			t.Errorf("%v configurations were sent, want none", n)
		}
		if got := l.observed(); got.Generation != 1 {
			t.Errorf("session = %+v, want generation 1 in force", got)
		}
	})
}

// TestAPodIsServedByTheNewestPart, which is kept as long as it serves; what became of the
// broken policy does not matter once it is gone.
func TestAPodIsServedByTheNewestPart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		good := limited("shop", 1, 10, limiter.Second)
		changed := nextGeneration(good)
		l, resolver := leadWithout(t, good)
		defer l.end()
		id := pod("shop", "web-0")
		s := l.connectWith(id, "1", wholeOf(nil, good, secondOf(good)))
		defer s.close()
		first := l.serving(id)
		time.Sleep(figuresTime + time.Second) // holders were counted
		l.Refresh("shop")
		if l.serving(id) != first {
			t.Error("a part that serves was encoded again")
		}
		resolver.lack(errPartial, changed)
		l.Refresh("shop")
		synctest.Wait()
		requireAnswers(t, s, changed)
		l.requireSent(id)
		resolver.lack(nil, changed)
		l.Refresh("shop")
		l.requireSent(id, changed)
	})
}

// TestHoldersThatAreServedCount, in the numbers that holders hear, too.
func TestHoldersThatAreServedCount(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		good := limited("shop", 1, 10, limiter.Second)
		l, _ := leadWithout(t, good)
		defer l.end()
		a, b := pod("shop", "web-0"), pod("shop", "web-1")
		s := l.connectWith(a, "1", wholeOf(nil, good, secondOf(good)))
		defer s.close()
		s.report()
		second := l.connectWith(b, "1", "") // a new pod, which is sent the part
		defer second.close()
		second.report()
		time.Sleep(figuresTime + time.Second)
		if got := [2]int64{l.holdersOf(a, good), l.holdersOf(b, good)}; got != [2]int64{2, 2} {
			t.Errorf("holders = %v, want 2 as both know", got)
		}
		s.close()
		time.Sleep(time.Second)
		if got := l.holdersOf(b, good); got != 1 {
			t.Errorf("holders = %d after one is gone, want 1", got)
		}
		if got := l.Observe("shop", "checkout"); got.Holders != 1 {
			t.Errorf("observation = %+v, want one holder", got)
		}
	})
}

// TestNoNumberOfHoldersFallsWhileOneIsUnknown: a holder that came back while a policy is
// broken may still enforce it.
func TestNoNumberOfHoldersFallsWhileOneIsUnknown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		good := limited("shop", 1, 10, limiter.Second)
		both := []policy.Policy{good, secondOf(good)}
		resolver := publishing(both...)
		l := lead(t, &memoryTerms{}, resolver)
		defer l.end()
		stays, returns := pod("shop", "web-0"), pod("shop", "web-1")
		stay := l.connectWith(stays, "1", wholeOf(nil, both...))
		defer stay.close()
		stay.report()
		s := l.connectWith(returns, "1", wholeOf(nil, both...))
		s.report()
		requireTold := func(when string, want int64) {
			t.Helper()
			time.Sleep(time.Second)
			if got := l.holdersOf(stays, secondOf(good)); got != want {
				t.Errorf("%s the pod heard of %d holders, want %d", when, got, want)
			}
		}
		time.Sleep(figuresTime)
		requireTold("of both", 2)
		resolver.lack(errPartial, good)
		s.close()
		s = l.connectWith(returns, "1", wholeOf(nil, both...))
		s.report()
		requireTold("while the second is served without it", 2)
		resolver.lack(nil, both...)
		l.Refresh("shop")
		requireTold("when it is repaired", 2)
		s.close()
		requireTold("when the second is gone", 1)
	})
}

// TestWhatIsServedIsCounted, from the first report on, which comes before the policies are
// known.
func TestWhatIsServedIsCounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		good, db := limited("shop", 1, 10, limiter.Second), pooled("shop", 1, 10)
		resolver := sharing(db)
		resolver.lack(errPartial, good)
		l := lead(t, &memoryTerms{}, resolver)
		defer l.end()
		time.Sleep(figuresTime + time.Second)
		resolver.takes = 20 * time.Millisecond
		s := l.dial(tokenOf(pod("shop", "web-0")))
		defer s.close()
		hello := helloOf(pod("shop", "web-0"), "1")
		hello.ConfigVersion = wholeOf(db, good, secondOf(good))
		s.send(&fleetpb.FromHolder{Message: &fleetpb.FromHolder_Hello{Hello: hello}})
		s.recv()
		s.report(countedOf(good, 18), countedOf(secondOf(good), 3))
		if got := l.serving(pod("shop", "web-0")); got != nil {
			t.Fatalf("the policies are known already: %+v", got)
		}
		rounds := func() {
			for range 4 {
				time.Sleep(time.Second)
				s.report()
			}
		}
		rounds()
		s.report(countedOf(good, 15)) // of a window that began when all was known
		(&holder{sidecar: s}).reportPool(db)
		rounds()
		got := l.figures()
		if got.Overshoot == nil || got.Overshoot.Observed != 5 || got.Overshoot.Worst != 8 {
			t.Errorf("figures = %+v, overshoot %+v, want an overshoot of 8 and one of 5 last", got, got.Overshoot)
		}
		if got := l.ObservePool("shop", "db"); len(got.Sessions) != 1 || got.Sessions[0].Report == nil || got.Figures.InFlight != 3 {
			t.Errorf("pool = %+v, want what the holder reported", got)
		}
		s.close()
		if got := l.ObservePool("shop", "db"); got.Figures.InFlight != 0 {
			t.Errorf("pool = %+v, want nothing of a holder that is gone", got.Figures)
		}
	})
}

// TestTheRefusalOfABrokenPolicyIsDroppedOnceItIsRepaired: it is not accounted for, and its
// windows have no figure. Those of the other policy have.
func TestTheRefusalOfABrokenPolicyIsDroppedOnceItIsRepaired(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		good := limited("shop", 1, 10, limiter.Second)
		both := []policy.Policy{good, secondOf(good)}
		resolver := publishing(both...)
		l := lead(t, &memoryTerms{}, resolver)
		defer l.end()
		a := l.connectWith(pod("shop", "web-0"), "1", wholeOf(nil, both...))
		defer a.close()
		resolver.lack(errPartial, good)
		b := l.connectWith(pod("shop", "web-1"), "1", wholeOf(nil, both...))
		defer b.close()
		for range int(figuresTime/time.Second) + 5 {
			a.report()
			b.report()
			time.Sleep(time.Second)
		}
		for _, s := range []*sidecar{b, a} {
			s.report(countedOf(good, 4), countedOf(secondOf(good), 8))
		}
		resolver.lack(nil, both...)
		l.Refresh("shop")
		verdicts := func() (of [2]audit.Verdict) {
			for i, p := range both {
				of[i] = l.Observe("shop", p.Name).Limits[0].Verdict
			}
			return of
		}
		rounds := func() {
			for range 4 {
				time.Sleep(time.Second)
				a.report()
				b.report()
			}
		}
		rounds()
		if got := verdicts(); got != [2]audit.Verdict{audit.Measured, audit.ReportsMissing} {
			t.Errorf("verdicts = %v, want a measurement of the policy that was served, and reports missing of the other", got)
		}
		a.report(countedOf(good, 4), countedOf(secondOf(good), 8))
		b.report(countedOf(good, 4), countedOf(secondOf(good), 1))
		rounds()
		if got := verdicts(); got != [2]audit.Verdict{audit.Measured, audit.Measured} {
			t.Errorf("verdicts of later windows = %v, want measurements of both", got)
		}
	})
}
