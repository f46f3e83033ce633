//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/weir-dev/weir/api/v1alpha1"
)

const (
	budgetName = "checkout-world"

	// mostly is what is used of a budget at least, when it is all for those that ask: a busy machine
	// leaves a little.
	mostly = limit * 9 / 10
)

// budget applies a budget of some members, whose hub is this cluster.
func (s *shop) budget(ctx context.Context, members string) {
	GinkgoHelper()
	s.apply(ctx, fmt.Sprintf(`
apiVersion: weir.dev/v1alpha1
kind: FederatedBudget
metadata: {name: %[1]s, namespace: %[2]s}
spec:
  id: %[2]s/checkout
  rate: {limit: %[3]d, window: %[4]s}
  members: %[5]s
`, budgetName, s.namespace, limit, window, members))
}

// draw applies a policy by which the pods of a workload draw from the budget.
func (s *shop) draw(ctx context.Context, workload string) {
	GinkgoHelper()
	s.apply(ctx, fmt.Sprintf(`
apiVersion: weir.dev/v1alpha1
kind: RateLimitPolicy
metadata: {name: %[2]s, namespace: %[1]s}
spec:
  podSelector: {matchLabels: {workload: %[2]s}}
  limits: [{name: world, scope: Federated, budgetRef: {name: %[3]s}}]
  %[4]s
`, s.namespace, workload, budgetName, deny))
}

// awaitConnected returns when the budget has, or has not, the condition Connected.
func (s *shop) awaitConnected(ctx context.Context, want metav1.ConditionStatus) {
	GinkgoHelper()
	Eventually(func(g Gomega) {
		c := meta.FindStatusCondition(s.budgetStatus(ctx, g).Conditions, v1alpha1.ConnectedCondition)
		g.Expect(c).To(HaveValue(HaveField("Status", want)), "%s: %v", s.name, c)
	}, time.Minute, 200*time.Millisecond).Should(Succeed())
}

func (s *shop) budgetStatus(ctx context.Context, g Gomega) v1alpha1.FederatedBudgetStatus {
	var b v1alpha1.FederatedBudget
	g.Expect(s.kube.Get(ctx, client.ObjectKey{Namespace: s.namespace, Name: budgetName}, &b)).To(Succeed())
	return b.Status
}

// awaitBudgetExact returns when the status shows all members, and nothing beyond the limit in any window.
func (s *shop) awaitBudgetExact(ctx context.Context, members string) {
	GinkgoHelper()
	Eventually(func(g Gomega) {
		status := s.budgetStatus(ctx, g)
		g.Expect(status.Summary).To(HaveField("Members", members))
		g.Expect(status.Overshoot).NotTo(BeNil())
		g.Expect(status.Overshoot.Worst).To(HaveValue(BeZero()))
		g.Expect(meta.IsStatusConditionTrue(status.Conditions, v1alpha1.WithinBoundCondition)).To(BeTrue(), "%v", status.Conditions)
	}, time.Minute, time.Second).Should(Succeed())
}

var _ = Describe("A budget", func() {
	It("is one limit for all applications that draw from it", func(ctx SpecContext) {
		s := openShop(ctx)
		both := s.service("checkout", "", 80, 8080)
		both.Spec.Selector = map[string]string{"app": "checkout"}
		Expect(kube.Create(ctx, both)).To(Succeed())
		s.budget(ctx, "[{name: "+s.name+"}]")
		for _, workload := range []string{"cart", "search"} {
			s.draw(ctx, workload)
			s.deployAs(ctx, workload, 2)
		}
		s.awaitConnected(ctx, metav1.ConditionTrue)
		s.startLoad(ctx, overload)
		start := nextWindow()
		s.awaitFull(ctx, start, 2)
		s.nobodyMissed(ctx, start)
		s.awaitBudgetExact(ctx, "1/1")
	}, SpecTimeout(3*time.Minute))
})
