package controllers_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/weir-dev/weir/api/v1alpha1"
	"github.com/weir-dev/weir/internal/controlplane/audit"
	"github.com/weir-dev/weir/internal/controlplane/coordinator"
	"github.com/weir-dev/weir/internal/fleetpb"
)

func TestProgrammedSpeaksOfAcknowledgementsOnly(t *testing.T) {
	w := newWorld(t)
	w.eventually(v1alpha1.ProgrammedCondition, v1alpha1.NoEnforcersReason)

	a, b := w.enforcer("a"), w.enforcer("b")
	w.eventually(v1alpha1.ProgrammedCondition, v1alpha1.ReconcilingReason)
	w.Expect(fleet.refreshes(w.policy.Namespace)).To(BeNumerically(">", 0), "the policy was published")
	w.Consistently(func() metav1.ConditionStatus { return w.condition(v1alpha1.ProgrammedCondition).Status }).
		Should(Equal(metav1.ConditionFalse), "what was published is not what is enforced")

	fleet.say(w.policy, acknowledged(w.version(1), a))
	clock.SetTime(clock.Now().Add(2 * time.Second)) // past the interval of messages
	fleet.say(w.policy, acknowledged(w.version(1), a))
	w.Eventually(func() string { return w.condition(v1alpha1.ProgrammedCondition).Message }).
		Should(Equal("1 of 2 enforcers do not run generation 1 yet: b (not heard of yet)"))

	fleet.say(w.policy, acknowledged(w.version(1), a, b))
	w.eventually(v1alpha1.ProgrammedCondition, v1alpha1.ProgrammedReason)
	w.Expect(w.get().Status.Summary.Pods).To(Equal("2/2"))

	policy := w.get()
	policy.Spec.Limits[0].Rates[0].Limit = 7
	w.Expect(server.Update(t.Context(), policy)).To(Succeed())
	w.eventually(v1alpha1.ProgrammedCondition, v1alpha1.ReconcilingReason)
	w.Expect(w.condition(v1alpha1.ProgrammedCondition).ObservedGeneration).To(Equal(int64(2)))
	fleet.say(w.policy, acknowledged(w.version(2), a, b))
	w.eventually(v1alpha1.ProgrammedCondition, v1alpha1.ProgrammedReason)
}

func TestPodsWithoutASidecarAreNamed(t *testing.T) {
	w := newWorld(t)
	a := w.enforcer("a")
	w.pod("bare", nil)
	fleet.say(w.policy, acknowledged(w.version(1), a))
	w.eventually(v1alpha1.ProgrammedCondition, v1alpha1.PartiallyProgrammedReason)
	w.Expect(w.condition(v1alpha1.ProgrammedCondition).Message).To(ContainSubstring("so not limited: bare;"))
	w.Expect(w.get().Status.Summary.Pods).To(Equal("1/2"))

	w.Expect(server.Delete(t.Context(), &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: w.policy.Namespace, Name: "bare"}},
		client.GracePeriodSeconds(0))).To(Succeed())
	w.eventually(v1alpha1.ProgrammedCondition, v1alpha1.ProgrammedReason)
}

// TestPodsThatAreGoneAreBuried: of sidecars that vanished, those are waited for whose pods
// still run.
func TestPodsThatAreGoneAreBuried(t *testing.T) {
	w := newWorld(t)
	a := w.enforcer("a")
	o := measured(acknowledged(w.version(1), a), w.version(1), 1)
	o.Limits[0].Vanished = []string{a, "of-a-pod-that-is-gone"}
	fleet.say(w.policy, o)
	w.Eventually(func() []string { return fleet.buriedOf(w.policy) }).Should(Equal([]string{"of-a-pod-that-is-gone"}))
}

func TestPodsThatLimitNothingAreNamed(t *testing.T) {
	w := newWorld(t)
	a, b := w.enforcer("a"), w.enforcer("b")
	o := acknowledged(w.version(1), a, b)
	o.Sessions[1].Capture = fleetpb.Capture_CAPTURE_NONE
	fleet.say(w.policy, o)
	w.eventually(v1alpha1.ProgrammedCondition, v1alpha1.PartiallyProgrammedReason)
	w.Expect(w.condition(v1alpha1.ProgrammedCondition)).To(And(
		HaveField("Status", metav1.ConditionFalse), HaveField("Message", ContainSubstring("no port of theirs is captured: b; name it http")),
	))
	w.Expect(w.get().Status.Summary.Pods).To(Equal("1/2"))

	fleet.say(w.policy, acknowledged(w.version(1), a, b))
	w.eventually(v1alpha1.ProgrammedCondition, v1alpha1.ProgrammedReason)
}

func TestAPodThatWaitsForANodeHoldsNothingUp(t *testing.T) {
	w := newWorld(t)
	a := w.enforcer("a")
	w.Expect(server.Create(t.Context(), &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.policy.Namespace, Name: "waits", Labels: map[string]string{"app": "checkout", v1alpha1.EnforcerLabel: "true"}},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "app", Image: "app"}}},
	})).To(Succeed())
	fleet.say(w.policy, acknowledged(w.version(1), a))
	w.eventually(v1alpha1.ProgrammedCondition, v1alpha1.ProgrammedReason)
	w.Expect(w.get().Status.Summary.Pods).To(Equal("1/1"))

	waits := &corev1.Pod{}
	w.Expect(server.Get(t.Context(), types.NamespacedName{Namespace: w.policy.Namespace, Name: "waits"}, waits)).To(Succeed())
	waits.Status.Phase = corev1.PodRunning
	w.Expect(server.Status().Update(t.Context(), waits)).To(Succeed())
	w.eventually(v1alpha1.ProgrammedCondition, v1alpha1.ReconcilingReason)
}

func TestAPodThatIsRelabelledLeavesThePolicy(t *testing.T) {
	w := newWorld(t)
	w.enforcer("a")
	w.eventually(v1alpha1.ProgrammedCondition, v1alpha1.ReconcilingReason)
	before := fleet.refreshes(w.policy.Namespace)
	w.Expect(server.Patch(t.Context(), &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: w.policy.Namespace, Name: "a"}},
		client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"labels":{"app":"other"}}}`)))).To(Succeed())
	w.eventually(v1alpha1.ProgrammedCondition, v1alpha1.NoEnforcersReason)
	w.Expect(fleet.refreshes(w.policy.Namespace)).To(BeNumerically(">", before), "its sidecar has to stop enforcing")
}

func TestAStatusThatSaysTheSameIsNotWrittenAgain(t *testing.T) {
	w := newWorld(t)
	a := w.enforcer("a")
	o := measured(acknowledged(w.version(1), a), w.version(1), 100)
	fleet.say(w.policy, o)
	w.eventually(v1alpha1.ProgrammedCondition, v1alpha1.ProgrammedReason)
	w.eventually(v1alpha1.WithinBoundCondition, v1alpha1.MeasuredReason)

	before := w.settle()
	version := w.get().ResourceVersion
	for range 5 {
		clock.SetTime(clock.Now().Add(time.Minute))
		fleet.say(w.policy, o)
	}
	w.Consistently(writes.Load).Should(Equal(before))
	w.Expect(w.get().ResourceVersion).To(Equal(version))
}

func TestFiguresWaitAndConditionsDoNot(t *testing.T) {
	w := newWorld(t)
	a := w.enforcer("a")
	fleet.say(w.policy, measured(acknowledged(w.version(1), a), w.version(1), 100))
	w.Eventually(func() string { return w.get().Status.Summary.Admitted }).Should(Equal("100/s"))
	w.settle()

	fleet.say(w.policy, measured(acknowledged(w.version(1), a), w.version(1), 200))
	w.Consistently(func() string { return w.get().Status.Summary.Admitted }).Should(Equal("100/s"))
	elapse(18*time.Second, func() { fleet.say(w.policy, measured(acknowledged(w.version(1), a), w.version(1), 300)) })
	w.Eventually(func() string { return w.get().Status.Summary.Admitted }).Should(Equal("300/s"))

	broken := measured(acknowledged(w.version(1), a), w.version(1), 300)
	broken.Limits[0].Verdict = audit.Exceeded
	broken.Limits[0].Overshoot = &audit.Overshoot{Observed: 3, Worst: 3, WorstEnd: clock.Now(), WindowEnd: clock.Now()}
	fleet.say(w.policy, broken)
	w.eventually(v1alpha1.WithinBoundCondition, v1alpha1.BoundExceededReason)
	w.Expect(w.get().Status.Summary.Overshoot).To(Equal("3 > 0"))
}

func TestAWipedStatusIsWrittenAgain(t *testing.T) {
	w := newWorld(t)
	w.settle()
	policy := w.get()
	policy.Status = v1alpha1.RateLimitPolicyStatus{}
	w.Expect(server.Status().Update(t.Context(), policy)).To(Succeed())
	w.eventually(v1alpha1.AcceptedCondition, v1alpha1.AcceptedReason)
}

func TestAnUnreachableRedisIsReported(t *testing.T) {
	w := newWorld(t, func(p *v1alpha1.RateLimitPolicy) {
		p.Spec.Store.Store = v1alpha1.Store{Type: v1alpha1.RedisStoreType, Redis: &v1alpha1.RedisStore{Address: "redis.shop.svc:6379"}}
	})
	w.eventually(v1alpha1.StoreReachableCondition, v1alpha1.ReachableReason)
	w.Expect(w.get().Status.Guarantee).To(HaveField("Grade", v1alpha1.HardExceptSplitBrainGuarantee))

	stores.fail(errors.New("connection refused"))
	defer stores.fail(nil)
	fleet.say(w.policy, coordinator.Observation{})
	w.eventually(v1alpha1.StoreReachableCondition, v1alpha1.UnreachableReason)
	w.Expect(w.get().Status.Guarantee).To(BeNil())
}

func TestAPolicyThatCannotBeEnforcedIsRefused(t *testing.T) {
	w := newWorld(t)
	a := w.enforcer("a")
	fleet.say(w.policy, acknowledged(w.version(1), a))
	w.eventually(v1alpha1.ProgrammedCondition, v1alpha1.ProgrammedReason)

	policy := w.get()
	policy.Spec.Limits[0].Match = []v1alpha1.Match{{Paths: []v1alpha1.PathMatch{{Type: v1alpha1.PathRegularExpression, Value: "("}}}}
	w.Expect(server.Update(t.Context(), policy)).To(Succeed())
	w.eventually(v1alpha1.AcceptedCondition, v1alpha1.InvalidReason)
	w.Expect(w.get().Status.Conditions).To(HaveLen(3)) // with Ready and Stalled
	w.Expect(w.condition(v1alpha1.AcceptedCondition).Message).To(ContainSubstring("spec.limits[0].match[0].paths[0].value"))
}

func TestADoubtfulPolicyIsAcceptedWithAWarning(t *testing.T) {
	w := newWorld(t, func(p *v1alpha1.RateLimitPolicy) {
		p.Spec.Consistency.Lease = &v1alpha1.Lease{Size: v1alpha1.LeaseSize{Type: v1alpha1.FixedSize, Batch: new(int64(1000))}}
	})
	w.Expect(w.condition(v1alpha1.AcceptedCondition).Message).To(ContainSubstring("spec.consistency.lease.size.batch"))
}

// TestAnEditIsPublishedWhileStatusesWait: as many policies as are reconciled at once wait
// for the API server, and more behind them.
func TestAnEditIsPublishedWhileStatusesWait(t *testing.T) {
	w := newWorld(t)
	w.settle()
	others := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "others-"}}
	w.Expect(server.Create(t.Context(), others)).To(Succeed())
	held.closed.Lock()
	defer held.closed.Unlock()
	for i := range 8 {
		p := w.get()
		p.ObjectMeta = metav1.ObjectMeta{Namespace: others.Name, Name: fmt.Sprintf("other-%d", i)}
		w.Expect(server.Create(t.Context(), p)).To(Succeed())
		t.Cleanup(func() { _ = server.Delete(context.Background(), p) })
	}
	w.Eventually(held.waiting.Load).Should(BeEquivalentTo(4), "the workers wait")
	before := fleet.refreshes(w.policy.Namespace)
	edited := w.get()
	edited.Spec.Limits[0].Rates[0].Limit++
	w.Expect(server.Update(t.Context(), edited)).To(Succeed())
	w.Eventually(func() int { return fleet.refreshes(w.policy.Namespace) }).Should(BeNumerically(">", before))
}

func TestADeletedPolicyIsNoLongerEnforced(t *testing.T) {
	w := newWorld(t)
	w.settle()
	before := fleet.refreshes(w.policy.Namespace)
	policy := w.get()
	w.Expect(policy.Finalizers).To(BeEmpty(), "nothing may hold up a deletion")
	w.Expect(server.Delete(t.Context(), policy)).To(Succeed())
	w.Eventually(func() int { return fleet.refreshes(w.policy.Namespace) }).Should(BeNumerically(">", before))
}
