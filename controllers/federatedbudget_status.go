package controllers

import (
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/weir-dev/weir/api/v1alpha1"
	"github.com/weir-dev/weir/internal/controlplane/audit/budgetaudit"
	"github.com/weir-dev/weir/internal/controlplane/budget"
	"github.com/weir-dev/weir/internal/controlplane/condition"
	"github.com/weir-dev/weir/pkg/federation/ledger"
	"github.com/weir-dev/weir/pkg/limiter"
)

// budgetStatusOf returns the status that says what the scope knows. Transition times
// come from the status the budget has now. Figures are either of the open window, all
// as the coordinator showed it in one answer, or of the last window that was measured.
func budgetStatusOf(s *budgetScope) v1alpha1.FederatedBudgetStatus {
	status := v1alpha1.FederatedBudgetStatus{
		ObservedGeneration: s.budget.Generation,
		Conditions:         condition.Merge(s.budget.Status.Conditions, budgetConditionsOf(s), s.budget.Generation, s.now),
	}
	if s.accepted() {
		status.Self = s.cluster
		status.Root = s.rootStatus()
		status.WindowEnd, status.Overshoot, status.UnderUtilization = s.measured()
		status.AdditionalRates = figuresOf(s.rates())
		if l := s.ledger(); l != nil {
			status.MeasuredAt = &metav1.Time{Time: s.now.Truncate(time.Second)}
			status.Members = s.members(l)
			if s.keyed() {
				status.Keys = keysStatus(s.observation.Keys)
			} else {
				status.Allocation = division(l, s.enforced.Params)
			}
			status.Coordination = coordination(&s.observation.Figures)
		}
	}
	status.Summary = s.summary(&status)
	return status
}

// rootStatus returns the status of the root, which divides the limit.
func (s *budgetScope) rootStatus() *v1alpha1.BudgetRoot {
	root := &v1alpha1.BudgetRoot{State: s.rootState(), Term: s.observation.Root.Term, Since: microTime(s.observation.Root.Since)}
	switch {
	case s.keeps():
		root.Member = s.cluster
	case s.enforced.Hub != nil:
		root.Member, root.Address = s.observation.Root.Member, s.enforced.Hub.Endpoint
	default:
		root.Address = s.enforced.Coordinator.Address
	}
	return root
}

func (s *budgetScope) rootState() v1alpha1.RootState {
	switch {
	case !s.connected():
		return v1alpha1.RootUnknown
	case s.learning():
		return v1alpha1.RootLearning
	case s.keeps():
		return v1alpha1.RootLeading
	}
	return v1alpha1.RootFollowing
}

// division is how the open window is divided, nil before anybody asked for units.
func division(l *ledger.State, p ledger.Params) *v1alpha1.BudgetDivision {
	if l.Term == 0 {
		return nil
	}
	a := l.Allocation(p)
	return &v1alpha1.BudgetDivision{
		Window: metav1.MicroTime{Time: time.UnixMicro(l.Index * int64(l.Window))},
		Limit:  a.Limit, Granted: a.Granted, Kept: a.Kept, Unallocated: a.Free,
	}
}

// keysStatus is what is known of the values of a budget with a key.
func keysStatus(k budget.Keys) *v1alpha1.BudgetKeysStatus {
	out := &v1alpha1.BudgetKeysStatus{InCluster: k.InCluster}
	if k.InUse > 0 {
		out.InUse = &k.InUse
	}
	return out
}

// members returns the figures of each member of the spec, by name.
func (s *budgetScope) members(l *ledger.State) []v1alpha1.BudgetMemberStatus {
	out := make([]v1alpha1.BudgetMemberStatus, 0, len(s.enforced.Params.Members))
	for _, m := range s.enforced.Params.Members {
		status := v1alpha1.BudgetMemberStatus{
			Name: m.Name, State: v1alpha1.MemberNever, Used: s.used(m.Name),
		}
		if !s.keyed() {
			status.Granted = new(l.GrantedTo(s.enforced.Params, m.Name))
		}
		if t, heard := l.StandingOf(m.Name); heard {
			status.State = s.state(m.Name, t.Seen)
			status.LastSeenTime = &metav1.Time{Time: time.UnixMicro(int64(t.Seen)).Truncate(time.Second)}
			if !s.keyed() {
				status.Wanted = new(t.Demand)
			}
			if s.enforced.Params.Slices {
				status.Slice = new(t.Slice)
			}
		}
		out = append(out, status)
	}
	return out
}

// state returns that of a member that the coordinator heard of last at an instant of its
// clock. This cluster is connected, since it was answered.
func (s *budgetScope) state(member string, seen limiter.Instant) v1alpha1.MemberState {
	if member == s.cluster || s.observation.Read.Sub(seen) <= max(budget.SilentAfter, 3*s.enforced.Params.Window) {
		return v1alpha1.MemberConnected
	}
	return v1alpha1.MemberSilent
}

// used returns what a member reported that it admitted in the window measured last.
func (s *budgetScope) used(member string) *int64 {
	if w := s.observation.Figures.Window; w != nil && !s.keyed() {
		for _, u := range w.Usage {
			if u.Member == member && u.Reported {
				return new(u.Admitted)
			}
		}
	}
	return nil
}

func coordination(f *budgetaudit.Figures) *v1alpha1.BudgetCoordination {
	out := &v1alpha1.BudgetCoordination{LeasesPerSecond: oneDecimal(f.LeasesPerSecond)}
	if f.UnitsPerLease > 0 {
		out.UnitsPerLease = oneDecimal(f.UnitsPerLease)
	}
	return out
}

// measured returns what was measured of windows that are over. It stays known while the
// coordinator does not answer.
func (s *budgetScope) measured() (end *metav1.MicroTime, over *v1alpha1.Overshoot, unused *v1alpha1.UnderUtilization) {
	f := &s.observation.Figures
	if o := f.Overshoot; o != nil {
		over = &v1alpha1.Overshoot{Worst: &o.Worst, WorstTime: microTime(o.WorstEnd)}
		if end = microTime(o.WindowEnd); end != nil {
			over.Observed, over.Bound = &o.Observed, &o.Bound
		}
	}
	if u := f.UnderUtilization; u != nil {
		unused = &v1alpha1.UnderUtilization{ObservedBasisPoints: &u.Observed, WorstBasisPoints: &u.Worst}
	}
	return end, over, unused
}

// budgetChangeOf returns what differs between two versions of a budget's status. Another
// root is shown as soon as a condition is.
func budgetChangeOf(have, next *v1alpha1.FederatedBudgetStatus) change {
	switch {
	case have.ObservedGeneration != next.ObservedGeneration || conditionsTurned(have.Conditions, next.Conditions) || rootTurned(have.Root, next.Root):
		return turned
	case !equality.Semantic.DeepEqual(have.Conditions, next.Conditions) || !equality.Semantic.DeepEqual(have.Root, next.Root):
		return progressed
	case budgetFiguresDiffer(have, next):
		return figuresNew
	}
	return unchanged
}

func rootTurned(have, next *v1alpha1.BudgetRoot) bool {
	if have == nil || next == nil {
		return have != next
	}
	return have.Member != next.Member || have.State != next.State
}

// budgetFiguresDiffer ignores when figures were taken, and which windows they are of:
// the same figures a moment later are not a change.
func budgetFiguresDiffer(have, next *v1alpha1.FederatedBudgetStatus) bool {
	a, b := have.DeepCopy(), next.DeepCopy()
	for _, s := range []*v1alpha1.FederatedBudgetStatus{a, b} {
		s.MeasuredAt, s.WindowEnd = nil, nil
		if s.Allocation != nil {
			s.Allocation.Window.Reset()
		}
		for i := range s.AdditionalRates {
			r := &s.AdditionalRates[i]
			if r.WindowEnd = nil; r.Allocation != nil {
				r.Allocation.Window.Reset()
			}
		}
		for i := range s.Members {
			if s.Members[i].State == v1alpha1.MemberConnected {
				s.Members[i].LastSeenTime = nil
			}
		}
	}
	return !equality.Semantic.DeepEqual(a, b)
}
