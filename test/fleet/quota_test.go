//go:build fleet

package fleet

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/weir-dev/weir/api/v1alpha1"
	"github.com/weir-dev/weir/internal/testing/devcluster/servers"
)

const (
	quota      = 6000            // a day
	quotaLoad  = 400             // requests a second
	resumeTime = 5 * time.Second // from the store's return to the first request that it grants
)

// A quotaStore is where the counters of a day are kept, and how it ends and comes back.
type quotaStore struct {
	store v1alpha1.Store
	world bool // a budget that all clusters share, in place of the store
	stop  func()
	kill  func()
	start func(ctx context.Context)
}

func (s *shop) quotaInController(context.Context) quotaStore {
	return quotaStore{
		store: v1alpha1.Store{Type: v1alpha1.ControllerStore},
		stop:  cluster.Controller.Stop, kill: cluster.Controller.Kill,
		start: func(ctx context.Context) { Expect(cluster.Controller.Start(ctx)).To(Succeed()) },
	}
}

func (s *shop) quotaOfWorld(ctx context.Context) quotaStore {
	q := s.quotaInController(ctx)
	q.world = true
	return q
}

// onServer keeps counters on a server that has its data on disk.
func onServer(store v1alpha1.Store, server *servers.Server) quotaStore {
	return quotaStore{
		store: store,
		stop:  func() { server.Stop(10 * time.Second) }, kill: func() { server.Crash() },
		start: func(ctx context.Context) { Expect(server.Restart(ctx)).To(Succeed()) },
	}
}

func (s *shop) quotaInRedis(ctx context.Context) quotaStore {
	GinkgoHelper()
	server, err := servers.RedisWith(ctx, servers.Options{
		Logs: GinkgoT().TempDir(), Args: []string{"--appendonly", "yes", "--appendfsync", "always"},
	})
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(server.Kill)
	return onServer(v1alpha1.Store{Type: v1alpha1.RedisStoreType, Redis: &v1alpha1.RedisStore{Address: v1alpha1.HostPort(server.Address)}}, server)
}

func (s *shop) quotaInPostgres(ctx context.Context) quotaStore {
	GinkgoHelper()
	return onServer(startPostgres(ctx, s.namespace))
}

// limitADay creates a policy of a day that is not about to end.
func (s *shop) limitADay(ctx context.Context, q quotaStore) {
	GinkgoHelper()
	if q.world {
		s.limitTheWorld(ctx, v1alpha1.BudgetCoordinator{})
		return
	}
	s.policy = policyIn(s.namespace)
	s.policy.Spec.Limits[0].Algorithm = v1alpha1.QuotaAlgorithm
	s.policy.Spec.Limits[0].Rates = []v1alpha1.Rate{{Limit: quota, Cadence: v1alpha1.Daily}}
	if time.Now().UTC().Hour() == 23 {
		s.policy.Spec.Limits[0].UTCOffset = "+06:00"
	}
	s.policy.Spec.Store.Store = q.store
	s.policy.Spec.OnStoreUnavailable.Action = v1alpha1.DenyAction
	Expect(s.kube.Create(ctx, s.policy)).To(Succeed())
}

// limitTheWorld creates a budget of a month, with this cluster as its only member, and a
// policy that draws from it.
func (s *shop) limitTheWorld(ctx context.Context, kept v1alpha1.BudgetCoordinator) {
	GinkgoHelper()
	Expect(s.kube.Create(ctx, &v1alpha1.FederatedBudget{
		ObjectMeta: metav1.ObjectMeta{Name: budgetName, Namespace: s.namespace},
		Spec: v1alpha1.FederatedBudgetSpec{
			ID: "acme/" + s.namespace, Members: []v1alpha1.BudgetMember{{Name: s.name}}, Coordinator: kept,
			Rate: v1alpha1.BudgetRate{Limit: quota, Window: "744h"},
		},
	})).To(Succeed())
	s.draw(ctx)
}

// showAnswer shows what a client is answered, and the status, should the spec fail.
func (s *shop) showAnswer(ctx SpecContext) {
	if !CurrentSpecReport().Failed() {
		return
	}
	for _, e := range s.endpoints(ctx) {
		answer, err := s.send(ctx, e.Proxy)
		fmt.Fprintf(GinkgoWriter, "%s answers %s %v\n", e.Pod, answer, err)
	}
	for _, c := range s.status(ctx, Default).Conditions {
		fmt.Fprintf(GinkgoWriter, "%s %s %s: %s\n", c.Type, c.Status, c.Reason, c.Message)
	}
	fmt.Fprintf(GinkgoWriter, "%+v\n", s.policy.Status.Limits)
}

// send returns the body of the answer to a request.
func (s *shop) send(ctx context.Context, address string) (string, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+address+"/", http.NoBody)
	if err != nil {
		return "", err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	return resp.Status + " " + string(body), err
}

// followed returns when n pods follow the policy.
func (s *shop) followed(ctx context.Context, n int32) {
	GinkgoHelper()
	Eventually(func(g Gomega) {
		status := s.status(ctx, g)
		g.Expect(status.Enforcement).To(HaveValue(Equal(v1alpha1.Enforcement{Desired: n, Current: n})))
		g.Expect(meta.IsStatusConditionTrue(status.Conditions, v1alpha1.ProgrammedCondition)).To(BeTrue(), "%v", status.Conditions)
	}, longest, 100*time.Millisecond).Should(Succeed())
}

// awaitAdmitted returns how long after an instant a request reached the application, which
// is no longer than most.
func (s *shop) awaitAdmitted(ctx context.Context, from time.Time, most time.Duration) time.Duration {
	GinkgoHelper()
	Eventually(func() int64 { return s.tally.Between(from, time.Now()) }, most, 10*time.Millisecond).
		WithContext(ctx).Should(BeNumerically(">", 0), "nothing is admitted")
	return time.Since(from).Round(time.Millisecond)
}

var _ = Describe("A day's quota", func() {
	DescribeTable("serves from its first request, and goes on when its store is back",
		func(ctx SpecContext, open func(*shop, context.Context) quotaStore, end func(quotaStore)) {
			s := openEmptyShop(ctx, here)
			DeferCleanup(s.showAnswer)
			store := open(s, ctx)
			s.limitADay(ctx, store)
			s.deploy(ctx, "checkout", 4, nil)
			s.followed(ctx, 4)
			from := time.Now()
			s.startLoad(quotaLoad)
			first := s.awaitAdmitted(ctx, from, 2*time.Second)

			sleepUntil(ctx, from.Add(3*time.Second)) // in the midst of spending
			end(store)
			sleepUntil(ctx, time.Now().Add(2*time.Second)) // what pods have in hand is spent
			store.start(ctx)
			back := time.Now()
			again := s.awaitAdmitted(ctx, back, resumeTime)

			// Leases whose answers did not arrive are lost, and the units set aside.
			const lost = quota / 5
			Eventually(func() int64 { return s.tally.Between(from, time.Now()) }, longest, 100*time.Millisecond).Should(BeNumerically(">=", quota-lost))
			sleepUntil(ctx, time.Now().Add(3*time.Second))
			total := s.tally.Between(from, time.Now())
			fmt.Fprintf(GinkgoWriter, "first request after %v, again %v after the store was back; %d of %d admitted\n", first, again, total, quota)
			Expect(total).To(BeNumerically("<=", quota))
			Eventually(func(g Gomega) {
				c := meta.FindStatusCondition(s.status(ctx, g).Conditions, v1alpha1.WithinBoundCondition)
				g.Expect(c).To(HaveValue(HaveField("Status", Not(Equal(metav1.ConditionFalse)))))
			}, longest, time.Second).Should(Succeed())
		},
		Entry("in Redis that is killed", SpecTimeout(3*time.Minute), (*shop).quotaInRedis, func(q quotaStore) { q.kill() }),
		Entry("in Redis that is restarted", more, SpecTimeout(3*time.Minute), (*shop).quotaInRedis, func(q quotaStore) { q.stop() }),
		Entry("in Postgres that is killed", SpecTimeout(3*time.Minute), (*shop).quotaInPostgres, func(q quotaStore) { q.kill() }),
		Entry("in Postgres that is restarted", more, SpecTimeout(3*time.Minute), (*shop).quotaInPostgres, func(q quotaStore) { q.stop() }),
		Entry("in a controller that is killed", SpecTimeout(3*time.Minute), (*shop).quotaInController, func(q quotaStore) { q.kill() }),
		Entry("in a controller that is restarted", more, SpecTimeout(3*time.Minute), (*shop).quotaInController, func(q quotaStore) { q.stop() }),
		Entry("in a budget whose hub is killed", SpecTimeout(3*time.Minute), (*shop).quotaOfWorld, func(q quotaStore) { q.kill() }),
	)
})

var _ = Describe("A budget of a month in a Redis", func() {
	It("serves from its first request, and waits when the Redis forgot it", SpecTimeout(3*time.Minute), func(ctx SpecContext) {
		s := openEmptyShop(ctx, here)
		DeferCleanup(s.showAnswer)
		store, server := startRedis(ctx)
		s.limitTheWorld(ctx, v1alpha1.BudgetCoordinator{Type: v1alpha1.RedisCoordinator, Redis: store.Redis})
		s.deploy(ctx, "checkout", 2, nil)
		s.followed(ctx, 2)
		from := time.Now()
		s.startLoad(quotaLoad)
		first := s.awaitAdmitted(ctx, from, 2*time.Second)
		sleepUntil(ctx, from.Add(3*time.Second))

		server.Crash()
		Expect(server.Restart(ctx)).To(Succeed())
		Eventually(func(g Gomega) {
			c, err := s.budgetCondition(ctx, v1alpha1.LearningCondition)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(c.Status).To(Equal(metav1.ConditionTrue), "%s: %s", c.Reason, c.Message)
		}, longest, 200*time.Millisecond).Should(Succeed())
		forgot := time.Now()
		sleepUntil(ctx, forgot.Add(2*time.Second)) // what was leased is spent
		total := s.tally.Between(from, time.Now())
		sleepUntil(ctx, forgot.Add(5*time.Second))
		Expect(s.tally.Between(from, time.Now())).To(Equal(total), "a memory grants what another may have granted")
		fmt.Fprintf(GinkgoWriter, "first request after %v; %d of %d admitted\n", first, total, quota)
		Expect(total).To(BeNumerically("<=", quota))
	})
})
