//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/weir-dev/weir/api/v1alpha1"
)

// limitTo applies the smallest policy there is, with more of its spec if need be, such
// as deny.
func (s *shop) limitTo(ctx context.Context, n int, more ...string) {
	GinkgoHelper()
	policy := fmt.Sprintf(`
apiVersion: weir.dev/v1alpha1
kind: RateLimitPolicy
metadata: {name: checkout, namespace: %s}
spec:
  podSelector: {matchLabels: {app: checkout}}
  limits: [{name: all, rates: [{limit: %d, window: %s}]}]
`, s.namespace, n, window)
	for _, m := range more {
		policy += "  " + m + "\n"
	}
	s.apply(ctx, policy)
}

// deny makes every window's bound the limit, also when a machine short of processors
// keeps sidecars from reaching the store in time.
const deny = "onStoreUnavailable: {action: Deny}"

func (s *shop) status(ctx context.Context, g Gomega) v1alpha1.RateLimitPolicyStatus {
	var p v1alpha1.RateLimitPolicy
	g.Expect(s.kube.Get(ctx, client.ObjectKey{Namespace: s.namespace, Name: "checkout"}, &p)).To(Succeed())
	return p.Status
}

// awaitProgrammed returns when exactly n pods acknowledged the policy, and no pod that
// it selects is without a sidecar.
func (s *shop) awaitProgrammed(ctx context.Context, n int) {
	GinkgoHelper()
	Eventually(func(g Gomega) {
		status := s.status(ctx, g)
		g.Expect(status.Enforcement).To(HaveValue(Equal(v1alpha1.Enforcement{Desired: int32(n), Current: int32(n)})))
		c := meta.FindStatusCondition(status.Conditions, v1alpha1.ProgrammedCondition)
		g.Expect(c).To(HaveValue(HaveField("Reason", v1alpha1.ProgrammedReason)))
	}, 30*time.Second, 200*time.Millisecond).Should(Succeed())
}

// awaitExact returns when the status says of a window after an instant that nothing was
// admitted beyond the limit.
func (s *shop) awaitExact(ctx context.Context, after time.Time) {
	GinkgoHelper()
	Eventually(func(g Gomega) {
		status := s.status(ctx, g)
		g.Expect(meta.IsStatusConditionTrue(status.Conditions, v1alpha1.WithinBoundCondition)).To(BeTrue(), "%v", status.Conditions)
		g.Expect(status.Limits).To(HaveLen(1))
		o := status.Limits[0].Overshoot
		g.Expect(o).NotTo(BeNil())
		g.Expect(o.Observed).To(HaveValue(BeZero()))
		g.Expect(o.Bound).To(HaveValue(BeZero()))
		g.Expect(status.Limits[0].WindowEnd).NotTo(BeNil())
		g.Expect(status.Limits[0].WindowEnd.Time).To(BeTemporally(">", after))
	}, 40*time.Second, 500*time.Millisecond).Should(Succeed())
}
