package controllers

import (
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/weir-dev/weir/api/v1alpha1"
)

// changeOf returns what differs between two versions of a policy's status. A move to
// another store that made a step does not wait either.
func changeOf(have, next *v1alpha1.RateLimitPolicyStatus) change {
	switch {
	case have.ObservedGeneration != next.ObservedGeneration || moved(have.Store, next.Store) || conditionsTurned(have.Conditions, next.Conditions):
		return turned
	case !equality.Semantic.DeepEqual(have.Conditions, next.Conditions) ||
		!equality.Semantic.DeepEqual(have.Enforcement, next.Enforcement) ||
		!equality.Semantic.DeepEqual(have.Guarantee, next.Guarantee) ||
		!equality.Semantic.DeepEqual(have.Store, next.Store):
		return progressed
	case figuresDiffer(have, next):
		return figuresNew
	}
	return unchanged
}

func moved(have, next *v1alpha1.StoreStatus) bool {
	if have == nil || next == nil {
		return have != next
	}
	return have.Phase != next.Phase || have.Failed != next.Failed ||
		!equality.Semantic.DeepEqual(have.Active, next.Active) || !equality.Semantic.DeepEqual(have.ServesFrom, next.ServesFrom)
}

// figuresDiffer ignores when figures were taken: the same figures a moment later
// are not a change.
func figuresDiffer(have, next *v1alpha1.RateLimitPolicyStatus) bool {
	a, b := have.DeepCopy(), next.DeepCopy()
	for _, s := range []*v1alpha1.RateLimitPolicyStatus{a, b} {
		s.LastObservationTime = nil
		for i := range s.Limits {
			s.Limits[i].WindowEnd = nil
			if w := s.Limits[i].Window; w != nil {
				w.MeasuredAt = metav1.Time{}
			}
			for j := range s.Limits[i].HottestKeys {
				s.Limits[i].HottestKeys[j].MeasuredAt = metav1.Time{}
			}
		}
	}
	return !equality.Semantic.DeepEqual(a, b)
}
