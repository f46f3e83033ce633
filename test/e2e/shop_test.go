//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"strconv"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/weir-dev/weir/api/v1alpha1"
)

// A shop is a namespace with an application in it, the tally that it reports to, and
// clients.
type shop struct {
	*site
	namespace string
	clients   []string // pods that send load
}

// openShop makes the namespace, opted in, and its tally.
func openShop(ctx context.Context, mutate ...func(*corev1.Namespace)) *shop {
	GinkgoHelper()
	return openShopAt(ctx, here, mutate...)
}

// openShopAt is openShop in a cluster.
func openShopAt(ctx context.Context, at *site, mutate ...func(*corev1.Namespace)) *shop {
	GinkgoHelper()
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
		GenerateName: "shop-",
		Labels:       map[string]string{v1alpha1.InjectionLabel: v1alpha1.Enabled},
		Annotations:  map[string]string{},
	}}
	for _, m := range mutate {
		m(ns)
	}
	Expect(at.kube.Create(ctx, ns)).To(Succeed())
	s := &shop{site: at, namespace: ns.Name}
	DeferOnFailure(s.show)
	DeferCleanup(s.close)
	Expect(s.kube.Create(ctx, s.bystander("tally", "tally"))).To(Succeed())
	Expect(s.kube.Create(ctx, s.service("tally", "tally", 9000, 9000))).To(Succeed())
	s.awaitReady(ctx, "role=tally", 1)
	return s
}

// close removes the namespace, and does not wait until its pods are gone.
func (s *shop) close(ctx SpecContext) {
	if CurrentSpecReport().Failed() && keep() {
		return
	}
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: s.namespace}}
	Expect(s.kube.Delete(ctx, ns, client.GracePeriodSeconds(0))).To(Succeed())
}

// show prints what happened in the namespace.
func (s *shop) show(ctx SpecContext) {
	for _, args := range [][]string{
		{"get", "pods,services,ratelimitpolicies,concurrencypools,federatedbudgets,jobs", "-o", "wide"},
		{"describe", "ratelimitpolicies,concurrencypools,federatedbudgets"},
		{"get", "events", "--sort-by=.lastTimestamp"},
		{"logs", "-l", "app=checkout", "--all-containers", "--prefix", "--tail", "15", "--ignore-errors"},
		{"logs", "-l", "role=load", "--prefix", "--tail", "15", "--ignore-errors"},
		{"-n", system, "logs", "-l", "app.kubernetes.io/component in (controller,webhook)", "--prefix", "--tail", "30"},
	} {
		func() {
			defer func() { _ = recover() }() // one that fails must not keep the others from being shown
			fmt.Fprintf(GinkgoWriter, "\n== kubectl %v\n%s", args, s.kubectl(ctx, append([]string{"-n", s.namespace}, args...)...))
		}()
	}
}

// bystander is a pod without a sidecar.
func (s *shop) bystander(name, role string, env ...corev1.EnvVar) *corev1.Pod {
	template := s.template(role)
	template.Labels = map[string]string{"role": role, v1alpha1.InjectKey: v1alpha1.Disabled}
	container := &template.Spec.Containers[0]
	container.Args = []string{role}
	container.Env = append(container.Env, env...)
	container.ReadinessProbe = &corev1.Probe{PeriodSeconds: 1, ProbeHandler: tcpOn(8080)}
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: s.namespace, Labels: template.Labels}, Spec: template.Spec}
}

// startLoad sends load through the Service from two pods, which spreads over all that
// serve it.
func (s *shop) startLoad(ctx context.Context, perClient int) {
	GinkgoHelper()
	s.startClients(ctx, perClient, corev1.EnvVar{Name: "CONNECTIONS", Value: "fresh"})
}

// startClients is startLoad over connections that are kept.
func (s *shop) startClients(ctx context.Context, perClient int, env ...corev1.EnvVar) {
	GinkgoHelper()
	for i := range 2 {
		name := fmt.Sprintf("client-%d", i)
		Expect(s.kube.Create(ctx, s.bystander(name, "load",
			append(env,
				corev1.EnvVar{Name: "TARGET", Value: "checkout." + s.namespace + ".svc:80"},
				corev1.EnvVar{Name: "RATE", Value: strconv.Itoa(perClient)},
			)...,
		))).To(Succeed())
		s.clients = append(s.clients, name)
	}
	s.awaitReady(ctx, "role=load", 2)
}

// setRate changes how many requests a second each client sends.
func (s *shop) setRate(ctx context.Context, perClient int) {
	GinkgoHelper()
	for _, c := range s.clients {
		_, err := s.clientset.CoreV1().Pods(s.namespace).ProxyGet("http", c, "8080", "rate",
			map[string]string{"perSecond": strconv.Itoa(perClient)}).DoRaw(ctx)
		Expect(err).NotTo(HaveOccurred())
	}
}

// awaitReady returns when exactly n pods with the label are ready.
func (s *shop) awaitReady(ctx context.Context, selector string, n int) {
	GinkgoHelper()
	Eventually(func(g Gomega) {
		pods, err := s.clientset.CoreV1().Pods(s.namespace).List(ctx, metav1.ListOptions{LabelSelector: selector})
		g.Expect(err).NotTo(HaveOccurred())
		var ready []string
		for i := range pods.Items {
			if isReady(&pods.Items[i]) {
				ready = append(ready, pods.Items[i].Name)
			}
		}
		g.Expect(ready).To(HaveLen(n), "ready pods with %s", selector)
	}, time.Minute, 200*time.Millisecond).Should(Succeed())
}

func isReady(pod *corev1.Pod) bool {
	if pod.DeletionTimestamp != nil {
		return false
	}
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodReady {
			return c.Status == corev1.ConditionTrue
		}
	}
	return false
}
