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
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/weir-dev/weir/api/v1alpha1"
)

const (
	threads  = 8                      // of the backend
	each     = 100 * time.Millisecond // that a thread takes for a request
	capacity = threads * int64(time.Second/each)
	enough   = capacity / 2  // that is served at least, as a slot is also taken on the way to the backend and back
	flood    = int(capacity) // of each of two clients, in requests a second
)

// startBackend runs a server of limited capacity, and returns what has an application work at it.
func (s *shop) startBackend(ctx context.Context) func(*corev1.PodTemplateSpec) {
	GinkgoHelper()
	Expect(s.kube.Create(ctx, s.bystander("backend", "backend",
		corev1.EnvVar{Name: "THREADS", Value: strconv.Itoa(threads)}, corev1.EnvVar{Name: "EACH", Value: each.String()}))).To(Succeed())
	Expect(s.kube.Create(ctx, s.service("backend", "backend", 9000, 9000))).To(Succeed())
	s.awaitReady(ctx, "role=backend", 1)
	return func(pod *corev1.PodTemplateSpec) {
		c := &pod.Spec.Containers[0]
		c.Env = append(c.Env, corev1.EnvVar{Name: "BACKEND", Value: "backend." + s.namespace + ".svc:9000"})
	}
}

// bound applies a pool of a limit that does not move. Its shares outlast the death of the leader and the
// election of the next, as those of the sample pool-steady do.
func (s *shop) bound(ctx context.Context, most int) {
	GinkgoHelper()
	s.apply(ctx, fmt.Sprintf(`
apiVersion: weir.dev/v1alpha1
kind: ConcurrencyPool
metadata: {name: checkout, namespace: %s}
spec:
  podSelector: {matchLabels: {app: checkout}}
  limit: {max: %d}
  algorithm: {type: Fixed}
  heartbeat: {leaseTTL: 30s}
  selfFence: {margin: 2s}
`, s.namespace, most))
}

// awaitBound returns when n pods follow the pool as it is now.
func (s *shop) awaitBound(ctx context.Context, n int) {
	GinkgoHelper()
	Eventually(func(g Gomega) {
		var pool v1alpha1.ConcurrencyPool
		g.Expect(s.kube.Get(ctx, client.ObjectKey{Namespace: s.namespace, Name: "checkout"}, &pool)).To(Succeed())
		g.Expect(pool.Status.ObservedGeneration).To(Equal(pool.Generation))
		g.Expect(pool.Status.Enforcement).To(HaveValue(Equal(v1alpha1.Enforcement{Desired: int32(n), Current: int32(n)})))
		g.Expect(pool.Status.Conditions).To(ContainElement(And(
			HaveField("Type", v1alpha1.ProgrammedCondition), HaveField("Reason", v1alpha1.ProgrammedReason))))
	}, 30*time.Second, 200*time.Millisecond).Should(Succeed())
}

// inFlight returns how many requests are at the backend now.
func (s *shop) inFlight(ctx context.Context) int64 {
	GinkgoHelper()
	return s.ask(ctx, "backend", "flow", time.Now(), time.Now())["inFlight"]
}

// flows waits until an interval from now is over, and returns how many requests a second the backend
// served in it. At no instant of it more than most may be there.
func (s *shop) flows(ctx context.Context, what string, most int64, length time.Duration) int64 {
	GinkgoHelper()
	from := time.Now().Truncate(100 * time.Millisecond).Add(100 * time.Millisecond) // the backend counts in such steps
	to := from.Add(length)
	sleepUntil(ctx, to.Add(settle))
	f := s.ask(ctx, "backend", "flow", from, to)
	fmt.Fprintf(GinkgoWriter, "%s: %v in %s, clients %v\n", what, f, length, s.outcomes(ctx, from, to))
	if f["peak"] > most {
		AbortSuite(fmt.Sprintf("%s, %d requests were at the backend, and the limit is %d: no second attempt makes that good", what, f["peak"], most))
	}
	return f["served"] * int64(time.Second) / int64(length)
}

// serves returns when the backend serves as much a second as it should.
func (s *shop) serves(ctx context.Context, what string, most, perSecond int64) {
	GinkgoHelper()
	Eventually(func() int64 { return s.flows(ctx, what, most, 3*time.Second) }, time.Minute).Should(BeNumerically(">=", perSecond), what)
}

// Serial, because it kills the leader of all.
var _ = Describe("A pool of concurrency", Serial, Ordered, func() {
	const half = threads / 2
	var s *shop

	BeforeAll(func(ctx SpecContext) {
		s = openShop(ctx)
		Expect(kube.Create(ctx, s.service("checkout", "checkout", 80, 8080))).To(Succeed())
		s.deploy(ctx, 4, s.startBackend(ctx))
	}, NodeTimeout(2*time.Minute))

	It("holds what is in flight within its limit, also as that is edited", func(ctx SpecContext) {
		s.startLoad(ctx, flood)
		Eventually(func() int64 { return s.inFlight(ctx) }, time.Minute, 100*time.Millisecond).
			Should(BeNumerically(">", 2*threads), "nothing bounds it yet")
		for _, most := range []int64{threads, half, threads} {
			s.bound(ctx, int(most))
			s.awaitBound(ctx, 4)
			// Requests that were admitted before drain.
			Eventually(func() int64 { return s.inFlight(ctx) }, time.Minute, 100*time.Millisecond).Should(BeNumerically("<=", most))
			s.serves(ctx, fmt.Sprintf("with a limit of %d", most), most, enough*most/threads)
		}
		Expect(s.kubectl(ctx, "-n", s.namespace, "get", "concurrencypools")).To(MatchRegexp(`(?m)^checkout +Enforce +4/4 +8 `))
	}, SpecTimeout(4*time.Minute))

	It("goes on while another controller comes to lead: nothing beyond the limit, and as much as before", func(ctx SpecContext) {
		changes := leaderChanges(ctx)
		killLeader(ctx)
		for leaderChanges(ctx) == changes {
			Expect(s.flows(ctx, "while nobody leads", threads, 3*time.Second)).To(BeNumerically(">=", enough))
		}
		Expect(s.flows(ctx, "under the next leader", threads, 10*time.Second)).To(BeNumerically(">=", enough))
		s.awaitBound(ctx, 4)
	}, SpecTimeout(3*time.Minute))

	It("refuses nothing of what is far below the limit, whichever controller leads", func(ctx SpecContext) {
		const much = 4 * threads
		s.bound(ctx, much)
		s.awaitBound(ctx, 4)
		Eventually(func(g Gomega) { // after a change of the leader no share grows until older ones have expired
			var pool v1alpha1.ConcurrencyPool
			g.Expect(s.kube.Get(ctx, client.ObjectKey{Namespace: s.namespace, Name: "checkout"}, &pool)).To(Succeed())
			g.Expect(pool.Status.Granted).To(HaveValue(BeEquivalentTo(much)))
		}, 90*time.Second, time.Second).Should(Succeed())
		s.setRate(ctx, flood/16)
		s.serves(ctx, "with little load", much, int64(flood/16))
		Eventually(func() int64 { return s.inFlight(ctx) }, time.Minute, 100*time.Millisecond).Should(BeNumerically("<=", half))
		calm, changes := time.Now(), leaderChanges(ctx)
		killLeader(ctx)
		Eventually(leaderChanges, time.Minute, time.Second).WithContext(ctx).Should(BeNumerically(">", changes))
		s.flows(ctx, "under the next leader", much, 5*time.Second)
		o := s.outcomes(ctx, calm, time.Now())
		Expect(o["admitted"]).To(BeNumerically(">", 0))
		Expect(o["refused"]).To(BeZero(), "%v", o)
		s.nobodyMissed(ctx, calm)
	}, SpecTimeout(4*time.Minute))
})
