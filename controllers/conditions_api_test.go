package controllers_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/weir-dev/weir/api/v1alpha1"
)

// events returns the type, reason and note of the Events of an object, sorted.
func (w *world) events(kind, name string) []string {
	w.Helper()
	var list eventsv1.EventList
	w.Expect(server.List(w.Context(), &list, client.InNamespace(w.policy.Namespace))).To(Succeed())
	var out []string
	for _, e := range list.Items {
		if e.Regarding.Kind == kind && e.Regarding.Name == name {
			out = append(out, fmt.Sprintf("%s %s: %s", e.Type, e.Reason, e.Note))
		}
	}
	slices.Sort(out)
	return out
}

func TestTurnsOfAPolicyAreEvents(t *testing.T) {
	w := newWorld(t)
	w.eventually(v1alpha1.ProgrammedCondition, v1alpha1.NoEnforcersReason)
	a := w.enforcer("a")
	w.eventually(v1alpha1.ProgrammedCondition, v1alpha1.ReconcilingReason)
	fleet.say(w.policy, acknowledged(w.version(1), a))
	w.eventually(v1alpha1.ProgrammedCondition, v1alpha1.ProgrammedReason)
	want := []string{
		"Normal Programmed: 1 of 1 enforcers run generation 1",
		"Normal Reconciling: 1 of 1 enforcers do not run generation 1 yet: a (not heard of yet)",
	}
	read := func() []string { return w.events("RateLimitPolicy", w.policy.Name) }
	w.Eventually(read).Should(Equal(want))

	// To and fro under one generation, with other counts: nothing that is not there yet.
	for range 3 {
		fleet.say(w.policy, acknowledged(w.version(1)))
		w.eventually(v1alpha1.ProgrammedCondition, v1alpha1.ReconcilingReason)
		b := w.enforcer("b")
		elapse(2*time.Second, func() { fleet.say(w.policy, acknowledged(w.version(1), a)) })
		fleet.say(w.policy, acknowledged(w.version(1), a, b))
		w.eventually(v1alpha1.ProgrammedCondition, v1alpha1.ProgrammedReason)
		w.Expect(server.Delete(t.Context(), &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: w.policy.Namespace, Name: "b"}},
			client.GracePeriodSeconds(0))).To(Succeed())
	}
	w.Consistently(read).Should(Equal(want))

	policy := w.get()
	policy.Spec.Limits[0].Rates[0].Limit = 7
	w.Expect(server.Update(t.Context(), policy)).To(Succeed())
	w.eventually(v1alpha1.ProgrammedCondition, v1alpha1.ReconcilingReason)
	fleet.say(w.policy, acknowledged(w.version(2), a))
	w.Eventually(read).Should(ContainElement("Normal Programmed: 1 of 1 enforcers run generation 2"))
	w.Expect(server.Delete(t.Context(), &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: w.policy.Namespace, Name: "a"}},
		client.GracePeriodSeconds(0))).To(Succeed())
	w.Eventually(read).Should(ContainElement("Warning NoEnforcers: spec.podSelector selects no running pod"))
}

func TestTurnsOfPoolsAndBudgetsAreEvents(t *testing.T) {
	pools := newPoolWorld(t)
	pools.enforcer("a")
	pools.create("slots")
	pools.Eventually(func() []string { return pools.events("ConcurrencyPool", "slots") }).Should(ConsistOf(HavePrefix("Normal Reconciling: ")))

	budgets := newBudgetWorld(t)
	budgets.create("checkout", "checkout", func(b *v1alpha1.FederatedBudgetSpec) {
		b.Members = []v1alpha1.BudgetMember{{Name: "us-east"}, {Name: "us-west"}}
	})
	budgets.Eventually(func() []string { return budgets.events("FederatedBudget", "checkout") }).
		Should(ConsistOf(HavePrefix("Warning NotAMember: ")))
}
