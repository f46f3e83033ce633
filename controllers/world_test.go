package controllers_test

import (
	"context"
	"maps"
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
	"github.com/weir-dev/weir/internal/controlplane/audit/meter"
	"github.com/weir-dev/weir/internal/controlplane/coordinator"
	"github.com/weir-dev/weir/internal/controlplane/translate"
)

// world is one namespace with one policy, "checkout", that selects app=checkout.
type world struct {
	*testing.T
	*WithT
	policy types.NamespacedName
}

func newWorld(t *testing.T, changes ...func(*v1alpha1.RateLimitPolicy)) *world {
	t.Helper()
	w := &world{T: t, WithT: NewWithT(t)}
	w.SetDefaultEventuallyTimeout(patience)
	w.SetDefaultEventuallyPollingInterval(interval)
	w.SetDefaultConsistentlyDuration(quiet)
	w.SetDefaultConsistentlyPollingInterval(interval)

	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "shop-"}}
	w.Expect(server.Create(t.Context(), namespace)).To(Succeed())
	w.policy = types.NamespacedName{Namespace: namespace.Name, Name: "checkout"}
	policy := &v1alpha1.RateLimitPolicy{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.policy.Namespace, Name: w.policy.Name},
		Spec: v1alpha1.RateLimitPolicySpec{
			PodSelector: metav1.LabelSelector{MatchLabels: map[string]string{"app": "checkout"}},
			Limits:      []v1alpha1.Limit{{Name: "all", Rates: []v1alpha1.Rate{{Limit: 1000, Window: "1s"}}}},
		},
	}
	for _, change := range changes {
		change(policy)
	}
	w.Expect(server.Create(t.Context(), policy)).To(Succeed())
	t.Cleanup(func() {
		if err := server.Delete(context.Background(), policy); client.IgnoreNotFound(err) != nil {
			t.Log(err)
		}
	})
	w.eventually(v1alpha1.AcceptedCondition, v1alpha1.AcceptedReason)
	return w
}

func (w *world) get() *v1alpha1.RateLimitPolicy {
	w.Helper()
	policy := &v1alpha1.RateLimitPolicy{}
	w.Expect(server.Get(w.Context(), w.policy, policy)).To(Succeed())
	return policy
}

func (w *world) condition(kind string) metav1.Condition {
	w.Helper()
	if c := meta.FindStatusCondition(w.get().Status.Conditions, kind); c != nil {
		return *c
	}
	return metav1.Condition{}
}

func (w *world) eventually(kind, reason string) {
	w.Helper()
	w.Eventually(func() string { return w.condition(kind).Reason }).Should(Equal(reason), kind)
}

// pod starts a pod that the policy selects and returns its UID.
func (w *world) pod(name string, labels map[string]string) string {
	w.Helper()
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.policy.Namespace, Name: name, Labels: map[string]string{"app": "checkout"}},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "app", Image: "app"}}},
	}
	maps.Copy(pod.Labels, labels)
	w.Expect(server.Create(w.Context(), pod)).To(Succeed())
	pod.Status.Phase = corev1.PodRunning
	w.Expect(server.Status().Update(w.Context(), pod)).To(Succeed())
	return string(pod.UID)
}

func (w *world) enforcer(name string) string {
	w.Helper()
	return w.pod(name, map[string]string{v1alpha1.EnforcerLabel: "true"})
}

// version returns what the fleet calls a generation of the world's policy.
func (w *world) version(generation int64) int64 {
	p := w.get()
	p.Generation = generation
	return translate.Generation(p)
}

func acknowledged(generation int64, uids ...string) coordinator.Observation {
	o := coordinator.Observation{Term: 1}
	for _, uid := range uids {
		o.Sessions = append(o.Sessions, coordinator.PolicySession{Session: coordinator.Session{PodUID: uid, Generation: generation}})
	}
	return o
}

func measured(o coordinator.Observation, generation int64, admittedPerSecond float64) coordinator.Observation {
	o.Limits = []coordinator.LimitFigures{{Limit: "all", Figures: audit.Figures{
		Generation: generation,
		Verdict:    audit.Measured,
		Flow:       meter.Flow{AdmittedPerSecond: admittedPerSecond},
		Overshoot:  &audit.Overshoot{WindowEnd: clock.Now()},
	}}}
	return o
}

// elapse moves the clock while the reports of say are already known. A reconcile that
// falls between the two would write what was known before, and end the wait for its
// interval.
func elapse(d time.Duration, say func()) {
	say()
	clock.SetTime(clock.Now().Add(d))
	say()
}

// settle waits until nothing more is written, and returns how much was.
func (w *world) settle() int64 {
	w.Helper()
	var last int64
	w.Eventually(func() bool {
		before := last
		last = writes.Load()
		return before == last
	}).WithPolling(quiet).Should(BeTrue())
	return last
}
