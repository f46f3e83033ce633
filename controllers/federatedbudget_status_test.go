package controllers

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/weir-dev/weir/api/v1alpha1"
	"github.com/weir-dev/weir/internal/controlplane/audit"
	"github.com/weir-dev/weir/internal/controlplane/audit/budgetaudit"
	"github.com/weir-dev/weir/internal/controlplane/budget"
	"github.com/weir-dev/weir/pkg/federation/ledger"
	"github.com/weir-dev/weir/pkg/limiter"
)

func TestStatusOfABudget(t *testing.T) {
	got := budgetStatusOf(newBudgetScope())
	got.Conditions = nil
	second := func(ago int) *metav1.Time { return &metav1.Time{Time: time.Unix(now.Unix()-int64(ago), 0)} }
	want := v1alpha1.FederatedBudgetStatus{
		ObservedGeneration: generation,
		MeasuredAt:         &metav1.Time{Time: now},
		Self:               "eu-west",
		Root:               &v1alpha1.BudgetRoot{Member: "eu-west", Term: 7, Since: microTime(now.Add(-time.Hour)), State: v1alpha1.RootLeading},
		// FairShare keeps 12 for eu-west, which wants 52, and 1 for us-east, which wants 41.
		Allocation: &v1alpha1.BudgetDivision{Window: metav1.MicroTime{Time: time.Unix(openWindow, 0)}, Limit: 100, Granted: 80, Kept: 13, Unallocated: 7},
		Members: []v1alpha1.BudgetMemberStatus{
			{Name: "eu-west", State: v1alpha1.MemberConnected, Granted: new(int64(40)), Wanted: new(int64(52)), Used: new(int64(50)), LastSeenTime: second(0)},
			{Name: "us-east", State: v1alpha1.MemberConnected, Granted: new(int64(40)), Wanted: new(int64(41)), Used: new(int64(41)), LastSeenTime: second(1)},
		},
		Coordination:     &v1alpha1.BudgetCoordination{LeasesPerSecond: "4.2", UnitsPerLease: "12.5"},
		WindowEnd:        microTime(now),
		Overshoot:        &v1alpha1.Overshoot{Observed: new(int64(0)), Bound: new(int64(0)), Worst: new(int64(0))},
		UnderUtilization: &v1alpha1.UnderUtilization{ObservedBasisPoints: new(int32(300)), WorstBasisPoints: new(int32(800))},
		Summary: v1alpha1.BudgetSummary{
			Limit: "100/1s", Members: "2/2", Granted: "97%", Used: "91%", Overshoot: "0 ≤ 0", Unused: "3.0%", Root: "eu-west", UnitsPerLease: "12.5",
		},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("status (-want +got):\n%s", diff)
	}
}

// The figures of the open window are of one answer, so they add up: what members were
// granted to what is granted, and that with the rest to the limit.
func TestFiguresOfABudgetAddUp(t *testing.T) {
	for name, s := range map[string]*budgetScope{
		"two members": newBudgetScope(),
		"a third that was never heard of": newBudgetScope(func(s *budgetScope) {
			s.enforced.Params.Members = append(s.enforced.Params.Members, ledger.Member{Name: "us-west", Weight: 1, Borrowing: -1})
		}),
		"slices": newBudgetScope(func(s *budgetScope) {
			p := &s.enforced.Params
			p.Slices, p.Members[0].Nominal, p.Members[0].Kept = true, 10, 10
			p.Members = append(p.Members, ledger.Member{Name: "us-west", Weight: 1, Nominal: 5, Kept: 5, Borrowing: -1})
			s.observation.Ledger.Standings[0].Slice, s.observation.Ledger.Standings[0].Next = 10, 10
		}),
	} {
		status := budgetStatusOf(s)
		var sum int64
		for _, m := range status.Members {
			sum += *m.Granted
		}
		if a := status.Allocation; sum != a.Granted || a.Granted+a.Kept+a.Unallocated != a.Limit {
			t.Errorf("%s: members were granted %d, and of the window %+v", name, sum, a)
		}
	}
}

func TestMembersOfABudget(t *testing.T) {
	s := newBudgetScope(func(s *budgetScope) {
		s.enforced.Params.Members = append(s.enforced.Params.Members, ledger.Member{Name: "us-west", Weight: 1, Nominal: 5, Kept: 5, Borrowing: -1})
		s.enforced.Params.Slices = true
		s.observation.Ledger.Standings[0].Seen = 0 // this cluster was answered all the same
		s.observation.Ledger.Standings[1].Seen = s.observation.Read.Add(-budget.SilentAfter - 1)
		s.observation.Ledger.Standings[1].Slice = 9
		s.observation.Figures.Window.Usage[1].Reported = false
	})
	got := budgetStatusOf(s)
	if got.Summary.Members != "1/3" {
		t.Errorf("members %s, want 1/3", got.Summary.Members)
	}
	states := []v1alpha1.MemberState{got.Members[0].State, got.Members[1].State, got.Members[2].State}
	if diff := cmp.Diff([]v1alpha1.MemberState{v1alpha1.MemberConnected, v1alpha1.MemberSilent, v1alpha1.MemberNever}, states); diff != "" {
		t.Errorf("states (-want +got):\n%s", diff)
	}
	if got.Members[1].Used != nil || *got.Members[1].Slice != 9 {
		t.Errorf("of the silent member %+v", got.Members[1])
	}
	if m := got.Members[2]; *m.Granted != 5 || m.Slice != nil || m.Wanted != nil || m.LastSeenTime != nil {
		t.Errorf("of the member never heard of %+v", m)
	}
	s.enforced.Params.Window = 20 * limiter.Second
	if got := budgetStatusOf(s).Members[1].State; got != v1alpha1.MemberConnected {
		t.Errorf("within three windows a member is %s", got)
	}
}

// While the coordinator does not answer, what is known is of windows before.
func TestABudgetThatIsCutOffHasNoPresentFigures(t *testing.T) {
	got := budgetStatusOf(newBudgetScope(ofHub, cutOff(budget.Partitioned, "")))
	got.Conditions = nil
	want := v1alpha1.FederatedBudgetStatus{
		ObservedGeneration: generation, Self: "eu-west",
		Root: &v1alpha1.BudgetRoot{
			Member: "us-east", Address: "hub.example:15040", Term: 7, Since: microTime(now.Add(-time.Hour)), State: v1alpha1.RootUnknown,
		},
		WindowEnd:        microTime(now),
		Overshoot:        &v1alpha1.Overshoot{Observed: new(int64(0)), Bound: new(int64(0)), Worst: new(int64(0))},
		UnderUtilization: &v1alpha1.UnderUtilization{ObservedBasisPoints: new(int32(300)), WorstBasisPoints: new(int32(800))},
		Summary: v1alpha1.BudgetSummary{
			Limit: "100/1s", Members: "-", Granted: "97% ?", Used: "91% ?", Overshoot: "0 ≤ 0 ?", Unused: "3.0% ?", Root: "us-east", UnitsPerLease: "-",
		},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("status (-want +got):\n%s", diff)
	}
}

func TestRootOfABudget(t *testing.T) {
	tests := map[string]struct {
		scope *budgetScope
		want  v1alpha1.BudgetRoot // but for term and since
	}{
		"this cluster":           {newBudgetScope(), v1alpha1.BudgetRoot{Member: "eu-west", State: v1alpha1.RootLeading}},
		"another cluster":        {newBudgetScope(ofHub), v1alpha1.BudgetRoot{Member: "us-east", Address: "hub.example:15040", State: v1alpha1.RootFollowing}},
		"a server":               {newBudgetScope(inRedis), v1alpha1.BudgetRoot{Address: "redis:6379", State: v1alpha1.RootFollowing}},
		"one that learns":        {newBudgetScope(learningUntil(1, false)), v1alpha1.BudgetRoot{Member: "eu-west", State: v1alpha1.RootLearning}},
		"one that is away":       {newBudgetScope(cutOff(budget.NoRoot, ""), learningUntil(1, false)), v1alpha1.BudgetRoot{Member: "eu-west", State: v1alpha1.RootUnknown}},
		"one of another version": {newBudgetScope(unheardOf), v1alpha1.BudgetRoot{Member: "eu-west", State: v1alpha1.RootUnknown}},
	}
	for name, tc := range tests {
		got := *tc.scope.rootStatus()
		got.Term, got.Since = 0, nil
		if diff := cmp.Diff(tc.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func TestWriteDelayOfABudget(t *testing.T) {
	every := figuresIntervalOf("uid")
	tests := map[string]struct {
		change func(*budgetScope)
		since  time.Duration
		wait   time.Duration
		want   bool
	}{
		"nothing": {change: func(*budgetScope) {}},
		"the same figures of a later window": {change: func(s *budgetScope) {
			s.now = s.now.Add(time.Minute)
			l, o := s.observation.Ledger, s.observation.Figures.Overshoot
			l.Index, l.Standings[0].Seen, l.Standings[1].Seen, s.observation.Read = l.Index+60, 0, s.observation.Read, s.observation.Read.Add(1)
			o.WindowEnd = o.WindowEnd.Add(time.Minute)
		}},
		"what is granted":                 {change: func(s *budgetScope) { s.observation.Ledger.Accounts[0].Granted++ }, since: 5 * time.Second, wait: every - 5*time.Second, want: true},
		"what is granted, and it is time": {change: func(s *budgetScope) { s.observation.Ledger.Accounts[0].Granted++ }, since: every, want: true},
		"a member falls silent":           {change: func(s *budgetScope) { s.observation.Ledger.Standings[1].Seen = 0 }, wait: every, want: true},
		"the limit of the hub": {
			change: func(s *budgetScope) { inRedis(s); s.observation.Ledger.Limit = 80 }, since: time.Second / 2, wait: progressInterval - time.Second/2, want: true,
		},
		"the coordinator goes":     {change: cutOff(budget.Partitioned, "no route"), want: true},
		"the ledger's memory ends": {change: learningUntil(time.Second, false), want: true},
		"another hub":              {change: func(s *budgetScope) { ofHub(s) }, want: true},
		"a report is missing":      {change: counted(func(f *budgetaudit.Figures) { f.Verdict = audit.ReportsMissing }), want: true},
		"another generation":       {change: func(s *budgetScope) { s.budget.Generation++ }, want: true},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			base := newBudgetScope()
			if name == "the limit of the hub" {
				base = newBudgetScope(inRedis)
			}
			have := budgetStatusOf(base)
			s := newBudgetScope(tc.change)
			s.budget.Status = have
			next := budgetStatusOf(s)
			wait, changed := writeDelay(budgetChangeOf(&have, &next), "uid", tc.since)
			if wait != tc.wait || changed != tc.want {
				t.Errorf("writeDelay is (%s, %v), want (%s, %v)", wait, changed, tc.wait, tc.want)
			}
		})
	}
}

func TestABudgetIsLookedAtAgain(t *testing.T) {
	tests := map[string]struct {
		scope *budgetScope
		want  time.Duration
	}{
		"a budget that counts":     {newBudgetScope(), figuresIntervalOf("uid")},
		"a budget that does not":   {newBudgetScope(func(s *budgetScope) { s.cluster = "ap-south" }), 0},
		"when a window is over":    {newBudgetScope(learningUntil(3*time.Second, false)), 3 * time.Second},
		"a window that lasts long": {newBudgetScope(learningUntil(time.Hour, false)), figuresIntervalOf("uid")},
	}
	for name, tc := range tests {
		if got := tc.scope.again(); got != tc.want {
			t.Errorf("%s: again in %s, want %s", name, got, tc.want)
		}
	}
}
