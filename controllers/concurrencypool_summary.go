package controllers

import (
	"strconv"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/weir-dev/weir/api/v1alpha1"
	"github.com/weir-dev/weir/pkg/limiter"
)

// poolSummary returns the columns that kubectl prints.
func poolSummary(status *v1alpha1.ConcurrencyPoolStatus) v1alpha1.PoolSummary {
	return v1alpha1.PoolSummary{
		Pods:      podsColumn(status.Enforcement),
		Limit:     limitColumn(status.Limit),
		InFlight:  countColumn(status.InFlight),
		Overshoot: dated(overshootInShort(status.Overshoot), status.Conditions),
		Unused:    dated(freeColumn(status.UnderUtilization), status.Conditions),
		Latency:   latencyColumn(status.Latency),
		Saturated: saturatedColumn(status.Conditions),
	}
}

func limitColumn(l *v1alpha1.PoolLimitStatus) string {
	if l == nil {
		return v1alpha1.NotMeasured
	}
	return countColumn(&l.Current)
}

func countColumn(n *int64) string {
	if n == nil {
		return v1alpha1.NotMeasured
	}
	return strconv.FormatInt(*n, 10)
}

func freeColumn(u *v1alpha1.UnderUtilization) string {
	if u == nil {
		return v1alpha1.NotMeasured
	}
	return unusedInShort(ptr.Deref(u.ObservedBasisPoints, -1))
}

// latencyColumn is latency now and without load: 26ms/21ms.
func latencyColumn(l *v1alpha1.PoolLatency) string {
	if l == nil || l.CurrentMicroseconds == nil || l.BaselineMicroseconds == nil {
		return v1alpha1.NotMeasured
	}
	return inShort(limiter.Micros(*l.CurrentMicroseconds)) + "/" + inShort(limiter.Micros(*l.BaselineMicroseconds))
}

// saturatedColumn is No, or why requests find no slot. That the coordinator does not
// answer comes first.
func saturatedColumn(conditions []metav1.Condition) string {
	switch c := meta.FindStatusCondition(conditions, v1alpha1.SaturatedCondition); {
	case meta.IsStatusConditionFalse(conditions, v1alpha1.CoordinatorReachableCondition):
		return v1alpha1.UnreachableReason
	case c == nil || c.Status == metav1.ConditionUnknown:
		return v1alpha1.NotMeasured
	case c.Status == metav1.ConditionFalse:
		return "No"
	default:
		return c.Reason
	}
}
