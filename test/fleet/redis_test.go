//go:build fleet

package fleet

import (
	"context"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/weir-dev/weir/api/v1alpha1"
	"github.com/weir-dev/weir/internal/testing/devcluster/servers"
)

var _ = Describe("A Redis behind the controller", func() {
	It("admits the limit and no more, whichever controller carries the commands", func(ctx SpecContext) {
		store, _ := startRedis(ctx)
		shop := openShop(ctx, func(spec *v1alpha1.RateLimitPolicySpec) {
			spec.Store.Store, spec.Store.Access = store, v1alpha1.GatewayAccess
			spec.OnStoreUnavailable.Action = v1alpha1.DenyAction
		})
		shop.deploy(ctx, "checkout", 4, nil)
		shop.startLoad(overload)
		shop.awaitFull(ctx, shop.warmUp(ctx), 2)
		Eventually(func(g Gomega) {
			status := shop.status(ctx, g)
			g.Expect(status.Store).To(HaveValue(HaveField("Access", v1alpha1.GatewayAccess)))
			g.Expect(meta.IsStatusConditionTrue(status.Conditions, v1alpha1.ReadyCondition)).To(BeTrue(), "%v", status.Conditions)
			g.Expect(status.Limits[0].Overshoot.Worst).To(HaveValue(BeZero()))
		}, longest, time.Second).Should(Succeed())

		start := shop.nextWindow()
		sleepUntil(ctx, start.Add(shop.window/5)) // in the middle of spending
		cluster.Controller.Kill()
		Expect(cluster.Controller.Start(ctx)).To(Succeed())
		Expect(shop.admitted(ctx, start)).To(BeNumerically("<=", limit))
		shop.awaitFull(ctx, shop.nextWindow(), 2)
	}, SpecTimeout(5*time.Minute))
})

// startRedis starts a server for one spec and returns the store it is, and its
// process.
func startRedis(ctx context.Context) (v1alpha1.Store, *servers.Server) {
	GinkgoHelper()
	server, err := servers.Redis(ctx, GinkgoT().TempDir())
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(server.Kill)
	return v1alpha1.Store{
		Type:  v1alpha1.RedisStoreType,
		Redis: &v1alpha1.RedisStore{Address: v1alpha1.HostPort(server.Address), TLS: v1alpha1.TLSDisabled},
	}, server
}
