//go:build e2e

package e2e

import (
	"context"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const redisImage = "weir-test-redis:local"

// redis is a pod with a server that keeps nothing on disk.
func (s *shop) redis() *corev1.Pod {
	pod := s.bystander("redis", "redis")
	c := &pod.Spec.Containers[0]
	c.Image, c.Args = redisImage, []string{"--save", "", "--protected-mode", "no"}
	c.ReadinessProbe.ProbeHandler = tcpOn(6379)
	return pod
}

// startRedis runs that pod behind a Service of its name.
func (s *shop) startRedis(ctx context.Context) {
	GinkgoHelper()
	p := pack{}
	p.program(ctx, "/usr/bin/redis-server", installed("redis-server"))
	p.load(ctx, redisImage, "/usr/bin/redis-server")
	Expect(s.kube.Create(ctx, s.redis())).To(Succeed())
	Expect(s.kube.Create(ctx, &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: "redis", Namespace: s.namespace},
		Spec:       corev1.ServiceSpec{Selector: map[string]string{"role": "redis"}, Ports: []corev1.ServicePort{{Port: 6379}}},
	})).To(Succeed())
	s.awaitReady(ctx, "role=redis", 1)
}

// It takes longest of those that run side by side, so it begins first.
var _ = Describe("With Redis in the cluster as the store", SpecPriority(1), func() {
	It("its death costs a window or two and never admits more", func(ctx SpecContext) {
		s := openShop(ctx)
		s.startRedis(ctx)
		Expect(kube.Create(ctx, s.service("checkout", "checkout", 80, 8080))).To(Succeed())
		s.limitTo(ctx, limit,
			"store: {type: Redis, redis: {address: 'redis."+s.namespace+".svc:6379', tls: Disabled}}",
			deny)
		s.deploy(ctx, 4)
		s.awaitProgrammed(ctx, 4)
		s.startLoad(ctx, overload)
		start := nextWindow().Add(window)
		s.awaitFull(ctx, start, 2)

		Expect(kube.Delete(ctx, s.redis(), client.GracePeriodSeconds(1))).To(Succeed())
		Eventually(func() error { // it grants until its process has ended
			return kube.Get(ctx, client.ObjectKeyFromObject(s.redis()), &corev1.Pod{})
		}, time.Minute, 200*time.Millisecond).Should(Satisfy(apierrors.IsNotFound))
		killed := nextWindow()
		Expect(s.windows(ctx, killed, 1)).To(HaveEach(BeZero()), "nothing grants")
		Expect(kube.Create(ctx, s.redis())).To(Succeed())
		s.awaitReady(ctx, "role=redis", 1)
		again := nextWindow()
		Expect(s.windows(ctx, again, 3)).To(HaveEach(BeNumerically("<=", limit)))
		s.awaitFull(ctx, again.Add(3*window), 1)
		s.nobodyMissed(ctx, start)
		s.awaitExact(ctx, again)
	}, SpecTimeout(4*time.Minute))
})
