//go:build fleet

package fleet

import (
	"fmt"
	"path/filepath"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/weir-dev/weir/api/v1alpha1"
)

const (
	inALong  = 6             // windows of perSet
	perLong  = limit * 5 / 2 // units of all of them together
	longSet  = inALong * perSet
	longName = "1250/30s"
)

var _ = Describe("A budget with two rates over two clusters", func() {
	It("holds both, also when its hub is killed, and shows each", func(ctx SpecContext) {
		f := federate(ctx, openSite(ctx, "us-east", filepath.Join(workDir, "rates-us-east")), func(spec *v1alpha1.FederatedBudgetSpec) {
			spec.AdditionalRates = []v1alpha1.BudgetRate{{Limit: perLong, Window: v1alpha1.Duration(longSet.String())}}
		})
		f.deploy(ctx, overload/2, overload/2)
		f.connected(ctx)
		// Every short window is held against its limit in f.admitted, and here the long one.
		long := func(start time.Time) (sum int) {
			GinkgoHelper()
			for i := range inALong {
				sum += f.admitted(ctx, start.Add(time.Duration(i)*perSet)).Sum()
			}
			fmt.Fprintf(GinkgoWriter, "%d of %d in the window of %s\n", sum, perLong, start.Format("15:04:05"))
			Expect(sum).To(BeNumerically("<=", perLong))
			return sum
		}
		start := f.hub.warmUp(ctx).Truncate(longSet).Add(longSet)
		Expect(long(start)).To(BeNumerically(">=", perLong*8/10))

		sleepUntil(ctx, start.Add(longSet+time.Second)) // in the midst of spending
		here.cluster.Controller.Kill()
		Expect(here.cluster.Controller.Start(ctx)).To(Succeed())
		long(start.Add(longSet))
		Expect(long(start.Add(2 * longSet))).To(BeNumerically(">=", perLong*8/10))

		for _, s := range f.shops() {
			Eventually(func(g Gomega) {
				b, err := s.budget(ctx)
				g.Expect(err).NotTo(HaveOccurred())
				g.Expect(b.Status.Summary.Limit).To(Equal("500/5s, " + longName))
				g.Expect(b.Status.AdditionalRates).To(ConsistOf(HaveField("Overshoot.Observed", HaveValue(BeZero()))))
				g.Expect(meta.IsStatusConditionTrue(b.Status.Conditions, v1alpha1.WithinBoundCondition)).To(BeTrue(), "%v", b.Status.Conditions)
			}, 2*longSet, time.Second).Should(Succeed())
		}
	}, SpecTimeout(8*time.Minute))
})
