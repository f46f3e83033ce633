//go:build e2e

package e2e

import (
	"fmt"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

var _ = Describe("With no controller at all", Ordered, func() {
	It("pods that did not opt in are created at once, the others wait for it, and limits hold", func(ctx SpecContext) {
		s := openShop(ctx)
		Expect(kube.Create(ctx, s.service("checkout", "checkout", 80, 8080))).To(Succeed())
		s.limitTo(ctx, limit, deny)
		s.deploy(ctx, 2)
		s.awaitProgrammed(ctx, 2)
		s.startLoad(ctx, overload)
		start := nextWindow().Add(window)
		s.awaitFull(ctx, start, 1)

		scale(ctx, 0)
		DeferCleanup(scale, int32(2))
		Eventually(func(g Gomega) {
			pods, err := clientset.CoreV1().Pods(system).List(ctx, metav1.ListOptions{LabelSelector: "app.kubernetes.io/component=controller"})
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(pods.Items).To(BeEmpty())
		}, time.Minute, 200*time.Millisecond).Should(Succeed())

		began := time.Now()
		const many = 200
		for i := range many {
			pod := s.bystander(fmt.Sprintf("bystander-%d", i), "tally")
			Expect(kube.Create(ctx, pod, client.DryRunAll)).To(Succeed())
		}
		fmt.Fprintf(GinkgoWriter, "%d pods in %s\n", many, time.Since(began))
		Expect(time.Since(began)).To(BeNumerically("<", many*500*time.Millisecond), "none waits for a webhook's time-out")

		injected := s.template("late")
		late := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "late", Namespace: s.namespace, Labels: injected.Labels}, Spec: injected.Spec}
		Expect(kube.Create(ctx, late.DeepCopy())).To(MatchError(ContainSubstring("inject.weir.dev")))

		away := time.Now()
		Expect(s.windows(ctx, nextWindow(), 2)).To(HaveEach(BeNumerically("<=", limit)))
		s.nobodyMissed(ctx, away)

		scale(ctx, 2)
		Eventually(func() error { return kube.Create(ctx, late.DeepCopy()) }, time.Minute, time.Second).Should(Succeed())
		s.awaitReady(ctx, "app=checkout", 3)
		s.awaitProgrammed(ctx, 3)
		s.awaitFull(ctx, nextWindow().Add(window), 1)
	}, SpecTimeout(4*time.Minute))
})

func scale(ctx SpecContext, replicas int32) {
	GinkgoHelper()
	d := controller()
	Expect(kube.Get(ctx, client.ObjectKeyFromObject(d), d)).To(Succeed())
	patch := client.MergeFrom(d.DeepCopy())
	d.Spec.Replicas = &replicas
	Expect(kube.Patch(ctx, d, patch)).To(Succeed())
	if replicas > 0 {
		awaitRollout(ctx, &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: d.Name, Namespace: d.Namespace}})
	}
}
