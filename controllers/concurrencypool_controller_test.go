package controllers_test

import (
	"context"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/weir-dev/weir/api/v1alpha1"
	"github.com/weir-dev/weir/internal/controlplane/audit"
	"github.com/weir-dev/weir/internal/controlplane/audit/poolaudit"
	"github.com/weir-dev/weir/internal/controlplane/coordinator"
	"github.com/weir-dev/weir/internal/controlplane/translate"
	"github.com/weir-dev/weir/pkg/limiter"
)

// A poolWorld is a world with pools instead of a policy.
type poolWorld struct {
	*world
	namespace string
}

func newPoolWorld(t *testing.T) *poolWorld {
	t.Helper()
	w := newWorld(t)
	return &poolWorld{world: w, namespace: w.policy.Namespace}
}

func (w *poolWorld) name(name string) types.NamespacedName {
	return types.NamespacedName{Namespace: w.namespace, Name: name}
}

// create makes a pool that selects pods with app=checkout and the labels.
func (w *poolWorld) create(name string, change ...func(*v1alpha1.ConcurrencyPoolSpec)) {
	w.Helper()
	p := &v1alpha1.ConcurrencyPool{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: name},
		Spec: v1alpha1.ConcurrencyPoolSpec{
			PodSelector: metav1.LabelSelector{MatchLabels: map[string]string{"app": "checkout"}},
			Limit:       v1alpha1.PoolLimit{Min: new(int64(8)), Max: 4000},
		},
	}
	for _, c := range change {
		c(&p.Spec)
	}
	w.Expect(server.Create(w.Context(), p)).To(Succeed())
	w.Cleanup(func() {
		if err := server.Delete(context.Background(), p); client.IgnoreNotFound(err) != nil {
			w.Log(err)
		}
	})
}

func (w *poolWorld) pool(name string) *v1alpha1.ConcurrencyPool {
	w.Helper()
	p := &v1alpha1.ConcurrencyPool{}
	w.Expect(server.Get(w.Context(), w.name(name), p)).To(Succeed())
	return p
}

func (w *poolWorld) eventuallyOf(name, kind, reason string) *metav1.Condition {
	w.Helper()
	var found *metav1.Condition
	w.Eventually(func() string {
		if found = meta.FindStatusCondition(w.pool(name).Status.Conditions, kind); found != nil {
			return found.Reason
		}
		return ""
	}).Should(Equal(reason), kind)
	return found
}

// poolVersion returns what the fleet calls the present generation of a pool.
func (w *poolWorld) poolVersion(name string) int64 { return translate.Generation(w.pool(name)) }

// dividing is what the fleet says when each of the pods reports the same of a version.
func dividing(version int64, of poolaudit.Figures, uids ...string) coordinator.PoolObservation {
	of.Generation = version
	o := coordinator.PoolObservation{Term: 1, Figures: &of}
	for _, uid := range uids {
		o.Sessions = append(o.Sessions, coordinator.PoolSession{
			Session: coordinator.Session{Pod: "pod-of-" + uid, PodUID: uid, Generation: version},
			Report:  &poolaudit.Report{Generation: version, Share: of.Limit / int64(len(uids)), InFlight: 1},
		})
	}
	return o
}

func healthy(limit int64) poolaudit.Figures {
	return poolaudit.Figures{
		Verdict: audit.Measured, Limit: limit, Holders: 1, Granted: limit, InFlight: 380, Measuring: 1,
		Baseline: 21 * limiter.Millisecond, Latency: 26 * limiter.Millisecond,
		Overshoot: &poolaudit.Overshoot{},
	}
}

func TestAPoolIsProgrammedByAcknowledgements(t *testing.T) {
	w := newPoolWorld(t)
	before := fleet.refreshes(w.namespace)
	w.create("db")
	w.eventuallyOf("db", v1alpha1.AcceptedCondition, v1alpha1.AcceptedReason)
	w.eventuallyOf("db", v1alpha1.ProgrammedCondition, v1alpha1.NoEnforcersReason)
	a := w.enforcer("a")
	w.eventuallyOf("db", v1alpha1.ProgrammedCondition, v1alpha1.ReconcilingReason)
	w.Expect(fleet.refreshes(w.namespace)).To(BeNumerically(">", before), "the pool was published")

	fleet.sayOfPool(w.name("db"), dividing(w.poolVersion("db"), healthy(412), a))
	w.eventuallyOf("db", v1alpha1.ProgrammedCondition, v1alpha1.ProgrammedReason)
	w.eventuallyOf("db", v1alpha1.WithinBoundCondition, v1alpha1.MeasuredReason)
	w.eventuallyOf("db", v1alpha1.CoordinatorReachableCondition, v1alpha1.ReachableReason)
	saturated := w.eventuallyOf("db", v1alpha1.SaturatedCondition, v1alpha1.HasHeadroomReason)
	w.Expect(saturated.Message).To(Equal("limit 412 by Gradient2 between 8 and 4000, the median of what 1 pod infers: latency 26ms against 21ms without load"))
	w.Expect(w.pool("db").Status.Summary).To(Equal(v1alpha1.PoolSummary{
		Pods: "1/1", Limit: "412", InFlight: "380", Overshoot: "0 ≤ 0", Unused: "-", Latency: "26ms/21ms", Saturated: "No",
	}))
	w.Expect(w.pool("db").Status.Shares).To(Equal([]v1alpha1.PodShare{{Pod: "pod-of-" + a, Share: 412, InFlight: 1}}))
}

// The loser of a conflict learns of it, and again when the winner goes. The name
// decides between two pools that were created in one second.
func TestAConflictIsLiftedWithTheOlderPool(t *testing.T) {
	w := newPoolWorld(t)
	w.enforcer("a")
	w.create("a-first")
	w.eventuallyOf("a-first", v1alpha1.AcceptedCondition, v1alpha1.AcceptedReason)
	w.create("b-second")
	lost := w.eventuallyOf("b-second", v1alpha1.AcceptedCondition, v1alpha1.ConflictedReason)
	w.Expect(lost.Message).To(HavePrefix("pool a-first is older and applies to pods that both select: a;"))
	w.Expect(w.pool("b-second").Status.Conditions).To(HaveLen(3)) // with Ready and Stalled
	w.eventuallyOf("a-first", v1alpha1.AcceptedCondition, v1alpha1.AcceptedReason)

	before := fleet.refreshes(w.namespace)
	w.Expect(server.Delete(t.Context(), w.pool("a-first"))).To(Succeed())
	w.eventuallyOf("b-second", v1alpha1.AcceptedCondition, v1alpha1.AcceptedReason)
	w.Expect(w.pool("b-second").Status.Summary.Pods).To(Equal("0/1"))
	w.Expect(fleet.refreshes(w.namespace)).To(BeNumerically(">", before), "the pod gets the other pool")
}

func TestFiguresOfAPoolWaitAndConditionsDoNot(t *testing.T) {
	w := newPoolWorld(t)
	w.create("db")
	a := w.enforcer("a")
	say := func(f poolaudit.Figures) { fleet.sayOfPool(w.name("db"), dividing(w.poolVersion("db"), f, a)) }
	say(healthy(100))
	w.Eventually(func() string { return w.pool("db").Status.Summary.Limit }).Should(Equal("100"))
	w.settle()

	say(healthy(200))
	w.Consistently(func() string { return w.pool("db").Status.Summary.Limit }).Should(Equal("100"))
	elapse(18*time.Second, func() { say(healthy(300)) })
	w.Eventually(func() string { return w.pool("db").Status.Summary.Limit }).Should(Equal("300"))

	full := healthy(300)
	full.Saturated = true
	say(full)
	w.eventuallyOf("db", v1alpha1.SaturatedCondition, v1alpha1.AtLimitReason)
	full.Verdict, full.Overshoot = audit.Exceeded, &poolaudit.Overshoot{Observed: 3, Worst: 3, WorstTime: clock.Now()}
	say(full)
	w.eventuallyOf("db", v1alpha1.WithinBoundCondition, v1alpha1.BoundExceededReason)
	w.Expect(w.pool("db").Status.Summary.Overshoot).To(Equal("3 > 0"))

	before := w.settle()
	for range 5 {
		clock.SetTime(clock.Now().Add(time.Minute))
		say(full)
	}
	w.Consistently(writes.Load).Should(Equal(before), "what is the same is not written again")
}

// Figures are written again soon after an edit or a change of the holders, once.
func TestFiguresOfAPoolSettle(t *testing.T) {
	w := newPoolWorld(t)
	w.create("db")
	a := w.enforcer("a")
	say := func(version int64, f poolaudit.Figures) { fleet.sayOfPool(w.name("db"), dividing(version, f, a)) }
	limit := func() string { return w.pool("db").Status.Summary.Limit }
	pass := func(d time.Duration, f poolaudit.Figures) {
		elapse(d, func() { say(w.poolVersion("db"), f) })
	}
	pass(0, healthy(100))
	w.Eventually(limit).Should(Equal("100"))
	pass(2*time.Second, healthy(110))
	w.Eventually(limit).Should(Equal("110"), "after the first figures")
	w.settle()
	pass(10*time.Second, healthy(120))
	w.Consistently(limit).Should(Equal("110"))

	more := healthy(130)
	more.Holders = 2
	pass(0, more)
	w.Eventually(limit).Should(Equal("130"), "another holder")
	more.Limit = 140
	pass(2*time.Second, more)
	w.Eventually(limit).Should(Equal("140"), "once more")
	w.settle()
	more.Limit = 150
	pass(2*time.Second, more)
	w.Consistently(limit).Should(Equal("140"))

	old := w.poolVersion("db")
	p := w.pool("db")
	p.Spec.Limit.Max = 200
	w.Expect(server.Update(t.Context(), p)).To(Succeed())
	w.Eventually(limit).Should(Equal("-"), "figures of another generation")
	say(old, more)
	w.Consistently(limit).Should(Equal("-"))
	pass(time.Second, more)
	w.Eventually(limit).Should(Equal("150"))
	more.Limit = 160
	pass(2*time.Second, more)
	w.Eventually(limit).Should(Equal("160"), "once more after an edit")
}

func TestAPoolThatCannotBeEnforcedIsRefused(t *testing.T) {
	w := newPoolWorld(t)
	w.create("db", func(s *v1alpha1.ConcurrencyPoolSpec) {
		s.Exempt = []v1alpha1.Match{{Paths: []v1alpha1.PathMatch{{Type: v1alpha1.PathRegularExpression, Value: "("}}}}
	})
	refused := w.eventuallyOf("db", v1alpha1.AcceptedCondition, v1alpha1.InvalidReason)
	w.Expect(refused.Message).To(ContainSubstring("spec.exempt[0].paths[0].value"))
	w.Expect(w.pool("db").Status.Conditions).To(HaveLen(3)) // with Ready and Stalled
}

func TestADoubtfulPoolIsAcceptedWithAWarning(t *testing.T) {
	w := newPoolWorld(t)
	w.create("db", func(s *v1alpha1.ConcurrencyPoolSpec) { s.Limit = v1alpha1.PoolLimit{Min: new(int64(5)), Max: 5} })
	accepted := w.eventuallyOf("db", v1alpha1.AcceptedCondition, v1alpha1.AcceptedReason)
	w.Expect(accepted.Message).To(ContainSubstring("spec.limit.min"))
}

func TestAPoolWithoutItsCredentialsIsUnreachable(t *testing.T) {
	w := newPoolWorld(t)
	w.create("db", func(s *v1alpha1.ConcurrencyPoolSpec) {
		s.Coordinator = v1alpha1.Store{Type: v1alpha1.RedisStoreType, Redis: &v1alpha1.RedisStore{
			Address: "redis:6379", SecretRef: &v1alpha1.SecretReference{Name: "missing"},
		}}
	})
	unreachable := w.eventuallyOf("db", v1alpha1.CoordinatorReachableCondition, v1alpha1.UnreachableReason)
	w.Expect(unreachable.Message).To(ContainSubstring("there is no secret " + w.namespace + "/missing"))
}

func TestADeletedPoolIsNoLongerEnforced(t *testing.T) {
	w := newPoolWorld(t)
	w.create("db")
	w.eventuallyOf("db", v1alpha1.AcceptedCondition, v1alpha1.AcceptedReason)
	w.settle()
	before := fleet.refreshes(w.namespace)
	w.Expect(server.Delete(t.Context(), w.pool("db"))).To(Succeed())
	w.Eventually(func() int { return fleet.refreshes(w.namespace) }).Should(BeNumerically(">", before))
}

func TestAPodThatIsRelabelledLeavesThePool(t *testing.T) {
	w := newPoolWorld(t)
	w.create("db")
	w.enforcer("a")
	w.eventuallyOf("db", v1alpha1.ProgrammedCondition, v1alpha1.ReconcilingReason)
	w.Expect(server.Patch(t.Context(), &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "a"}},
		client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"labels":{"app":"other"}}}`)))).To(Succeed())
	w.eventuallyOf("db", v1alpha1.ProgrammedCondition, v1alpha1.NoEnforcersReason)
}
