//go:build e2e

package e2e

import (
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

var _ = Describe("Workloads of every kind", func() {
	It("are injected and limited together", func(ctx SpecContext) {
		s := openShop(ctx)
		s.limitTo(ctx, limit, deny)
		object := metav1.ObjectMeta{Name: "checkout", Namespace: s.namespace}
		selecting := func(name string) *metav1.LabelSelector {
			return &metav1.LabelSelector{MatchLabels: map[string]string{"workload": name}}
		}
		Expect(kube.Create(ctx, &appsv1.StatefulSet{ObjectMeta: object, Spec: appsv1.StatefulSetSpec{
			Replicas: new(int32(2)), Template: s.template("set"), Selector: selecting("set"), PodManagementPolicy: appsv1.ParallelPodManagement,
		}})).To(Succeed())
		Expect(kube.Create(ctx, &appsv1.DaemonSet{ObjectMeta: object, Spec: appsv1.DaemonSetSpec{
			Template: s.template("daemons"), Selector: selecting("daemons"),
		}})).To(Succeed())
		bare := s.template("bare")
		Expect(kube.Create(ctx, &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Name: "bare", Namespace: s.namespace, Labels: bare.Labels}, Spec: bare.Spec,
		})).To(Succeed())
		s.awaitReady(ctx, "app=checkout", 4)
		s.awaitProgrammed(ctx, 4)
	}, SpecTimeout(2*time.Minute))

	It("finish when their work is done, and have their network before it begins", func(ctx SpecContext) {
		s := openShop(ctx)
		template := s.template("job")
		once := template.Spec.Containers[0]
		once.ReadinessProbe = nil
		once.Args = []string{"fetch", "http://tally-asked." + s.namespace + ".svc:8080/between?from=0&to=0"}
		asked := s.service("tally-asked", "tally", 8080, 8080)
		Expect(kube.Create(ctx, asked)).To(Succeed())
		template.Spec.NodeName = s.awaitRoutes(ctx, asked)
		before := *once.DeepCopy()
		before.Name, before.Ports = "before", nil
		template.Spec.InitContainers = []corev1.Container{before}
		template.Spec.Containers = []corev1.Container{once}
		template.Spec.RestartPolicy = corev1.RestartPolicyNever
		job := &batchv1.Job{
			ObjectMeta: metav1.ObjectMeta{Name: "checkout", Namespace: s.namespace},
			Spec:       batchv1.JobSpec{Template: template, BackoffLimit: new(int32(0))},
		}
		Expect(kube.Create(ctx, job)).To(Succeed())
		Eventually(func(g Gomega) {
			g.Expect(get(ctx, g, job).Status.Succeeded).To(BeEquivalentTo(1), "%v", job.Status.Conditions)
		}, time.Minute, 200*time.Millisecond).Should(Succeed())
		pods, err := clientset.CoreV1().Pods(s.namespace).List(ctx, metav1.ListOptions{LabelSelector: "weir.dev/enforcer=true"})
		Expect(err).NotTo(HaveOccurred())
		Expect(pods.Items).To(ConsistOf(HaveField("Status.Phase", corev1.PodSucceeded)))
	}, SpecTimeout(2*time.Minute))
})
