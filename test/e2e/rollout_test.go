//go:build e2e

package e2e

import (
	"context"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

var _ = Describe("A rollout", func() {
	It("replaces every pod of an application under load without one request lost", func(ctx SpecContext) {
		s := openShop(ctx)
		Expect(kube.Create(ctx, s.service("checkout", "checkout", 80, 8080))).To(Succeed())
		s.limitTo(ctx, 100*limit)
		// The usual courtesy of an application: it serves until no client is sent to it any more.
		d := s.deploy(ctx, 3, func(pod *corev1.PodTemplateSpec) {
			pod.Spec.Containers[0].Lifecycle = &corev1.Lifecycle{PreStop: &corev1.LifecycleHandler{Sleep: &corev1.SleepAction{Seconds: 10}}}
		})
		s.awaitProgrammed(ctx, 3)
		s.startClients(ctx, 50)
		began := time.Now()
		sleepUntil(ctx, began.Add(time.Second))
		restart(ctx, d)
		awaitRollout(ctx, d)
		sleepUntil(ctx, time.Now().Add(time.Second))
		s.nobodyMissed(ctx, began)
		s.awaitProgrammed(ctx, 3)
	}, SpecTimeout(3*time.Minute))
})

// restart is what `kubectl rollout restart` does.
func restart(ctx context.Context, d *appsv1.Deployment) {
	GinkgoHelper()
	patch := client.MergeFrom(d.DeepCopy())
	if d.Spec.Template.Annotations == nil {
		d.Spec.Template.Annotations = map[string]string{}
	}
	d.Spec.Template.Annotations["restarted-at"] = time.Now().Format(time.RFC3339Nano)
	Expect(kube.Patch(ctx, d, patch)).To(Succeed())
}

// awaitRollout returns when only pods of the newest template are left.
func awaitRollout(ctx context.Context, d *appsv1.Deployment) {
	GinkgoHelper()
	Eventually(func(g Gomega) {
		s := get(ctx, g, d).Status
		g.Expect(s.ObservedGeneration).To(Equal(d.Generation))
		g.Expect(s.UpdatedReplicas).To(Equal(*d.Spec.Replicas))
		g.Expect(s.AvailableReplicas).To(Equal(*d.Spec.Replicas))
		pods, err := clientset.CoreV1().Pods(d.Namespace).List(ctx, metav1.ListOptions{LabelSelector: metav1.FormatLabelSelector(d.Spec.Selector)})
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(pods.Items).To(HaveLen(int(*d.Spec.Replicas)))
	}, 90*time.Second, 200*time.Millisecond).Should(Succeed())
}
