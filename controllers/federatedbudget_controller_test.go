package controllers_test

import (
	"context"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/weir-dev/weir/api/v1alpha1"
	"github.com/weir-dev/weir/internal/controlplane/audit"
	"github.com/weir-dev/weir/internal/controlplane/audit/budgetaudit"
	"github.com/weir-dev/weir/internal/controlplane/budget"
	"github.com/weir-dev/weir/internal/controlplane/translate"
	"github.com/weir-dev/weir/pkg/federation/ledger"
	"github.com/weir-dev/weir/pkg/limiter"
)

// A budgetWorld is a world with budgets as well. Its ids have the namespace in them.
type budgetWorld struct {
	*world
	namespace string
}

func newBudgetWorld(t *testing.T) *budgetWorld {
	t.Helper()
	w := newWorld(t)
	return &budgetWorld{world: w, namespace: w.policy.Namespace}
}

func (w *budgetWorld) name(name string) types.NamespacedName {
	return types.NamespacedName{Namespace: w.namespace, Name: name}
}

// create makes a budget of 100 per second over this cluster and another.
func (w *budgetWorld) create(name, id string, change ...func(*v1alpha1.FederatedBudgetSpec)) {
	w.Helper()
	b := &v1alpha1.FederatedBudget{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: name},
		Spec: v1alpha1.FederatedBudgetSpec{
			ID: "acme/" + w.namespace + "/" + id, Rate: v1alpha1.BudgetRate{Limit: 100, Window: "1s"},
			Members: []v1alpha1.BudgetMember{{Name: cluster}, {Name: "us-east"}},
		},
	}
	for _, c := range change {
		c(&b.Spec)
	}
	w.Expect(server.Create(w.Context(), b)).To(Succeed())
	w.Cleanup(func() {
		if err := server.Delete(context.Background(), b); client.IgnoreNotFound(err) != nil {
			w.Log(err)
		}
	})
}

func (w *budgetWorld) budget(name string) *v1alpha1.FederatedBudget {
	w.Helper()
	b := &v1alpha1.FederatedBudget{}
	w.Expect(server.Get(w.Context(), w.name(name), b)).To(Succeed())
	return b
}

func (w *budgetWorld) eventuallyOf(name, kind, reason string) *metav1.Condition {
	w.Helper()
	var found *metav1.Condition
	w.Eventually(func() string {
		if found = meta.FindStatusCondition(w.budget(name).Status.Conditions, kind); found != nil {
			return found.Reason
		}
		return ""
	}).Should(Equal(reason), kind)
	return found
}

// say has something be known of the present generation of a budget: that this cluster
// was granted that much of the open window, and what changes make of that.
func (w *budgetWorld) say(name string, granted int64, changes ...func(*budget.Observation)) {
	w.Helper()
	at := limiter.Instant(clock.Now().UnixMicro())
	index := int64(at) / int64(limiter.Second)
	before := ledger.Closed{Index: index - 1, Limit: 100, Granted: 97, Usage: []ledger.MemberUsage{
		{Member: cluster, Granted: 50, Admitted: 50, Refused: 3, Reported: true, Complete: true},
		{Member: "us-east", Granted: 47, Admitted: 41, Reported: true, Complete: true},
	}}
	o := budget.Observation{
		Generation: translate.Generation(w.budget(name)),
		Root:       budget.Root{Member: cluster, Term: 1},
		Read:       at,
		Ledger: &ledger.State{
			Window: limiter.Second, Index: index, Term: 1, Limit: 100, Latest: at,
			Accounts:  []ledger.Account{{Member: cluster, Holder: "a", Granted: granted}},
			Standings: []ledger.Standing{{Member: cluster, Seen: at, Demand: granted}, {Member: "us-east", Seen: at}},
			Closed:    []ledger.Closed{before},
		},
		Figures: budgetaudit.Figures{
			Verdict: audit.Measured, Window: &before, Overshoot: &budgetaudit.Overshoot{WindowEnd: clock.Now()},
			UnderUtilization: &audit.UnderUtilization{Observed: 300, Worst: 300}, LeasesPerSecond: 4, UnitsPerLease: 12.5,
		},
	}
	for _, c := range changes {
		c(&o)
	}
	fleet.sayOfBudget(w.name(name), o)
}

func TestABudgetShowsWhatAllClustersDo(t *testing.T) {
	w := newBudgetWorld(t)
	w.create("world", "checkout")
	w.eventuallyOf("world", v1alpha1.AcceptedCondition, v1alpha1.AcceptedReason)
	w.eventuallyOf("world", v1alpha1.ConnectedCondition, v1alpha1.StartingReason)

	w.say("world", 40)
	w.eventuallyOf("world", v1alpha1.ConnectedCondition, v1alpha1.ConnectedReason)
	w.eventuallyOf("world", v1alpha1.LearningCondition, v1alpha1.LearnedReason)
	w.eventuallyOf("world", v1alpha1.WithinBoundCondition, v1alpha1.MeasuredReason)
	status := w.budget("world").Status
	w.Expect(status.Summary).To(Equal(v1alpha1.BudgetSummary{
		Limit: "100/1s", Members: "2/2", Granted: "97%", Used: "91%", Overshoot: "0 ≤ 0", Unused: "3.0%", Root: cluster, UnitsPerLease: "12.5",
	}))
	w.Expect(status.Self).To(Equal(cluster))
	w.Expect(status.Root.State).To(Equal(v1alpha1.RootLeading))
	w.Expect(status.Allocation.Granted).To(BeEquivalentTo(40))
}

func TestFiguresOfABudgetWaitAndConditionsDoNot(t *testing.T) {
	w := newBudgetWorld(t)
	w.create("world", "checkout")
	granted := func() int64 {
		if a := w.budget("world").Status.Allocation; a != nil {
			return a.Granted
		}
		return -1
	}
	w.say("world", 10)
	w.Eventually(granted).Should(BeEquivalentTo(10))
	w.settle()

	w.say("world", 20)
	w.Consistently(granted).Should(BeEquivalentTo(10))
	elapse(18*time.Second, func() { w.say("world", 30) })
	w.Eventually(granted).Should(BeEquivalentTo(30))

	w.say("world", 30, func(o *budget.Observation) {
		o.Link = budget.Link{Problem: budget.NoRoot, Detail: "forbidden", Since: clock.Now()}
	})
	cut := w.eventuallyOf("world", v1alpha1.ConnectedCondition, v1alpha1.NoRootReason)
	w.Expect(cut.Message).To(ContainSubstring("(forbidden)"))
	w.eventuallyOf("world", v1alpha1.WithinBoundCondition, v1alpha1.ReportsMissingReason)
	w.Expect(w.budget("world").Status.Summary.Members).To(Equal("-"))

	w.say("world", 30, func(o *budget.Observation) { o.Figures.Verdict, o.Figures.Overshoot.Worst = audit.Exceeded, 3 })
	w.eventuallyOf("world", v1alpha1.ConnectedCondition, v1alpha1.ConnectedReason)
	w.eventuallyOf("world", v1alpha1.WithinBoundCondition, v1alpha1.BoundExceededReason)
}

func TestABudgetThatCannotCount(t *testing.T) {
	w := newBudgetWorld(t)
	w.create("others", "others", func(s *v1alpha1.FederatedBudgetSpec) { s.Members = []v1alpha1.BudgetMember{{Name: "us-east"}} })
	stranger := w.eventuallyOf("others", v1alpha1.AcceptedCondition, v1alpha1.NotAMemberReason)
	w.Expect(stranger.Message).To(HavePrefix(`this cluster is called "eu-west" by the flag --cluster-name`))
	w.Expect(w.budget("others").Status.Conditions).To(HaveLen(3)) // with Ready and Stalled
	w.Expect(w.budget("others").Status.Summary.Limit).To(Equal("100/1s"))
}

// TestABudgetThatMayNotHaveItsID: what others of that id do is nothing to it, and it is
// nothing to them.
func TestABudgetThatMayNotHaveItsID(t *testing.T) {
	w := newBudgetWorld(t)
	id := w.namespace + "/world"
	w.create("world", "own", func(s *v1alpha1.FederatedBudgetSpec) { s.ID = id })
	denied := w.eventuallyOf("world", v1alpha1.AcceptedCondition, v1alpha1.IDNotPermittedReason)
	w.Expect(denied.Status).To(Equal(metav1.ConditionFalse))
	w.Expect(denied.Message).To(HavePrefix("spec.id: namespace " + w.namespace + " may not have the id " + id + ", but acme/*: choose such an id, or let an administrator allow it by --federation-ids"))
	w.Expect(w.budget("world").Status.Conditions).To(HaveLen(3)) // with Ready and Stalled
	w.draw("world")
	w.eventually(v1alpha1.AcceptedCondition, v1alpha1.BudgetNotFoundReason)
}

func TestADoubtfulBudgetIsAcceptedWithAWarning(t *testing.T) {
	w := newBudgetWorld(t)
	w.create("world", "checkout", func(s *v1alpha1.FederatedBudgetSpec) {
		s.Batch = v1alpha1.BudgetBatch{Type: v1alpha1.FixedBatch, Size: 100}
	})
	accepted := w.eventuallyOf("world", v1alpha1.AcceptedCondition, v1alpha1.AcceptedReason)
	w.Expect(accepted.Message).To(ContainSubstring("spec.batch.size"))
}

// The name decides between two budgets of one second. The loser counts when the other
// goes, and the policies that draw from it with it.
func TestTheIDOfABudgetIsTakenOnce(t *testing.T) {
	w := newBudgetWorld(t)
	w.create("a-first", "checkout")
	w.eventuallyOf("a-first", v1alpha1.AcceptedCondition, v1alpha1.AcceptedReason)
	w.create("b-second", "checkout")
	lost := w.eventuallyOf("b-second", v1alpha1.AcceptedCondition, v1alpha1.ConflictedReason)
	w.Expect(lost.Message).To(HavePrefix("FederatedBudget " + w.namespace + "/a-first has the id"))
	w.draw("b-second")
	w.eventually(v1alpha1.AcceptedCondition, v1alpha1.BudgetNotFoundReason)

	before := fleet.refreshes(w.namespace)
	w.Expect(server.Delete(t.Context(), w.budget("a-first"))).To(Succeed())
	w.eventuallyOf("b-second", v1alpha1.AcceptedCondition, v1alpha1.AcceptedReason)
	w.eventually(v1alpha1.AcceptedCondition, v1alpha1.AcceptedReason)
	w.Eventually(func() int { return fleet.refreshes(w.namespace) }).Should(BeNumerically(">", before))
}

// draw makes the only limit of the world's policy one that draws from a budget.
func (w *budgetWorld) draw(from string) {
	w.Helper()
	w.Eventually(func() error {
		p := w.get()
		p.Spec.Limits = []v1alpha1.Limit{{Name: "all", Scope: v1alpha1.FederatedScope, BudgetRef: &v1alpha1.BudgetReference{Name: from}}}
		return server.Update(w.Context(), p)
	}).Should(Succeed())
}

func TestAPolicyFollowsItsBudget(t *testing.T) {
	w := newBudgetWorld(t)
	w.draw("world")
	w.eventually(v1alpha1.AcceptedCondition, v1alpha1.BudgetNotFoundReason)
	missing := w.condition(v1alpha1.AcceptedCondition)
	w.Expect(missing.Message).To(ContainSubstring("there is no FederatedBudget " + w.namespace + "/world"))

	before := fleet.refreshes(w.namespace)
	w.create("world", "checkout")
	w.eventually(v1alpha1.AcceptedCondition, v1alpha1.AcceptedReason)
	w.Eventually(func() string { return w.get().Status.Summary.Limits }).Should(Equal("100/1s federated"))
	w.Expect(w.get().Status.Guarantee.Grade).To(Equal(v1alpha1.HardGuarantee))
	w.Eventually(func() int { return fleet.refreshes(w.namespace) }).Should(BeNumerically(">", before), "the policy was published")

	before = fleet.refreshes(w.namespace)
	w.Eventually(func() error {
		b := w.budget("world")
		b.Spec.Rate.Limit = 200
		return server.Update(t.Context(), b)
	}).Should(Succeed())
	w.Eventually(func() int { return fleet.refreshes(w.namespace) }).Should(BeNumerically(">", before), "the limit was published")
	clock.SetTime(clock.Now().Add(20 * time.Second))
	fleet.say(w.policy, fleet.Observe(w.policy.Namespace, w.policy.Name))
	w.Eventually(func() string { return w.get().Status.Summary.Limits }).Should(Equal("200/1s federated"))

	w.Expect(server.Delete(t.Context(), w.budget("world"))).To(Succeed())
	w.eventually(v1alpha1.AcceptedCondition, v1alpha1.BudgetNotFoundReason)
}

// The grade of a policy follows the server that keeps its budget.
func TestTheGuaranteeIsThatOfTheServerOfTheBudget(t *testing.T) {
	w := newBudgetWorld(t)
	w.create("world", "checkout", func(s *v1alpha1.FederatedBudgetSpec) {
		s.Coordinator = v1alpha1.BudgetCoordinator{Type: v1alpha1.RedisCoordinator, Redis: &v1alpha1.RedisStore{Address: "redis:6379"}}
	})
	w.draw("world")
	w.Eventually(func() v1alpha1.GuaranteeGrade {
		if g := w.get().Status.Guarantee; g != nil {
			return g.Grade
		}
		return ""
	}).Should(Equal(v1alpha1.HardExceptSplitBrainGuarantee))
	w.Expect(w.get().Status.Guarantee.Reason).To(HaveSuffix("of FederatedBudget world: 2 replicas"))
}

func TestAStatusThatIsWipedIsWrittenAgain(t *testing.T) {
	w := newBudgetWorld(t)
	w.create("world", "checkout")
	w.say("world", 10)
	w.eventuallyOf("world", v1alpha1.ConnectedCondition, v1alpha1.ConnectedReason)
	b := w.budget("world")
	b.Status = v1alpha1.FederatedBudgetStatus{}
	w.Expect(server.Status().Update(t.Context(), b)).To(Succeed())
	w.eventuallyOf("world", v1alpha1.ConnectedCondition, v1alpha1.ConnectedReason)
}
