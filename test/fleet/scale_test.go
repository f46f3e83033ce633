//go:build fleet

package fleet

import (
	"context"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

var _ = Describe("A fleet that is scaled under load", func() {
	It("shares the same limit at every size", func(ctx SpecContext) {
		shop := openShop(ctx, nil)
		shop.deploy(ctx, "checkout", 4, nil)
		shop.startLoad(overload)
		start := shop.warmUp(ctx)

		for _, replicas := range []int32{2, 6} {
			sleepUntil(ctx, start.Add(500*time.Millisecond))
			shop.scale(ctx, replicas)
			shop.awaitReady(ctx, int(replicas))
			calm := shop.nextWindow()
			for ; start.Before(calm); start = start.Add(shop.window) {
				Expect(shop.admitted(ctx, start)).To(BeNumerically("<=", limit), "while it is scaled")
			}
			shop.awaitFull(ctx, calm, 1)
			start = shop.nextWindow()
		}
	}, SpecTimeout(5*time.Minute))
})

func (s *shop) scale(ctx context.Context, replicas int32) {
	GinkgoHelper()
	d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: "checkout", Namespace: s.namespace}}
	Expect(kube.Get(ctx, client.ObjectKeyFromObject(d), d)).To(Succeed())
	base := d.DeepCopy()
	d.Spec.Replicas = new(replicas)
	Expect(kube.Patch(ctx, d, client.MergeFrom(base))).To(Succeed())
}
