//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/weir-dev/weir/api/v1alpha1"
	"github.com/weir-dev/weir/internal/controlplane/leadership"
)

// A caller is a pod that opens connections when it is asked to.
type caller struct {
	*shop
	pod string
}

// startCaller starts one in a namespace.
func startCaller(ctx context.Context, namespace, name string) *caller {
	GinkgoHelper()
	c := &caller{&shop{site: here, namespace: namespace}, name}
	Expect(client.IgnoreAlreadyExists(kube.Create(ctx, c.bystander(name, "dial")))).To(Succeed())
	DeferCleanup(func(ctx SpecContext) {
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: namespace}}
		Expect(client.IgnoreNotFound(kube.Delete(ctx, pod, client.GracePeriodSeconds(0)))).To(Succeed())
	})
	c.awaitReady(ctx, "role=dial", 1)
	return c
}

// opens reports whether a connection to a pod's port comes about.
func (c *caller) opens(ctx context.Context, g Gomega, pod *corev1.Pod, port int) bool {
	body, err := clientset.CoreV1().Pods(c.namespace).ProxyGet("http", c.pod, "8080", "dial",
		map[string]string{"address": fmt.Sprintf("%s:%d", pod.Status.PodIP, port)}).DoRaw(ctx)
	g.Expect(err).NotTo(HaveOccurred())
	return string(body) == "open"
}

// expectOpen returns when exactly the ports of a pod that should be open to the caller are.
func (c *caller) expectOpen(ctx context.Context, pod *corev1.Pod, ports map[int]bool) {
	GinkgoHelper()
	Eventually(func(g Gomega) {
		for port, open := range ports {
			g.Expect(c.opens(ctx, g, pod, port)).To(Equal(open), "from %s/%s to port %d of %s", c.namespace, c.pod, port, pod.Name)
		}
	}, 30*time.Second, 500*time.Millisecond).Should(Succeed())
}

var _ = Describe("NetworkPolicies", addons, Serial, Ordered, func() {
	var collector *caller

	BeforeAll(func(ctx SpecContext) {
		enforceNetworkPolicies(ctx)
		here.apply(ctx, "{apiVersion: v1, kind: Namespace, metadata: {name: "+monitoring+"}}")
		collector = startCaller(ctx, monitoring, "collector")
	}, NodeTimeout(3*time.Minute))

	It("of the chart let in what it names alone, and limits hold", func(ctx SpecContext) {
		const fleet, hub, metrics, webhook = 15030, 15040, 8080, 9443
		here.set(ctx, "networkPolicy.enabled=false")
		s := openShop(ctx)
		stranger := startCaller(ctx, s.namespace, "stranger")
		controller := &podsOf(ctx, system, leadership.LabelKey+"=true")[0] // it alone serves the hub
		webhooks := &podsOf(ctx, system, "app.kubernetes.io/component=webhook")[0]
		stranger.expectOpen(ctx, controller, map[int]bool{fleet: true, hub: true, metrics: true})
		stranger.expectOpen(ctx, webhooks, map[int]bool{webhook: true, metrics: true})

		here.admitByTheChart(ctx)
		stranger.expectOpen(ctx, controller, map[int]bool{fleet: true, hub: false, metrics: false})
		stranger.expectOpen(ctx, webhooks, map[int]bool{webhook: false, metrics: false})
		collector.expectOpen(ctx, controller, map[int]bool{fleet: true, hub: false, metrics: true})
		collector.expectOpen(ctx, webhooks, map[int]bool{webhook: false, metrics: true})

		// The API server reaches the webhooks, and sidecars the leader.
		Expect(kube.Create(ctx, s.service("checkout", "checkout", 80, 8080))).To(Succeed())
		s.limitTo(ctx, limit, deny)
		s.deploy(ctx, 3)
		s.awaitProgrammed(ctx, 3)
		s.startLoad(ctx, overload)
		start := nextWindow().Add(window)
		s.awaitFull(ctx, start, 2)
		s.nobodyMissed(ctx, start)
		s.awaitExact(ctx, start)
	}, SpecTimeout(4*time.Minute))

	It("of the example lead every request to an app through its sidecar", func(ctx SpecContext) {
		const app, proxy, admin = 8080, 15006, 15020
		s := openShop(ctx, byPort)
		stranger := startCaller(ctx, s.namespace, "stranger")
		Expect(kube.Create(ctx, s.service("checkout", "checkout", 80, "http"))).To(Succeed())
		s.limitTo(ctx, limit, deny)
		s.deploy(ctx, 2)
		s.awaitProgrammed(ctx, 2)
		pods := podsOf(ctx, s.namespace, "app=checkout")
		for i := range pods {
			stranger.expectOpen(ctx, &pods[i], map[int]bool{app: true, proxy: true, admin: true})
		}

		s.applyExample(ctx, "injected-pods.example.yaml")
		for i := range pods {
			stranger.expectOpen(ctx, &pods[i], map[int]bool{app: false, proxy: true, admin: false})
			collector.expectOpen(ctx, &pods[i], map[int]bool{app: false, proxy: true, admin: true})
		}
		s.startLoad(ctx, overload)
		start := nextWindow().Add(window)
		s.awaitFull(ctx, start, 2)
		s.nobodyMissed(ctx, start)
		s.awaitReady(ctx, "app=checkout", 2) // by probes that the kubelet sends
	}, SpecTimeout(4*time.Minute))

	It("that deny everything leave a sidecar its leases, with those of the examples beside them", func(ctx SpecContext) {
		s := openShop(ctx, byPort)
		s.apply(ctx, strings.ReplaceAll(manifest("default-deny.yaml"), "SHOP", s.namespace))
		Expect(kube.Create(ctx, s.service("checkout", "checkout", 80, "http"))).To(Succeed())
		s.limitTo(ctx, limit, deny)
		s.deploy(ctx, 2)
		alone := func(g Gomega) {
			g.Expect(s.status(ctx, g).Enforcement).To(HaveValue(Equal(v1alpha1.Enforcement{Desired: 2})), "no sidecar reaches the controller")
		}
		Eventually(alone, 30*time.Second, time.Second).Should(Succeed())
		Consistently(alone, 10*time.Second, time.Second).Should(Succeed())

		s.applyExample(ctx, "injected-pods.example.yaml")
		s.applyExample(ctx, "injected-pods-egress.example.yaml")
		s.awaitProgrammed(ctx, 2)
		s.startLoad(ctx, overload)
		start := nextWindow().Add(window)
		s.awaitFull(ctx, start, 2)
		s.nobodyMissed(ctx, start)
		s.awaitExact(ctx, start)
	}, SpecTimeout(4*time.Minute))
})
