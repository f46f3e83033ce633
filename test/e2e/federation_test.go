//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/weir-dev/weir/hack/kind/cluster"
	"github.com/weir-dev/weir/internal/testing/windows"
)

// A federation is a budget over two clusters.
type federation struct{ hub, member *shop }

func (f *federation) shops() []*shop { return []*shop{f.hub, f.member} }

// admitted waits until a window is over and returns what was admitted in it.
func (f *federation) admitted(ctx context.Context, start time.Time) windows.Split {
	GinkgoHelper()
	s := windows.Split{Hub: f.hub.admitted(ctx, start), Member: f.member.admitted(ctx, start)}
	if s.Sum() > limit+spill {
		AbortSuite(fmt.Sprintf("window %s admitted %+v, and the budget is %d: no second attempt makes that good", start.Format("15:04:05"), s, limit))
	}
	Expect(s.Sum()).To(BeNumerically("<=", limit), "%+v", s)
	return s
}

// await returns when n windows in a row, from the first on or later, are as wanted, and what each admitted.
func (f *federation) await(ctx context.Context, first time.Time, n int, wanted OmegaMatcher) []windows.Split {
	GinkgoHelper()
	return inARow(n, wanted, func(i int) windows.Split {
		GinkgoHelper()
		return f.admitted(ctx, first.Add(time.Duration(i)*window))
	})
}

// hubPort is where the first cluster's hub listens on its node.
func hubPort(ctx context.Context) int32 {
	GinkgoHelper()
	var hub corev1.Service
	Expect(kube.Get(ctx, client.ObjectKey{Namespace: system, Name: "weir-hub"}, &hub)).To(Succeed())
	Expect(hub.Spec.Ports).To(ConsistOf(HaveField("NodePort", BeNumerically(">", 0))))
	return hub.Spec.Ports[0].NodePort
}

// Serial, because it kills the leader of all, and a second cluster is all that the machine carries beside.
var _ = Describe("A budget over two clusters", Serial, Ordered, func() {
	var (
		f     *federation
		far   *cluster.Cluster
		start time.Time // of the first window under load
		cut   string    // the rule that keeps packets from the hub
	)
	whole := WithTransform(windows.Split.Sum, BeNumerically(">=", mostly))

	BeforeAll(func(ctx SpecContext) {
		there := newSite("us-east")
		far = there.create(ctx, clusterName+"-2", 0)
		Expect(far.Load(ctx, images()...)).To(Succeed())
		Expect(kind.Join(ctx, far)).To(Succeed())
		there.connect()
		there.install(ctx, there.address(ctx))

		f = &federation{hub: openShop(ctx)}
		f.member = openShopAt(ctx, there, func(ns *corev1.Namespace) { ns.GenerateName, ns.Name = "", f.hub.namespace })
		f.hub.budget(ctx, "[{name: eu-west}, {name: us-east}]")
		hub, port := here.address(ctx), hubPort(ctx)
		cut = fmt.Sprintf("add table ip cut; add chain ip cut forward { type filter hook forward priority -1; }; "+
			"add rule ip cut forward ip daddr %s tcp dport %d drop", hub, port)
		Eventually(func() error { // the hub makes the credentials
			return kube.Get(ctx, client.ObjectKey{Namespace: system, Name: "weir-member-us-east"}, &corev1.Secret{})
		}, time.Minute, 200*time.Millisecond).Should(Succeed())
		f.member.apply(ctx, here.weir(ctx, "budget", "join", "-n", f.hub.namespace, budgetName,
			"--member", "us-east", "--endpoint", fmt.Sprintf("%s:%d", hub, port)))
		for _, s := range f.shops() {
			Expect(s.kube.Create(ctx, s.service("checkout", "checkout", 80, 8080))).To(Succeed())
			s.draw(ctx, "checkout")
			s.deploy(ctx, 2)
			s.awaitConnected(ctx, metav1.ConditionTrue)
		}
		for _, s := range f.shops() {
			s.startLoad(ctx, overload/2)
		}
		start = nextWindow()
	}, NodeTimeout(8*time.Minute))

	It("is one limit for both, and both say so", func(ctx SpecContext) {
		f.await(ctx, start, 2, And(whole, HaveField("Hub", BeNumerically("~", limit/2, limit/10))))
		for _, s := range f.shops() {
			s.awaitBudgetExact(ctx, "2/2")
			s.nobodyMissed(ctx, start)
			GinkgoWriter.Print(s.weir(ctx, "budget", "status", "-n", s.namespace, budgetName))
		}
	}, SpecTimeout(3*time.Minute))

	It("holds while no packet of one reaches the other, and is whole again when they do", func(ctx SpecContext) {
		_, err := far.Exec(ctx, far.Nodes()[0], "nft", cut)
		Expect(err).NotTo(HaveOccurred())
		began := thisWindow()
		f.admitted(ctx, began)
		// The member's demand of the windows before is kept for it once.
		f.await(ctx, began.Add(window), 1, And(HaveField("Hub", BeNumerically(">=", mostly)), HaveField("Member", BeZero())))
		f.member.awaitConnected(ctx, metav1.ConditionFalse)
		f.member.nobodyMissed(ctx, began)

		_, err = far.Exec(ctx, far.Nodes()[0], "nft", "delete table ip cut")
		Expect(err).NotTo(HaveOccurred())
		f.member.awaitConnected(ctx, metav1.ConditionTrue)
		f.await(ctx, nextWindow(), 2, And(whole, HaveField("Member", BeNumerically("~", limit/2, limit/10))))
	}, SpecTimeout(5*time.Minute))

	It("survives the death of its hub: windows are lost until another leads, and none is opened twice", func(ctx SpecContext) {
		killed, changes := thisWindow(), leaderChanges(ctx)
		killLeader(ctx)
		next := killed
		for ; leaderChanges(ctx) == changes; next = next.Add(window) {
			f.admitted(ctx, next)
		}
		f.await(ctx, next, 2, whole)
		for _, s := range f.shops() {
			s.nobodyMissed(ctx, killed)
			s.awaitConnected(ctx, metav1.ConditionTrue)
		}
	}, SpecTimeout(4*time.Minute))
})
