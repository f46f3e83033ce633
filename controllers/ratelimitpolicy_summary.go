package controllers

import (
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/weir-dev/weir/api/v1alpha1"
	"github.com/weir-dev/weir/internal/controlplane/coordinator"
)

// summary returns the columns that kubectl prints.
func summary(s *scope, status *v1alpha1.RateLimitPolicyStatus) v1alpha1.Summary {
	return v1alpha1.Summary{
		Limits:               s.limitsColumn(),
		Pods:                 podsColumn(status.Enforcement),
		Admitted:             perSecond(status.Limits, func(l v1alpha1.LimitStatus) *int64 { return l.AdmittedPerSecond }),
		Rejected:             perSecond(status.Limits, func(l v1alpha1.LimitStatus) *int64 { return l.RejectedPerSecond }),
		Window:               windowColumn(status.Limits),
		Overshoot:            dated(overshootColumn(status.Limits), status.Conditions),
		Unused:               dated(unusedColumn(status.Limits), status.Conditions),
		RequestsPerRoundTrip: tripsColumn(s.observation.Limits),
	}
}

// limitsColumn is the first rate and the number of further ones.
func (s *scope) limitsColumn() string {
	var rates []string
	for i := range s.policy.Spec.Limits {
		rates = append(rates, s.rates(&s.policy.Spec.Limits[i])...)
	}
	switch len(rates) {
	case 0:
		return v1alpha1.NotMeasured
	case 1:
		return rates[0]
	}
	return fmt.Sprintf("%s +%d", rates[0], len(rates)-1)
}

func podsColumn(e *v1alpha1.Enforcement) string {
	if e == nil {
		return v1alpha1.NotMeasured
	}
	return fmt.Sprintf("%d/%d", e.Current, e.Desired)
}

// perSecond adds up a figure of those limits that have it.
func perSecond(limits []v1alpha1.LimitStatus, figure func(v1alpha1.LimitStatus) *int64) string {
	var sum int64
	measured := false
	for _, l := range limits {
		if n := figure(l); n != nil {
			sum, measured = sum+*n, true
		}
	}
	if !measured {
		return v1alpha1.NotMeasured
	}
	return fmt.Sprintf("%d/s", sum)
}

// dated marks a figure that is older than the newest window, which not every sidecar
// has reported, or that leaves out pods that nothing limits: 0 ≤ 0 ?
func dated(column string, conditions []metav1.Condition) string {
	bound := meta.FindStatusCondition(conditions, v1alpha1.WithinBoundCondition)
	if column == v1alpha1.NotMeasured || bound == nil ||
		bound.Reason != v1alpha1.ReportsMissingReason && bound.Reason != v1alpha1.PodsNotLimitedReason {
		return column
	}
	return column + " ?"
}

// overshootColumn compares the overshoot of the worst limit's last window with
// what bounds it: 0 ≤ 0, 3 ≤ ∞ while nothing does, and 3 > 0 when it broke.
func overshootColumn(limits []v1alpha1.LimitStatus) string {
	var worst *v1alpha1.Overshoot
	for _, l := range limits {
		if o := l.Overshoot; o != nil && o.Observed != nil && (worst == nil || excess(o) > excess(worst)) {
			worst = o
		}
	}
	return overshootInShort(worst)
}

// windowColumn is what was used of the open window of the limit with the smallest part
// left: 812/1000, or Learning while a limit grants nothing.
func windowColumn(limits []v1alpha1.LimitStatus) string {
	var worst *v1alpha1.WindowStatus
	for _, l := range limits {
		if l.LearningUntil != nil {
			return v1alpha1.LearningCondition
		}
		if w := l.Window; w != nil && (worst == nil || leftOf(w) < leftOf(worst)) {
			worst = w
		}
	}
	if worst == nil {
		return v1alpha1.NotMeasured
	}
	return fmt.Sprintf("%d/%d", worst.Used, worst.Limit)
}

// leftOf returns the part of the window's limit that is left.
func leftOf(w *v1alpha1.WindowStatus) float64 {
	return float64(w.Remaining) / float64(max(1, w.Limit))
}

func overshootInShort(o *v1alpha1.Overshoot) string {
	switch {
	case o == nil || o.Observed == nil:
		return v1alpha1.NotMeasured
	case o.Bound == nil:
		return fmt.Sprintf("%d ≤ ∞", *o.Observed)
	case *o.Observed > *o.Bound:
		return fmt.Sprintf("%d > %d", *o.Observed, *o.Bound)
	}
	return fmt.Sprintf("%d ≤ %d", *o.Observed, *o.Bound)
}

// excess orders overshoots: first by how far they break their bound, and an
// absent bound is broken by nothing but says the least.
func excess(o *v1alpha1.Overshoot) int64 { return *o.Observed - ptr.Deref(o.Bound, 0) }

// unusedColumn is the under-utilization of the worst limit's last window.
func unusedColumn(limits []v1alpha1.LimitStatus) string {
	worst := int32(-1)
	for _, l := range limits {
		if u := l.UnderUtilization; u != nil {
			worst = max(worst, ptr.Deref(u.ObservedBasisPoints, -1))
		}
	}
	return unusedInShort(worst)
}

// unusedInShort shows basis points; less than none were not measured.
func unusedInShort(basisPoints int32) string {
	if basisPoints < 0 {
		return v1alpha1.NotMeasured
	}
	return oneDecimal(float64(basisPoints)/100) + "%"
}

// tripsColumn is what one round trip to the store decided, over all limits.
func tripsColumn(limits []coordinator.LimitFigures) string {
	var requests, trips float64 // per second
	for _, l := range limits {
		if l.Flow.RequestsPerRoundTrip > 0 {
			decided := l.Flow.AdmittedPerSecond + l.Flow.RejectedPerSecond
			requests, trips = requests+decided, trips+decided/l.Flow.RequestsPerRoundTrip
		}
	}
	if trips == 0 {
		return v1alpha1.NotMeasured
	}
	return oneDecimal(requests / trips)
}
