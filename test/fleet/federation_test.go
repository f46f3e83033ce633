//go:build fleet

package fleet

import (
	"context"
	"fmt"
	"path/filepath"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/weir-dev/weir/api/v1alpha1"
	"github.com/weir-dev/weir/internal/testing/devcluster/link"
	"github.com/weir-dev/weir/internal/testing/windows"
)

const (
	system     = "weir-system"
	hubSecret  = "weir-hub"
	budgetName = "checkout-world"

	// mostly is what both clusters use of the budget at least, when it is all theirs: a
	// busy machine leaves a little.
	mostly = limit * 9 / 10
)

// A federation is one budget over two clusters: a hub and a member that reaches it over
// a link.
type federation struct {
	hub, member *shop
	link        *link.Link
}

// federate creates the budget and a shop in both clusters. The member has the
// credentials that the hub made for it.
func federate(ctx context.Context, member *site, edit func(*v1alpha1.FederatedBudgetSpec)) *federation {
	GinkgoHelper()
	way, err := link.Open(here.cluster.Controller.FederationAddress())
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(way.Close)
	f := &federation{hub: openEmptyShop(ctx, here), member: openEmptyShop(ctx, member), link: way}
	id := "acme/" + f.hub.namespace // one budget a spec
	for _, s := range f.shops() {
		budget := &v1alpha1.FederatedBudget{
			ObjectMeta: metav1.ObjectMeta{Name: budgetName, Namespace: s.namespace},
			Spec: v1alpha1.FederatedBudgetSpec{
				ID:      id,
				Rate:    v1alpha1.BudgetRate{Limit: limit, Window: v1alpha1.Duration(perSet.String())},
				Members: []v1alpha1.BudgetMember{{Name: here.name}, {Name: member.name}},
			},
		}
		if edit != nil {
			edit(&budget.Spec)
		}
		if s == f.member {
			budget.Spec.Hub = &v1alpha1.BudgetHub{
				Endpoint: v1alpha1.HostPort(way.Address()), SecretRef: v1alpha1.SecretReference{Name: hubSecret},
			}
		}
		Expect(s.kube.Create(ctx, budget)).To(Succeed())
		s.draw(ctx)
		if s == f.hub {
			f.introduce(ctx, f.member, member.name)
		}
	}
	return f
}

func (f *federation) shops() []*shop { return []*shop{f.hub, f.member} }

// draw creates a policy that draws from the budget.
func (s *shop) draw(ctx context.Context) {
	GinkgoHelper()
	s.window = perSet
	s.policy = policyIn(s.namespace)
	s.policy.Spec.Limits = []v1alpha1.Limit{{
		Name: "world", Scope: v1alpha1.FederatedScope, BudgetRef: &v1alpha1.BudgetReference{Name: budgetName},
	}}
	Expect(s.kube.Create(ctx, s.policy)).To(Succeed())
}

// introduce copies the Secret that the hub made for a member to where the shop's
// budget names it, and lets the shop's controller read it.
func (f *federation) introduce(ctx context.Context, s *shop, as string) {
	GinkgoHelper()
	var made corev1.Secret
	Eventually(func() error {
		return f.hub.kube.Get(ctx, client.ObjectKey{Namespace: system, Name: "weir-member-" + as}, &made)
	}, longest, 100*time.Millisecond).Should(Succeed())
	Expect(s.kube.Create(ctx, &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: hubSecret, Namespace: s.namespace}, Type: made.Type, Data: made.Data,
	})).To(Succeed())
	Expect(s.kube.Create(ctx, &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "weir-secrets", Namespace: s.namespace},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "weir-hub-credentials"},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: system, Name: "weir-controller"}},
	})).To(Succeed())
}

// deploy runs two pods in each cluster, under the given loads.
func (f *federation) deploy(ctx context.Context, hub, member float64) {
	GinkgoHelper()
	for i, rate := range []float64{hub, member} {
		s := f.shops()[i]
		s.deploy(ctx, "checkout", 2, nil)
		s.startLoad(rate)
	}
}

// whole is a window that the clusters together used almost completely.
var whole = WithTransform(windows.Split.Sum, BeNumerically(">=", mostly))

// admitted waits until a window is over and returns what was admitted in it. None may
// admit more than the limit, over both.
func (f *federation) admitted(ctx context.Context, start time.Time) windows.Split {
	GinkgoHelper()
	s := windows.Split{Hub: f.hub.admitted(ctx, start), Member: f.member.admitted(ctx, start)}
	Expect(s.Sum()).To(BeNumerically("<=", limit), "%+v", s)
	return s
}

// await returns when n windows in a row, from the first on or later, are as wanted. It
// returns what each window admitted.
func (f *federation) await(ctx context.Context, first time.Time, n int, wanted OmegaMatcher) []windows.Split {
	GinkgoHelper()
	return inARow(n, wanted, func(i int) windows.Split {
		GinkgoHelper()
		return f.admitted(ctx, first.Add(time.Duration(i)*perSet))
	})
}

// awaitWhole returns when n windows in a row, from the first on or later, admitted mostly
// all. Those from an instant until the first may hold less, but no more either.
func (f *federation) awaitWhole(ctx context.Context, from, first time.Time, n int) {
	GinkgoHelper()
	for ; from.Before(first); from = from.Add(perSet) {
		f.admitted(ctx, from)
	}
	f.await(ctx, first, n, whole)
}

// connected returns when both clusters say that they take part.
func (f *federation) connected(ctx context.Context) {
	GinkgoHelper()
	for _, s := range f.shops() {
		Eventually(func(g Gomega) {
			c, err := s.budgetCondition(ctx, v1alpha1.ConnectedCondition)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(c.Status).To(Equal(metav1.ConditionTrue), "%s: %s: %s", s.name, c.Reason, c.Message)
		}, longest, 200*time.Millisecond).Should(Succeed())
	}
}

// budget reads the shop's budget.
func (s *shop) budget(ctx context.Context) (*v1alpha1.FederatedBudget, error) {
	var b v1alpha1.FederatedBudget
	return &b, s.kube.Get(ctx, client.ObjectKey{Namespace: s.namespace, Name: budgetName}, &b)
}

// budgetCondition returns a condition of the shop's budget.
func (s *shop) budgetCondition(ctx context.Context, name string) (metav1.Condition, error) {
	b, err := s.budget(ctx)
	if err != nil {
		return metav1.Condition{}, err
	}
	if c := meta.FindStatusCondition(b.Status.Conditions, name); c != nil {
		return *c, nil
	}
	return metav1.Condition{}, fmt.Errorf("no condition %s yet", name)
}

var _ = Describe("A budget over two clusters", Ordered, ContinueOnFailure, func() {
	var member *site
	BeforeAll(func(ctx SpecContext) {
		member = openSite(ctx, "us-east", filepath.Join(workDir, "us-east"))
	}, NodeTimeout(2*time.Minute))

	It("is one limit for all clusters that ask for it", func(ctx SpecContext) {
		f := federate(ctx, member, nil)
		f.deploy(ctx, overload/2, overload/2)
		f.connected(ctx)
		equalParts := HaveField("Hub", BeNumerically("~", limit/2, limit/20))
		f.await(ctx, f.hub.warmUp(ctx), 3, And(whole, equalParts))

		f.hub.load.SetRate(1)
		f.await(ctx, f.hub.nextWindow(), 2, HaveField("Member", BeNumerically(">=", mostly))) // what one does not want is the other's

		for _, s := range f.shops() {
			Eventually(func(g Gomega) {
				b, err := s.budget(ctx)
				g.Expect(err).NotTo(HaveOccurred())
				g.Expect(b.Status.Summary).To(HaveField("Members", "2/2"))
				g.Expect(b.Status.Overshoot.Observed).To(HaveValue(BeZero()))
				g.Expect(b.Status.Overshoot.Worst).To(HaveValue(BeZero()))
				g.Expect(meta.IsStatusConditionTrue(b.Status.Conditions, v1alpha1.WithinBoundCondition)).To(BeTrue(), "%v", b.Status.Conditions)
			}, longest, time.Second).Should(Succeed())
		}
	}, SpecTimeout(6*time.Minute))

	It("holds while a region is cut off, and is whole again when it is back", more, func(ctx SpecContext) {
		f := federate(ctx, member, nil)
		f.deploy(ctx, overload/2, overload/2)
		f.connected(ctx)
		sleepUntil(ctx, f.hub.warmUp(ctx).Add(300*time.Millisecond))
		began := f.hub.windowAt(time.Now())
		f.link.Cut()
		f.admitted(ctx, began)
		// The region's demand of the window before is kept for it once.
		cut := f.await(ctx, began.Add(perSet), 1, HaveField("Hub", BeNumerically(">=", mostly)))
		Expect(cut).To(HaveEach(HaveField("Member", BeZero())), "a region that fails closed has nothing of a new window")
		Eventually(f.member.budgetCondition, longest, 200*time.Millisecond).
			WithContext(ctx).WithArguments(v1alpha1.ConnectedCondition).
			Should(And(HaveField("Status", metav1.ConditionFalse), HaveField("Message", ContainSubstring("FailClosed"))))

		f.link.Heal()
		f.connected(ctx)
		f.await(ctx, f.hub.nextWindow(), 2, And(whole, HaveField("Member", BeNumerically("~", limit/2, limit/10))))
	}, SpecTimeout(6*time.Minute))

	It("leaves a region that is cut off its slice, and no more", func(ctx SpecContext) {
		const slice = limit / 5
		f := federate(ctx, member, func(spec *v1alpha1.FederatedBudgetSpec) {
			spec.Members[1].Nominal = slice
			spec.OnCoordinatorOutage.Action = v1alpha1.BudgetNominalAction
		})
		f.deploy(ctx, overload/2, overload/2)
		f.connected(ctx)
		sleepUntil(ctx, f.hub.warmUp(ctx).Add(300*time.Millisecond))
		began := f.hub.windowAt(time.Now())
		f.link.Cut()
		f.admitted(ctx, began)
		cut := f.await(ctx, began.Add(perSet), 1, And(
			HaveField("Hub", BeNumerically(">=", (limit-slice)*9/10)), HaveField("Member", BeNumerically(">=", slice*9/10))))
		Expect(cut).To(HaveEach(HaveField("Member", BeNumerically("<=", slice))))
	}, SpecTimeout(6*time.Minute))

	DescribeTable("survives its hub's controller",
		func(ctx SpecContext, end func()) {
			f := federate(ctx, member, nil)
			f.deploy(ctx, overload/2, overload/2)
			f.connected(ctx)
			start := f.hub.warmUp(ctx)
			sleepUntil(ctx, start.Add(time.Second))
			end()
			Expect(here.cluster.Controller.Start(ctx)).To(Succeed())
			f.awaitWhole(ctx, start, f.hub.nextWindow(), 2)
		},
		Entry("when it is stopped in good order", more, SpecTimeout(6*time.Minute), func() { here.cluster.Controller.Stop() }),
		Entry("when it is killed", SpecTimeout(6*time.Minute), func() { here.cluster.Controller.Kill() }),
	)

	It("moves to another hub", func(ctx SpecContext) {
		f := federate(ctx, member, nil)
		f.deploy(ctx, overload/2, overload/2)
		f.connected(ctx)
		start := f.hub.warmUp(ctx)

		old, err := f.hub.budget(ctx)
		Expect(err).NotTo(HaveOccurred())
		Expect(f.hub.kube.Delete(ctx, old)).To(Succeed())
		moved, err := f.member.budget(ctx)
		Expect(err).NotTo(HaveOccurred())
		linked := moved.DeepCopy()
		moved.Spec.Hub = nil
		Expect(f.member.kube.Patch(ctx, moved, client.MergeFrom(linked))).To(Succeed())
		back := &federation{hub: f.member, member: f.hub}
		back.introduce(ctx, f.hub, here.name)
		again := &v1alpha1.FederatedBudget{ObjectMeta: metav1.ObjectMeta{Name: budgetName, Namespace: f.hub.namespace}, Spec: moved.Spec}
		again.Spec.Hub = &v1alpha1.BudgetHub{
			Endpoint:  v1alpha1.HostPort(member.cluster.Controller.FederationAddress()),
			SecretRef: v1alpha1.SecretReference{Name: hubSecret},
		}
		Expect(f.hub.kube.Create(ctx, again)).To(Succeed())
		f.connected(ctx)
		f.awaitWhole(ctx, start, f.hub.nextWindow(), 2)
	}, SpecTimeout(6*time.Minute))

	It("gives nothing to a cluster with another's credentials", func(ctx SpecContext) {
		f := federate(ctx, member, func(spec *v1alpha1.FederatedBudgetSpec) {
			spec.Members = append(spec.Members, v1alpha1.BudgetMember{Name: "ap-south"})
		})
		f.deploy(ctx, 20, 20)
		f.connected(ctx)
		var other corev1.Secret
		Expect(here.kube.Get(ctx, client.ObjectKey{Namespace: system, Name: "weir-member-ap-south"}, &other)).To(Succeed())
		var own corev1.Secret
		Expect(member.kube.Get(ctx, client.ObjectKey{Namespace: f.member.namespace, Name: hubSecret}, &own)).To(Succeed())
		before := own.DeepCopy()
		own.Data = other.Data
		Expect(member.kube.Patch(ctx, &own, client.MergeFrom(before))).To(Succeed())
		Eventually(f.member.budgetCondition, longest, 200*time.Millisecond).
			WithContext(ctx).WithArguments(v1alpha1.ConnectedCondition).
			Should(And(HaveField("Status", metav1.ConditionFalse), HaveField("Reason", v1alpha1.UnauthorizedReason)))
		Expect(f.admitted(ctx, f.hub.nextWindow()).Member).To(BeZero())
	}, SpecTimeout(6*time.Minute))
})
