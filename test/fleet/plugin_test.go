//go:build fleet

package fleet

import (
	"context"
	"os/exec"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

// weir runs the plugin of kubectl in the shop's namespace, and returns all that it prints.
func (s *shop) weir(ctx context.Context, args ...string) string {
	GinkgoHelper()
	out, err := exec.CommandContext(ctx, binary("kubectl-weir"),
		append(args, "-n", s.namespace, "--kubeconfig", s.cluster.Kubeconfig)...).CombinedOutput()
	Expect(err).NotTo(HaveOccurred(), "%s", out)
	return string(out)
}

var _ = Describe("kubectl weir", func() {
	It("says which pods are limited, why a request is refused, and which would be", func(ctx SpecContext) {
		s := openShop(ctx, nil)
		s.deploy(ctx, "checkout", 2, nil)
		Eventually(func() string { return s.weir(ctx, "status") }, longest, time.Second).
			Should(MatchRegexp(`(?m)^\S+ +ratelimitpolicy/checkout +checkout-\S+ +Enforce +1 +port +Controller +- +True `))
		s.startLoad(overload)
		pod := s.endpoints(ctx)[0].Pod
		Eventually(func() string { return s.weir(ctx, "why", "--last", "1") }, longest, time.Second).
			Should(And(ContainSubstring("ratelimitpolicy/checkout"), ContainSubstring(" 429 ")))
		Expect(s.weir(ctx, "explain", pod, "--request", "GET /")).
			To(MatchRegexp(`(?m)^ratelimitpolicy/checkout +all +counted +- +- +1 +\d+ +500 +\S+ +(admits|refuses) `))
	}, SpecTimeout(3*time.Minute))
})
