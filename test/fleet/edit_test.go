//go:build fleet

package fleet

import (
	"context"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/weir-dev/weir/api/v1alpha1"
)

var _ = Describe("An edit under load", func() {
	It("is acknowledged by all sidecars within two seconds and opens no second budget", func(ctx SpecContext) {
		const raised, lowered = 600, 200
		shop := openShop(ctx, nil)
		shop.deploy(ctx, "checkout", 4, nil)
		shop.startLoad(overload)
		start := shop.warmUp(ctx)

		sleepUntil(ctx, start.Add(2*time.Second)) // the window's budget is spent
		shop.setLimit(ctx, raised)
		Expect(shop.admitted(ctx, start)).To(And(BeNumerically("<=", raised), BeNumerically(">", limit)), "the count goes on under the raised limit")
		shop.awaitUsed(ctx, shop.nextWindow(), 1, raised, raised)

		start = shop.nextWindow()
		sleepUntil(ctx, start.Add(2500*time.Millisecond))
		shop.setLimit(ctx, lowered)
		// With less a second budget would not show.
		Expect(shop.admitted(ctx, start)).To(And(BeNumerically("<=", raised), BeNumerically(">", raised-lowered)), "what was admitted before the edit stays admitted")
		shop.awaitUsed(ctx, shop.nextWindow(), 2, lowered, lowered)
	}, SpecTimeout(5*time.Minute))

	It("that deletes the policy and creates it again finds the old count", func(ctx SpecContext) {
		shop := openShop(ctx, nil)
		shop.deploy(ctx, "checkout", 2, nil)
		shop.startLoad(overload)
		shop.warmUp(ctx)
		inARow(1, BeTrue(), func(int) (aSecondBudgetWouldShow bool) {
			start := shop.nextWindow()
			sleepUntil(ctx, start.Add(-200*time.Millisecond))
			shop.load.SetRate(1)
			sleepUntil(ctx, start.Add(100*time.Millisecond))
			shop.load.SetRate(overload)
			sleepUntil(ctx, start.Add(2500*time.Millisecond))
			shop.load.SetRate(1) // so that little passes without a policy
			end := start.Add(shop.window)
			before := int(shop.tally.Between(start, end))
			Expect(before).To(BeNumerically("<=", limit))

			Expect(kube.Delete(ctx, shop.policy)).To(Succeed())
			shop.policy = policyIn(shop.namespace)
			Expect(kube.Create(ctx, shop.policy)).To(Succeed())
			shop.awaitProgrammed(ctx, longest)
			left := time.Until(end)
			shop.load.SetRate(overload)
			Expect(shop.admitted(ctx, start)).To(BeNumerically("<=", limit+5))
			return before > limit/2 && left > time.Second
		})
	}, SpecTimeout(3*time.Minute))
})

// setLimit edits the limit and returns when every sidecar acknowledged it, in the time
// that is promised for it.
func (s *shop) setLimit(ctx context.Context, to int64) {
	GinkgoHelper()
	base := s.policy.DeepCopy()
	s.policy.Spec.Limits[0].Rates[0].Limit = to
	Expect(kube.Patch(ctx, s.policy, client.MergeFrom(base))).To(Succeed())
	s.awaitProgrammed(ctx, 2*time.Second)
}

// awaitProgrammed fails when the present generation is not acknowledged by all
// sidecars within a time.
func (s *shop) awaitProgrammed(ctx context.Context, within time.Duration) {
	GinkgoHelper()
	generation := s.policy.Generation
	Eventually(func(g Gomega) {
		c := meta.FindStatusCondition(s.status(ctx, g).Conditions, v1alpha1.ProgrammedCondition)
		g.Expect(c).To(HaveValue(And(
			HaveField("Status", metav1.ConditionTrue),
			HaveField("Reason", v1alpha1.ProgrammedReason),
			HaveField("ObservedGeneration", generation),
		)))
	}, within, 50*time.Millisecond).Should(Succeed())
}
