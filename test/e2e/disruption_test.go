//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/weir-dev/weir/internal/controlplane/leadership"
)

// Faults of the whole cluster, one after the other. All of them hit the same application:
// four pods under four times their limit.
var _ = Describe("Under load", Serial, Ordered, func() {
	var (
		s     *shop
		start time.Time // of the spec, when nothing has happened yet
	)

	BeforeAll(func(ctx SpecContext) {
		s = openShop(ctx)
		Expect(kube.Create(ctx, s.service("checkout", "checkout", 80, 8080))).To(Succeed())
		s.limitTo(ctx, limit, deny)
		s.deploy(ctx, 4)
		s.awaitProgrammed(ctx, 4)
		s.startLoad(ctx, overload)
		s.awaitFull(ctx, nextWindow(), 1)
	}, NodeTimeout(3*time.Minute))

	BeforeEach(func(ctx SpecContext) {
		start = thisWindow()
		s.awaitFull(ctx, start, 1)
	}, NodeTimeout(2*time.Minute))

	It("the controller is updated without one request lost or one too many", func(ctx SpecContext) {
		d := controller()
		Expect(kube.Get(ctx, client.ObjectKeyFromObject(d), d)).To(Succeed())
		next, changes := thisWindow(), leaderChanges(ctx)
		restart(ctx, d)
		awaitRollout(ctx, d)
		for updated := time.Now(); next.Before(updated); next = next.Add(window) {
			Expect(s.admitted(ctx, next)).To(BeNumerically("<=", limit))
		}
		s.awaitFull(ctx, next, 2)
		s.nobodyMissed(ctx, start)
		Expect(leaderChanges(ctx)).To(Equal(changes+1), "the leader is the last to go, and each change costs a hand-over")
	}, SpecTimeout(4*time.Minute))

	It("the leader is killed: windows are lost until another leads, and none is opened twice", func(ctx SpecContext) {
		killed := thisWindow()
		killLeader(ctx)
		Expect(s.windows(ctx, killed, 6)).To(HaveEach(BeNumerically("<=", limit)))
		s.awaitFull(ctx, killed.Add(6*window), 1)
		s.nobodyMissed(ctx, start)
	}, SpecTimeout(4*time.Minute))

	It("all sidecars are killed at once: nothing beyond the limit, and all serve again", func(ctx SpecContext) {
		killed := thisWindow()
		for _, node := range kind.Nodes() {
			_, err := kind.Exec(ctx, node, "pkill", "-9", "-x", "sidecar")
			Expect(err).NotTo(HaveOccurred())
		}
		Expect(s.windows(ctx, killed, 3)).To(HaveEach(BeNumerically("<=", limit)))
		s.awaitReady(ctx, "app=checkout", 4)
		s.awaitProgrammed(ctx, 4)
		s.awaitFull(ctx, nextWindow(), 1)
	}, SpecTimeout(3*time.Minute))

	It("no controller is left: pods that did not opt in are created at once, the others wait for it, and limits hold", func(ctx SpecContext) {
		scale(ctx, 0)
		DeferCleanup(scale, int32(2))
		Eventually(func(g Gomega) {
			pods, err := clientset.CoreV1().Pods(system).List(ctx, metav1.ListOptions{LabelSelector: "app.kubernetes.io/component in (controller,webhook)"})
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
		late := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{GenerateName: "late-", Namespace: s.namespace, Labels: injected.Labels}, Spec: injected.Spec}
		Expect(kube.Create(ctx, late.DeepCopy())).To(MatchError(ContainSubstring("inject.weir.dev")))

		away := time.Now()
		Expect(s.windows(ctx, nextWindow(), 2)).To(HaveEach(BeNumerically("<=", limit)))
		s.nobodyMissed(ctx, away)

		scale(ctx, 2)
		Eventually(func() error { return kube.Create(ctx, late) }, time.Minute, time.Second).Should(Succeed())
		DeferCleanup(func(ctx SpecContext) { Expect(kube.Delete(ctx, late)).To(Succeed()) })
		s.awaitReady(ctx, "app=checkout", 5)
		s.awaitProgrammed(ctx, 5)
		s.awaitFull(ctx, nextWindow(), 1)
	}, SpecTimeout(4*time.Minute))
})

// scale sets how many replicas of controller and webhooks run, and returns when they do.
func scale(ctx SpecContext, replicas int32) {
	GinkgoHelper()
	for _, d := range []*appsv1.Deployment{controller(), webhooks()} {
		Expect(kube.Get(ctx, client.ObjectKeyFromObject(d), d)).To(Succeed())
		patch := client.MergeFrom(d.DeepCopy())
		d.Spec.Replicas = &replicas
		Expect(kube.Patch(ctx, d, patch)).To(Succeed())
	}
	if replicas > 0 {
		awaitRollout(ctx, controller())
		awaitRollout(ctx, webhooks())
	}
}

// killLeader ends the leading controller without notice: a pod that is deleted, even with no time of
// grace, is asked to end first, and would hand over what it knows.
func killLeader(ctx context.Context) {
	GinkgoHelper()
	leaders, err := clientset.CoreV1().Pods(system).List(ctx, metav1.ListOptions{LabelSelector: leadership.LabelKey + "=true"})
	Expect(err).NotTo(HaveOccurred())
	Expect(leaders.Items).To(HaveLen(1))
	leader := leaders.Items[0]
	Expect(leader.Status.ContainerStatuses).To(HaveLen(1))
	_, container, ok := strings.Cut(leader.Status.ContainerStatuses[0].ContainerID, "containerd://")
	Expect(ok).To(BeTrue(), "%v", leader.Status.ContainerStatuses)
	_, err = kind.Exec(ctx, leader.Spec.NodeName, "ctr", "--namespace", "k8s.io", "tasks", "kill", "--signal", "SIGKILL", container)
	Expect(err).NotTo(HaveOccurred())
}

// leaderChanges returns how often another controller has begun to lead.
func leaderChanges(ctx context.Context) int32 {
	GinkgoHelper()
	lease, err := clientset.CoordinationV1().Leases(system).Get(ctx, "weir-controller", metav1.GetOptions{})
	Expect(err).NotTo(HaveOccurred())
	Expect(lease.Spec.LeaseTransitions).NotTo(BeNil())
	return *lease.Spec.LeaseTransitions
}
