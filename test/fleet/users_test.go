//go:build fleet

package fleet

import (
	"context"
	"fmt"
	"net/http"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/weir-dev/weir/api/v1alpha1"
	"github.com/weir-dev/weir/internal/testing/devcluster/traffic"
	"github.com/weir-dev/weir/internal/testing/windows"
)

// perUser is what both clusters together admit of one user in a window.
const perUser = 50

// The users who ask for more than that in both clusters. Others ask once.
var heavyUsers = []string{"alice", "bob"}

// arrivals are what reached the application of one cluster, by user.
type arrivals struct {
	mu     sync.Mutex
	byUser map[string]*traffic.Series
}

// arrivalsAt counts what reaches the shop's application, before that runs.
func arrivalsAt(s *shop) *arrivals {
	a := &arrivals{byUser: map[string]*traffic.Series{}}
	s.tally.OnArrival = func(_ string, at time.Time, user string) { a.of(user).Add(at) }
	return a
}

func (a *arrivals) of(user string) *traffic.Series {
	a.mu.Lock()
	defer a.mu.Unlock()
	s := a.byUser[user]
	if s == nil {
		s = &traffic.Series{}
		a.byUser[user] = s
	}
	return s
}

// in returns how many requests of each user arrived in a window.
func (a *arrivals) in(start time.Time) map[string]int {
	a.mu.Lock()
	defer a.mu.Unlock()
	counts := map[string]int{}
	for user, s := range a.byUser {
		if n := int(s.Between(start, start.Add(perSet))); n > 0 {
			counts[user] = n
		}
	}
	return counts
}

// asking marks requests with their user: of ten four are of each heavy user, and two of users who
// ask once.
func asking(cluster string) func(*http.Request) {
	var turn atomic.Int64
	return func(r *http.Request) {
		n := turn.Add(1)
		user := fmt.Sprint("seldom-", cluster, "-", n)
		if i := n % 5; int(i/2) < len(heavyUsers) {
			user = heavyUsers[i/2]
		}
		r.Header.Set(traffic.MarkHeader, user)
	}
}

// A usersWindow is what the clusters admitted in one window: of each heavy user, and how many of the
// others.
type usersWindow struct {
	Alice, Bob windows.Split
	Seldom     int
}

// A usersWorld is a budget by user over two clusters.
type usersWorld struct {
	*federation
	at [2]*arrivals // of the hub and of the member
}

// admitted waits until a window is over and returns what was admitted in it. No user may have more
// than the limit, over both clusters.
func (u usersWorld) admitted(ctx context.Context, start time.Time) usersWindow {
	GinkgoHelper()
	sleepUntil(ctx, start.Add(perSet+settle))
	hub, member := u.at[0].in(start), u.at[1].in(start)
	w := usersWindow{Alice: windows.Split{Hub: hub["alice"], Member: member["alice"]}, Bob: windows.Split{Hub: hub["bob"], Member: member["bob"]}}
	for _, here := range []map[string]int{hub, member} {
		for user := range here {
			Expect(hub[user]+member[user]).To(BeNumerically("<=", perUser), "%s in the window of %s: %d in the hub, %d in the member",
				user, start.Format("15:04:05"), hub[user], member[user])
			if user != "alice" && user != "bob" {
				w.Seldom++
			}
		}
	}
	fmt.Fprintf(GinkgoWriter, "window %s: %+v\n", start.Format("15:04:05"), w)
	return w
}

// await returns when n windows in a row, from the first on or later, are as wanted.
func (u usersWorld) await(ctx context.Context, first time.Time, n int, wanted OmegaMatcher) []usersWindow {
	GinkgoHelper()
	return inARow(n, wanted, func(i int) usersWindow {
		GinkgoHelper()
		return u.admitted(ctx, first.Add(time.Duration(i)*perSet))
	})
}

// each is a window in which every heavy user had mostly all, and users who ask once were served in
// both clusters.
var each = And(
	HaveField("Alice", WithTransform(windows.Split.Sum, BeNumerically(">=", perUser*9/10))),
	HaveField("Bob", WithTransform(windows.Split.Sum, BeNumerically(">=", perUser*9/10))),
	HaveField("Seldom", BeNumerically(">=", overload/10*int(perSet.Seconds()))),
)

var _ = Describe("A budget by user over two clusters", func() {
	It("gives each user the limit once, while a region is cut off and when the hub is killed", func(ctx SpecContext) {
		f := federate(ctx, openSite(ctx, "us-east", filepath.Join(workDir, "users-us-east")), func(spec *v1alpha1.FederatedBudgetSpec) {
			spec.Rate.Limit, spec.Allocation = perUser, v1alpha1.FirstComeAllocation
			spec.Key = &v1alpha1.BudgetKey{
				Parts:     []v1alpha1.KeyPart{{Type: v1alpha1.HeaderPart, Header: &v1alpha1.HeaderKey{Name: traffic.MarkHeader}}},
				OnMissing: v1alpha1.OnMissingReject,
			}
		})
		u := usersWorld{federation: f, at: [2]*arrivals{arrivalsAt(f.hub), arrivalsAt(f.member)}}
		for _, s := range f.shops() {
			s.deploy(ctx, "checkout", 2, nil)
			s.startLoadOf(overload/2, asking(s.name))
		}
		f.connected(ctx)
		u.await(ctx, f.hub.warmUp(ctx), 2, each)
		for _, s := range f.shops() {
			Eventually(func(g Gomega) {
				b, err := s.budget(ctx)
				g.Expect(err).NotTo(HaveOccurred())
				g.Expect(b.Status.Summary).To(HaveField("Members", "2/2"))
				g.Expect(b.Status.Overshoot).To(HaveField("Worst", HaveValue(BeZero())))
				g.Expect(b.Status.Overshoot).To(HaveField("Observed", HaveValue(BeZero())))
				g.Expect(b.Status.UnderUtilization).NotTo(BeNil())
				g.Expect(b.Status.Keys).To(HaveField("InUse", HaveValue(BeNumerically(">", len(heavyUsers)))))
				g.Expect(meta.IsStatusConditionTrue(b.Status.Conditions, v1alpha1.WithinBoundCondition)).To(BeTrue(), "%v", b.Status.Conditions)
				g.Expect(meta.FindStatusCondition(b.Status.Conditions, v1alpha1.KeysFullCondition)).To(BeNil())
			}, longest, time.Second).Should(Succeed())
		}

		began := f.hub.nextWindow()
		sleepUntil(ctx, began.Add(300*time.Millisecond))
		f.link.Cut()
		u.admitted(ctx, began)
		cut := u.await(ctx, began.Add(perSet), 1, HaveField("Alice", HaveField("Hub", BeNumerically(">=", perUser*9/10))))
		Expect(cut).To(HaveEach(And(HaveField("Alice.Member", BeZero()), HaveField("Bob.Member", BeZero()))), "a region that fails closed has nothing of a new window")
		Eventually(f.member.budgetCondition, longest, 200*time.Millisecond).
			WithContext(ctx).WithArguments(v1alpha1.ConnectedCondition).Should(HaveField("Status", metav1.ConditionFalse))
		f.link.Heal()
		f.connected(ctx)
		u.await(ctx, f.hub.nextWindow(), 2, each)

		killed := f.hub.nextWindow()
		sleepUntil(ctx, killed.Add(time.Second))
		here.cluster.Controller.Kill()
		Expect(here.cluster.Controller.Start(ctx)).To(Succeed())
		back := f.hub.nextWindow()
		for ; killed.Before(back); killed = killed.Add(perSet) {
			u.admitted(ctx, killed)
		}
		u.await(ctx, back, 2, each)
	}, SpecTimeout(8*time.Minute))
})
