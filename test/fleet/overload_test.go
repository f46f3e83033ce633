//go:build fleet

package fleet

import (
	"context"
	"strconv"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/weir-dev/weir/api/v1alpha1"
)

var _ = Describe("A fleet under four times the load that its limit admits", func() {
	DescribeTable("admits exactly the limit in every window and says so",
		func(ctx SpecContext, store func() v1alpha1.Store) {
			shop := openShop(ctx, func(spec *v1alpha1.RateLimitPolicySpec) { spec.Store.Store = store() })
			shop.deploy(ctx, "checkout", 4, nil)
			start := shop.leaveCredits(ctx)

			shop.awaitFull(ctx, start, 4)

			Eventually(func(g Gomega) {
				status := shop.status(ctx, g)
				g.Expect(status.Enforcement).To(HaveValue(Equal(v1alpha1.Enforcement{Desired: 4, Current: 4})))
				g.Expect(meta.IsStatusConditionTrue(status.Conditions, v1alpha1.WithinBoundCondition)).To(BeTrue(), "%v", status.Conditions)
				g.Expect(status.Limits).To(HaveLen(1))
				of := status.Limits[0]
				g.Expect(of.Overshoot.Observed).To(HaveValue(BeZero()))
				g.Expect(of.Overshoot.Worst).To(HaveValue(BeZero()))
				g.Expect(of.UnderUtilization.ObservedBasisPoints).To(HaveValue(BeNumerically("<", 300)))
				perTrip, err := strconv.ParseFloat(of.RequestsPerRoundTrip, 64)
				g.Expect(err).NotTo(HaveOccurred())
				g.Expect(perTrip).To(BeNumerically(">=", 50))
			}, longest, time.Second).Should(Succeed())
		},
		Entry("with the controller as the store", more, SpecTimeout(5*time.Minute), func() v1alpha1.Store {
			return v1alpha1.Store{Type: v1alpha1.ControllerStore}
		}),
		Entry("with Redis as the store", more, SpecTimeout(5*time.Minute), func() v1alpha1.Store {
			of, _ := startRedis(context.Background())
			return of
		}),
	)
})
