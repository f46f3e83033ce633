package controllers

import (
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/weir-dev/weir/api/v1alpha1"
)

// poolChangeOf returns what differs between two versions of a pool's status. Why a pool
// is saturated is a figure, in words: the limit moves all the time.
func poolChangeOf(have, next *v1alpha1.ConcurrencyPoolStatus) change {
	before, after := withoutFigures(have.Conditions), withoutFigures(next.Conditions)
	switch {
	case have.ObservedGeneration != next.ObservedGeneration || conditionsTurned(before, after):
		return turned
	case !equality.Semantic.DeepEqual(before, after) || !equality.Semantic.DeepEqual(have.Enforcement, next.Enforcement):
		return progressed
	case !equality.Semantic.DeepEqual(have.Holders, next.Holders):
		return redivided
	case poolFiguresDiffer(have, next):
		return figuresNew
	}
	return unchanged
}

// unsettles reports whether figures of next, or those that follow it, move with a change
// that they do not show the end of.
func unsettles(have, next *v1alpha1.ConcurrencyPoolStatus) bool {
	return have.ObservedGeneration != next.ObservedGeneration || !equality.Semantic.DeepEqual(have.Holders, next.Holders)
}

// withoutFigures returns the conditions without what moves with every measurement.
func withoutFigures(conditions []metav1.Condition) []metav1.Condition {
	out := make([]metav1.Condition, len(conditions))
	for i, c := range conditions {
		if c.Type == v1alpha1.SaturatedCondition {
			c.Reason, c.Message = "", ""
		}
		out[i] = c
	}
	return out
}

// poolFiguresDiffer ignores when figures were taken: the same figures a moment later are
// not a change.
func poolFiguresDiffer(have, next *v1alpha1.ConcurrencyPoolStatus) bool {
	a, b := have.DeepCopy(), next.DeepCopy()
	a.MeasuredAt, b.MeasuredAt = nil, nil
	return !equality.Semantic.DeepEqual(a, b)
}
