package controllers

import (
	"k8s.io/apimachinery/pkg/api/equality"

	"github.com/weir-dev/weir/api/v1alpha1"
)

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
		for i := range s.Members {
			if s.Members[i].State == v1alpha1.MemberConnected {
				s.Members[i].LastSeenTime = nil
			}
		}
	}
	return !equality.Semantic.DeepEqual(a, b)
}
