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
		shop := openShop(ctx, nil)
		shop.deploy(ctx, "checkout", 4, nil)
		shop.startLoad(overload)
		start := shop.warmUp(ctx)

		sleepUntil(ctx, start.Add(2500*time.Millisecond)) // the window's budget is spent
		shop.setLimit(ctx, 600)
		Expect(shop.admitted(ctx, start)).To(Equal(600), "the count goes on under the raised limit")

		start = shop.nextWindow()
		Expect(shop.admitted(ctx, start)).To(Equal(600))

		start = shop.nextWindow()
		sleepUntil(ctx, start.Add(2500*time.Millisecond))
		shop.setLimit(ctx, 200)
		Expect(shop.admitted(ctx, start)).To(Equal(600), "what was admitted before the edit stays admitted")
		Expect(shop.windows(ctx, shop.nextWindow(), 2)).To(HaveEach(200))
	}, SpecTimeout(2*time.Minute))

	It("that deletes the policy and creates it again finds the old count", func(ctx SpecContext) {
		shop := openShop(ctx, nil)
		shop.deploy(ctx, "checkout", 2, nil)
		shop.startLoad(overload)
		start := shop.warmUp(ctx)
		sleepUntil(ctx, start.Add(-200*time.Millisecond))
		shop.load.SetRate(1) // so that little passes while there is no policy
		sleepUntil(ctx, start.Add(100*time.Millisecond))
		shop.load.SetRate(overload)
		sleepUntil(ctx, start.Add(2500*time.Millisecond))
		shop.load.SetRate(1)
		before := int(shop.tally.Between(start, start.Add(shop.window)))
		Expect(before).To(Equal(limit))

		Expect(kube.Delete(ctx, shop.policy)).To(Succeed())
		shop.policy = policyIn(shop.namespace)
		Expect(kube.Create(ctx, shop.policy)).To(Succeed())
		shop.awaitProgrammed(ctx)
		shop.load.SetRate(overload)
		Expect(shop.admitted(ctx, start)).To(BeNumerically("~", limit, 5))
	}, SpecTimeout(time.Minute))
})

// setLimit edits the limit and returns when every sidecar acknowledged it.
func (s *shop) setLimit(ctx context.Context, to int64) {
	GinkgoHelper()
	base := s.policy.DeepCopy()
	s.policy.Spec.Limits[0].Rates[0].Limit = to
	Expect(kube.Patch(ctx, s.policy, client.MergeFrom(base))).To(Succeed())
	s.awaitProgrammed(ctx)
}

// awaitProgrammed fails when the present generation is not acknowledged by all
// sidecars within two seconds.
func (s *shop) awaitProgrammed(ctx context.Context) {
	GinkgoHelper()
	generation := s.policy.Generation
	Eventually(func(g Gomega) {
		c := meta.FindStatusCondition(s.status(ctx, g).Conditions, v1alpha1.ProgrammedCondition)
		g.Expect(c).To(HaveValue(And(
			HaveField("Status", metav1.ConditionTrue),
			HaveField("Reason", v1alpha1.ProgrammedReason),
			HaveField("ObservedGeneration", generation),
		)))
	}, 2*time.Second, 50*time.Millisecond).Should(Succeed())
}
