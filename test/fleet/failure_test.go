//go:build fleet

package fleet

import (
	"syscall"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/weir-dev/weir/api/v1alpha1"
	"github.com/weir-dev/weir/internal/controlplane/inject"
)

var _ = Describe("When a process dies under load", func() {
	It("a sidecar's crash costs at most the credits it held", more, func(ctx SpecContext) {
		shop := openShop(ctx, nil)
		shop.deploy(ctx, "checkout", 4, nil)
		shop.startLoad(overload)
		start := shop.warmUp(ctx)

		sleepUntil(ctx, start.Add(300*time.Millisecond)) // while credits are in hand
		victim := shop.endpoints(ctx)[0].Pod
		pid, err := cluster.Pods.PID(shop.namespace, victim, inject.ContainerName)
		Expect(err).NotTo(HaveOccurred())
		Expect(syscall.Kill(pid, syscall.SIGKILL)).To(Succeed())

		Expect(shop.admitted(ctx, start)).To(BeNumerically("~", limit-50, 50)) // a batch of 100 at most
		shop.awaitReady(ctx, 4)
		again, err := cluster.Pods.PID(shop.namespace, victim, inject.ContainerName)
		Expect(err).NotTo(HaveOccurred())
		Expect(again).NotTo(Equal(pid))
		shop.awaitFull(ctx, shop.nextWindow(), 2)
	}, SpecTimeout(5*time.Minute))

	DescribeTable("a controller's end costs at most one window and never admits more",
		func(ctx SpecContext, end func()) {
			shop := openShop(ctx, func(spec *v1alpha1.RateLimitPolicySpec) {
				spec.OnStoreUnavailable.Action = v1alpha1.DenyAction
				// Long enough that the next leader is there before the window ends.
				spec.Limits[0].Rates[0] = v1alpha1.Rate{Limit: 2 * limit, Window: "10s"}
			})
			shop.deploy(ctx, "checkout", 4, nil)
			shop.startLoad(overload)
			start := shop.warmUp(ctx)

			sleepUntil(ctx, start.Add(time.Second)) // in the middle of spending
			end()
			Expect(cluster.Controller.Start(ctx)).To(Succeed())

			counts := shop.windows(ctx, start, 3)
			Expect(counts).To(HaveEach(BeNumerically("<=", 2*limit)))
			var short int
			for _, n := range counts {
				if n < 2*mostly {
					short++
				}
			}
			Expect(short).To(BeNumerically("<=", 1), "windows that lost budget")
		},
		Entry("when it is stopped in good order", more, SpecTimeout(5*time.Minute), func() { cluster.Controller.Stop() }),
		Entry("when it is killed", more, SpecTimeout(5*time.Minute), func() { cluster.Controller.Kill() }),
	)
})
