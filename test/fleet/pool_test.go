//go:build fleet

package fleet

import (
	"context"
	"fmt"
	"net/http"
	"sync/atomic"
	"syscall"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/weir-dev/weir/api/v1alpha1"
	"github.com/weir-dev/weir/internal/controlplane/inject"
	"github.com/weir-dev/weir/internal/testing/devcluster/backend"
	"github.com/weir-dev/weir/internal/testing/devcluster/servers"
	"github.com/weir-dev/weir/internal/testing/devcluster/traffic"
)

const (
	threads    = 12                    // of the backend
	service    = 50 * time.Millisecond // that a thread takes for a request
	capacity   = 240                   // requests a second: what all threads bear
	enough     = capacity * 6 / 10     // of it that is served at least, as a slot is also taken on the way to the backend and back
	flood      = 400                   // requests a second
	leaseTTL   = 2 * time.Second       // that pools have by default
	fixedLimit = threads
)

// A basin is a shop whose application works at a backend, and a pool in front of
// that.
type basin struct {
	*shop
	pool   *v1alpha1.ConcurrencyPool
	server *backend.Backend
}

// openBasin starts a backend and an application that works at it. No pool is there
// yet.
func openBasin(ctx context.Context) *basin {
	GinkgoHelper()
	server, err := backend.Start(threads, service)
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(server.Close)
	b := &basin{shop: openEmptyShop(ctx, here), server: server}
	b.backend = server.Address()
	return b
}

// limit creates the pool.
func (b *basin) limit(ctx context.Context, spec v1alpha1.ConcurrencyPoolSpec) {
	GinkgoHelper()
	spec.PodSelector = metav1.LabelSelector{MatchLabels: map[string]string{"app": "checkout"}}
	b.pool = &v1alpha1.ConcurrencyPool{ObjectMeta: metav1.ObjectMeta{Name: "checkout", Namespace: b.namespace}, Spec: spec}
	Expect(kube.Create(ctx, b.pool)).To(Succeed())
	DeferCleanup(func(ctx SpecContext) {
		Expect(kube.Delete(ctx, b.pool)).To(Or(Succeed(), WithTransform(client.IgnoreNotFound, Succeed())))
	})
}

func fixed(n int64) v1alpha1.ConcurrencyPoolSpec {
	return v1alpha1.ConcurrencyPoolSpec{
		Limit:     v1alpha1.PoolLimit{Max: n},
		Algorithm: v1alpha1.PoolAlgorithm{Type: v1alpha1.FixedAlgorithm},
	}
}

// awaitProgrammed returns when every pod acknowledged the pool.
func (b *basin) awaitProgrammed(ctx context.Context) {
	GinkgoHelper()
	Eventually(func(g Gomega) {
		status := get(ctx, g, b.pool).Status
		programmed := meta.FindStatusCondition(status.Conditions, v1alpha1.ProgrammedCondition)
		g.Expect(programmed).To(HaveField("Status", metav1.ConditionTrue), "%v", status.Conditions)
		g.Expect(status.ObservedGeneration).To(Equal(b.pool.Generation))
	}, longest, 100*time.Millisecond).Should(Succeed())
}

// flows waits for a while and returns how many requests a second the backend served
// in it, and the most that it had in flight.
func (b *basin) flows(ctx context.Context, what string, length time.Duration) (perSecond float64, peak int64) {
	GinkgoHelper()
	from := time.Now().Truncate(100 * time.Millisecond).Add(100 * time.Millisecond) // the backend counts in such steps
	to := from.Add(length)
	sleepUntil(ctx, to.Add(200*time.Millisecond))
	peak = b.server.Peak(from, to)
	n, p99 := b.server.Served(from, to, 0.99)
	perSecond = float64(n) / length.Seconds()
	fmt.Fprintf(GinkgoWriter, "%-40s served %3.0f/s, p99 %4d ms, at most %3d in flight\n", what, perSecond, p99.Milliseconds(), peak)
	return perSecond, peak
}

// pid returns the process of a pod's sidecar.
func (b *basin) pid(pod string) int {
	GinkgoHelper()
	pid, err := cluster.Pods.PID(b.namespace, pod, inject.ContainerName)
	Expect(err).NotTo(HaveOccurred())
	return pid
}

// sendAs returns the status of the answer to a tenant's request.
func (b *basin) sendAs(ctx context.Context, address, tenant string) int {
	GinkgoHelper()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+address+"/", http.NoBody)
	Expect(err).NotTo(HaveOccurred())
	req.Header.Set("X-Tenant", tenant)
	resp, err := http.DefaultClient.Do(req)
	Expect(err).NotTo(HaveOccurred())
	defer resp.Body.Close()
	return resp.StatusCode
}

func (b *basin) scale(ctx context.Context, name string, replicas int32) {
	GinkgoHelper()
	d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: b.namespace}}
	Expect(kube.Get(ctx, client.ObjectKeyFromObject(d), d)).To(Succeed())
	d.Spec.Replicas = &replicas
	Expect(kube.Update(ctx, d)).To(Succeed())
	b.awaitReady(ctx, int(replicas))
}

var _ = Describe("A pool of concurrency", func() {
	It("keeps the requests in flight at the backend within the limit when a process dies", func(ctx SpecContext) {
		b := openBasin(ctx)
		b.deploy(ctx, "checkout", 4, nil)
		b.startLoad(flood)
		Eventually(func() int64 {
			_, peak := b.flows(ctx, "without a pool", 2*time.Second)
			return peak
		}, longest).Should(BeNumerically(">", 4*fixedLimit), "the backend was not overrun")

		b.limit(ctx, fixed(fixedLimit))
		b.awaitProgrammed(ctx)
		// Requests that were admitted before the pool existed drain.
		Eventually(b.server.InFlight, longest, 10*time.Millisecond).Should(BeNumerically("<=", fixedLimit))
		within := func(what string, length time.Duration) float64 {
			GinkgoHelper()
			perSecond, peak := b.flows(ctx, what, length)
			Expect(peak).To(BeNumerically("<=", fixedLimit), what)
			return perSecond
		}
		serves := func(what string) {
			GinkgoHelper()
			Eventually(func() float64 { return within(what, 3*time.Second) }, longest).Should(BeNumerically(">", enough), what)
		}
		serves("with it")

		victim := b.endpoints(ctx)[0].Pod
		Expect(syscall.Kill(b.pid(victim), syscall.SIGKILL)).To(Succeed())
		within("while a sidecar is killed", leaseTTL+time.Second)
		b.awaitReady(ctx, 4)
		serves("when it is back")

		victim = b.endpoints(ctx)[1].Pod
		stopped := b.pid(victim)
		Expect(syscall.Kill(stopped, syscall.SIGSTOP)).To(Succeed())
		within("while a sidecar is suspended", leaseTTL+time.Second)
		Expect(syscall.Kill(stopped, syscall.SIGCONT)).To(Succeed())
		within("when it goes on", time.Second)
		serves("a second later")

		for _, replicas := range []int32{7, 3} {
			b.scale(ctx, "checkout", replicas)
			within(fmt.Sprintf("while it scales to %d pods", replicas), 2*time.Second)
			serves(fmt.Sprintf("with %d pods", replicas))
		}

		cluster.Controller.Stop()
		Expect(cluster.Controller.Start(ctx)).To(Succeed())
		within("while the controller is replaced", leaseTTL)
		serves("under its successor")

		cluster.Controller.Kill()
		within("while no controller leads", 2*time.Second)
		Expect(cluster.Controller.Start(ctx)).To(Succeed())
		Eventually(func() float64 { return within("after the controller was killed", time.Second) }, longest).
			Should(BeNumerically(">", enough))
		serves("under the next")
	}, SpecTimeout(8*time.Minute))

	It("stands beside others of the same pods, each for what it matches", func(ctx SpecContext) {
		const few = fixedLimit / 3
		b := openBasin(ctx)
		spec := fixed(few)
		spec.Match = []v1alpha1.Match{{Paths: []v1alpha1.PathMatch{{Value: "/search"}}}}
		b.limit(ctx, spec)
		search := b.pool
		spec = fixed(fixedLimit)
		spec.PodSelector = search.Spec.PodSelector
		b.pool = &v1alpha1.ConcurrencyPool{ObjectMeta: metav1.ObjectMeta{Name: "all", Namespace: b.namespace}, Spec: spec}
		Expect(kube.Create(ctx, b.pool)).To(Succeed())
		b.deploy(ctx, "checkout", 4, nil)
		b.awaitProgrammed(ctx)
		b.startLoad(flood) // none of it is for /search
		Eventually(func() float64 {
			perSecond, peak := b.flows(ctx, "with a pool of other requests", time.Second)
			Expect(peak).To(BeNumerically("<=", fixedLimit))
			return perSecond
		}, longest).Should(BeNumerically(">", enough))

		Eventually(func(g Gomega) {
			get(ctx, g, search)
			search.Spec.Match[0].Paths[0].Value = "/"
			g.Expect(kube.Update(ctx, search)).To(Succeed())
		}, longest).Should(Succeed())
		b.pool = search
		b.awaitProgrammed(ctx)
		Eventually(b.server.InFlight, longest, 10*time.Millisecond).Should(BeNumerically("<=", few))
		Eventually(func() float64 {
			perSecond, peak := b.flows(ctx, "with one for all requests, too", time.Second)
			Expect(peak).To(BeNumerically("<=", few))
			return perSecond
		}, longest).Should(BeNumerically(">", enough/3))
	}, SpecTimeout(4*time.Minute))

	It("bounds what each tenant has in flight, whatever the others do", func(ctx SpecContext) {
		b := openBasin(ctx)
		spec := fixed(10 * fixedLimit)
		spec.Key = &v1alpha1.PoolKey{
			Parts: []v1alpha1.KeyPart{{Type: v1alpha1.HeaderPart, Header: &v1alpha1.HeaderKey{Name: "X-Tenant"}}}, Limit: fixedLimit,
		}
		b.limit(ctx, spec)
		b.deploy(ctx, "checkout", 3, nil)
		b.awaitProgrammed(ctx)
		b.startLoadOf(flood, func(r *http.Request) { r.Header.Set("X-Tenant", "gold") })
		within := func(what string, length time.Duration) float64 {
			GinkgoHelper()
			perSecond, peak := b.flows(ctx, what, length)
			Expect(peak).To(BeNumerically("<=", fixedLimit), what)
			return perSecond
		}
		serves := func(what string) {
			GinkgoHelper()
			Eventually(func() float64 { return within(what, 2*time.Second) }, longest).Should(BeNumerically(">", enough), what)
		}
		serves("one tenant")

		Expect(syscall.Kill(b.pid(b.endpoints(ctx)[0].Pod), syscall.SIGKILL)).To(Succeed())
		within("while a sidecar is killed", leaseTTL+time.Second)
		b.awaitReady(ctx, 3)
		serves("when it is back")
		b.scale(ctx, "checkout", 4)
		within("while it scales to 4 pods", 2*time.Second)
		serves("with 4 pods")

		cluster.Controller.Stop()
		Expect(cluster.Controller.Start(ctx)).To(Succeed())
		within("while the controller is replaced", leaseTTL)
		serves("under its successor")
		cluster.Controller.Kill()
		within("while no controller leads", 2*time.Second)
		Expect(cluster.Controller.Start(ctx)).To(Succeed())
		Eventually(func() float64 { return within("after the controller was killed", time.Second) }, longest).
			Should(BeNumerically(">", enough))

		Eventually(func(g Gomega) {
			status := get(ctx, g, b.pool).Status
			g.Expect(status.Keys).NotTo(BeNil())
			g.Expect(status.Keys.Limit).To(BeEquivalentTo(fixedLimit))
			g.Expect(status.Keys.SmallestShare).To(HaveValue(BeEquivalentTo(fixedLimit / 4)))
			g.Expect(status.Keys.InFlight).To(HaveValue(BeNumerically("<=", fixedLimit)))
			g.Expect(status.Keys.RejectedPerSecond).To(HaveValue(BeNumerically(">", 0)))
			g.Expect(status.Keys.Overshoot).To(HaveField("Worst", HaveValue(BeZero())))
			g.Expect(meta.FindStatusCondition(status.Conditions, v1alpha1.WithinBoundCondition)).To(HaveField("Status", metav1.ConditionTrue), "%v", status.Conditions)
		}, longest, 100*time.Millisecond).Should(Succeed())

		// The others have slots all the while.
		for _, e := range b.endpoints(ctx) {
			for range 5 {
				Expect(b.sendAs(ctx, e.Proxy, "free")).To(Equal(http.StatusOK))
			}
		}
		var refused int
		for range 40 {
			if b.sendAs(ctx, b.endpoints(ctx)[0].Proxy, "gold") == http.StatusServiceUnavailable {
				refused++
			}
		}
		Expect(refused).To(BeNumerically(">", 0))
	}, SpecTimeout(6*time.Minute))

	It("gives one tenant another limit by a pool of its own", func(ctx SpecContext) {
		const usual = fixedLimit / 2
		big := []v1alpha1.Match{{Headers: []v1alpha1.HeaderMatch{{Name: "X-Tenant", Value: "big"}}}}
		b := openBasin(ctx)
		spec := fixed(10 * fixedLimit)
		spec.Exempt = big
		spec.Key = &v1alpha1.PoolKey{
			Parts: []v1alpha1.KeyPart{{Type: v1alpha1.HeaderPart, Header: &v1alpha1.HeaderKey{Name: "X-Tenant"}}}, Limit: usual,
		}
		b.limit(ctx, spec)
		spec = fixed(fixedLimit)
		spec.PodSelector, spec.Match = b.pool.Spec.PodSelector, big
		own := &v1alpha1.ConcurrencyPool{ObjectMeta: metav1.ObjectMeta{Name: "big", Namespace: b.namespace}, Spec: spec}
		Expect(kube.Create(ctx, own)).To(Succeed())
		b.deploy(ctx, "checkout", 2, nil)
		b.awaitProgrammed(ctx)
		b.pool = own
		b.awaitProgrammed(ctx)

		var tenant atomic.Value
		tenant.Store("small")
		b.startLoadOf(flood, func(r *http.Request) { r.Header.Set("X-Tenant", tenant.Load().(string)) })
		Eventually(func() float64 {
			perSecond, peak := b.flows(ctx, "a tenant with the usual limit", time.Second)
			Expect(peak).To(BeNumerically("<=", usual))
			return perSecond
		}, longest).Should(BeNumerically(">", enough*usual/fixedLimit))

		tenant.Store("big")
		Eventually(b.server.InFlight, longest, 10*time.Millisecond).Should(BeNumerically(">", usual))
		Eventually(func() float64 {
			perSecond, peak := b.flows(ctx, "the one with a pool of its own", time.Second)
			Expect(peak).To(BeNumerically("<=", usual+fixedLimit)) // those of the other drain
			return perSecond
		}, longest).Should(BeNumerically(">", enough))
		_, peak := b.flows(ctx, "alone", time.Second)
		Expect(peak).To(BeNumerically("<=", fixedLimit))
	}, SpecTimeout(4*time.Minute))

	DescribeTable("is divided by a server that may stop, whichever controller leads",
		func(ctx SpecContext, start func(context.Context, *basin) (v1alpha1.Store, *servers.Server)) {
			b := openBasin(ctx)
			spec := fixed(fixedLimit)
			var server *servers.Server
			spec.Coordinator, server = start(ctx, b)
			b.limit(ctx, spec)
			b.deploy(ctx, "checkout", 4, nil)
			b.awaitProgrammed(ctx)
			b.startLoad(flood)
			within := func(what string, length time.Duration) float64 {
				GinkgoHelper()
				perSecond, peak := b.flows(ctx, what, length)
				Expect(peak).To(BeNumerically("<=", fixedLimit), what)
				return perSecond
			}
			serves := func(what string) {
				GinkgoHelper()
				Eventually(func() float64 { return within(what, time.Second) }, longest).Should(BeNumerically(">", enough), what)
			}
			serves("at first")

			cluster.Controller.Kill()
			within("while leases of its time last", leaseTTL)
			serves("while no controller leads")
			Expect(cluster.Controller.Start(ctx)).To(Succeed())

			server.SignalAll(syscall.SIGSTOP)
			within("while the server is suspended", 2*leaseTTL)
			server.SignalAll(syscall.SIGCONT)
			serves("when it goes on")
		},
		Entry("Redis", SpecTimeout(5*time.Minute), func(ctx context.Context, _ *basin) (v1alpha1.Store, *servers.Server) { return startRedis(ctx) }),
		Entry("Postgres", SpecTimeout(5*time.Minute), func(ctx context.Context, b *basin) (v1alpha1.Store, *servers.Server) {
			return startPostgres(ctx, b.namespace)
		}),
	)

	It("follows a backend whose capacity changes", Serial, func(ctx SpecContext) {
		const largest = 100
		b := openBasin(ctx)
		b.limit(ctx, v1alpha1.ConcurrencyPoolSpec{Limit: v1alpha1.PoolLimit{Max: largest}})
		b.deploy(ctx, "checkout", 4, nil)
		b.awaitProgrammed(ctx)
		b.startLoad(flood)
		for _, phase := range []struct {
			service time.Duration
			bears   float64 // requests a second
		}{{service, capacity}, {3 * service, capacity / 3}, {service, capacity}} {
			b.server.SetService(phase.service)
			b.flows(ctx, fmt.Sprintf("the backend begins to take %s", phase.service), 5*time.Second)
			Eventually(func() float64 {
				perSecond, peak := b.flows(ctx, "and then", 5*time.Second)
				Expect(peak).To(BeNumerically("<=", largest))
				return perSecond
			}, longest).Should(BeNumerically(">", phase.bears*8/10))
		}
		Eventually(func(g Gomega) {
			status := get(ctx, g, b.pool).Status
			g.Expect(status.Limit).To(HaveField("Current", BeNumerically("<", largest)))
			g.Expect(status.Overshoot).To(HaveValue(And(
				HaveField("Observed", HaveValue(BeZero())), HaveField("Worst", HaveValue(BeZero())), HaveField("Bound", HaveValue(BeZero())))))
			g.Expect(status.Latency).NotTo(BeNil())
			g.Expect(meta.IsStatusConditionTrue(status.Conditions, v1alpha1.WithinBoundCondition)).To(BeTrue(), "%v", status.Conditions)
		}, longest, 500*time.Millisecond).Should(Succeed())
		refused := b.load.Sum(time.Now().Add(-5*time.Second), time.Now().Add(-time.Second), func(o *traffic.Outcomes) *traffic.Series { return &o.Refused })
		Expect(refused).To(BeNumerically(">", 0))
	}, SpecTimeout(6*time.Minute))

	It("leaves a pod to the older of two pools and names it to the other", func(ctx SpecContext) {
		b := openBasin(ctx)
		b.limit(ctx, fixed(fixedLimit))
		b.deploy(ctx, "checkout", 1, nil)
		b.awaitProgrammed(ctx)
		second := b.pool.DeepCopy()
		second.ObjectMeta = metav1.ObjectMeta{Name: "another", Namespace: b.namespace}
		Expect(kube.Create(ctx, second)).To(Succeed())
		Eventually(func(g Gomega) {
			accepted := meta.FindStatusCondition(get(ctx, g, second).Status.Conditions, v1alpha1.AcceptedCondition)
			g.Expect(accepted).To(And(HaveField("Reason", v1alpha1.ConflictedReason), HaveField("Message", ContainSubstring("checkout"))))
		}, longest, 100*time.Millisecond).Should(Succeed())
		Expect(kube.Delete(ctx, b.pool)).To(Succeed())
		b.pool = second
		b.awaitProgrammed(ctx)
	}, SpecTimeout(3*time.Minute))
})
