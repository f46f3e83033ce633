//go:build e2e

package e2e

import (
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/weir-dev/weir/api/v1alpha1"
)

var _ = Describe("A pod's requests", func() {
	annotated := func(key, value string) func(*corev1.Namespace) {
		return func(ns *corev1.Namespace) { ns.Annotations[key] = value }
	}
	restricted := func(ns *corev1.Namespace) { ns.Labels["pod-security.kubernetes.io/enforce"] = "restricted" }
	asking := func(pod *corev1.PodTemplateSpec) {
		c := &pod.Spec.Containers[0]
		c.Env = append(c.Env, corev1.EnvVar{Name: "CHECK", Value: "checkout/all"})
	}
	// Probes of every kind, of ports that are captured (HTTP, gRPC) and of one that is not.
	probed := func(pod *corev1.PodTemplateSpec) {
		c := &pod.Spec.Containers[0]
		c.Ports = append(c.Ports, corev1.ContainerPort{Name: "grpc", ContainerPort: 9090})
		c.StartupProbe = &corev1.Probe{PeriodSeconds: 1, FailureThreshold: 30, ProbeHandler: tcpOn(8080)}
		c.LivenessProbe = &corev1.Probe{PeriodSeconds: 1, FailureThreshold: 5, ProbeHandler: corev1.ProbeHandler{
			GRPC: &corev1.GRPCAction{Port: 9090},
		}}
		second := *c.DeepCopy()
		second.Name, second.Ports, second.Args, second.LivenessProbe = "second", nil, []string{"idle"}, nil
		second.ReadinessProbe = &corev1.Probe{PeriodSeconds: 1, ProbeHandler: corev1.ProbeHandler{
			HTTPGet: &corev1.HTTPGetAction{Scheme: corev1.URISchemeHTTPS, Path: "/healthz", Port: intstr.FromInt(8443)},
		}}
		pod.Spec.Containers = append(pod.Spec.Containers, second)
	}

	DescribeTable("are limited however they are captured, and its probes cost nothing",
		func(ctx SpecContext, opens func(*corev1.Namespace), target any, capture string, mutate func(*corev1.PodTemplateSpec)) {
			s := openShop(ctx, opens)
			Expect(kube.Create(ctx, s.service("checkout", "checkout", 80, target))).To(Succeed())
			s.limitTo(ctx, limit, deny)
			s.deploy(ctx, 2, mutate)
			s.awaitProgrammed(ctx, 2)
			s.startLoad(ctx, overload)
			s.awaitFull(ctx, nextWindow(), 2)

			pods, err := clientset.CoreV1().Pods(s.namespace).List(ctx, metav1.ListOptions{LabelSelector: "app=checkout"})
			Expect(err).NotTo(HaveOccurred())
			Expect(pods.Items).To(HaveLen(2))
			for _, pod := range pods.Items {
				Expect(pod.Annotations[v1alpha1.InjectedAnnotation]).To(ContainSubstring(`"capture":"` + capture + `"`))
				for _, c := range append(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses...) {
					Expect(c.RestartCount).To(BeZero(), "%s of %s", c.Name, pod.Name)
				}
			}
		},
		Entry("by redirecting packets, behind a Service that targets a number", SpecTimeout(2*time.Minute),
			func(*corev1.Namespace) {}, 8080, "redirect", probed),
		Entry("by the name of a port, where pod security is restricted", SpecTimeout(2*time.Minute),
			restricted, "http", "port", probed),
		Entry("by the application's own question", SpecTimeout(2*time.Minute),
			annotated(v1alpha1.CaptureAnnotation, "explicit"), 8080, "explicit", asking),
		Entry("by a sidecar of the classic form", SpecTimeout(2*time.Minute),
			annotated("config.weir.dev/native-sidecar", "disabled"), 8080, "redirect", probed),
	)
})
