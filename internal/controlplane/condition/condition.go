package condition

import (
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// True makes a condition that holds.
func True(kind, reason, message string) metav1.Condition {
	return metav1.Condition{Type: kind, Status: metav1.ConditionTrue, Reason: reason, Message: message}
}

// False makes a condition that does not hold.
func False(kind, reason, message string) metav1.Condition {
	return metav1.Condition{Type: kind, Status: metav1.ConditionFalse, Reason: reason, Message: message}
}

// Unknown makes a condition that cannot be judged now.
func Unknown(kind, reason, message string) metav1.Condition {
	return metav1.Condition{Type: kind, Status: metav1.ConditionUnknown, Reason: reason, Message: message}
}

// Merge returns want as the conditions of an object at generation, in want's
// order. A condition whose status is the one in have keeps its transition time;
// any other turned now. Conditions that want does not name are removed: the
// caller owns them all. The arguments are left as they are.
func Merge(have, want []metav1.Condition, generation int64, now time.Time) []metav1.Condition {
	merged := make([]metav1.Condition, len(want))
	for i, c := range want {
		c.ObservedGeneration = generation
		c.LastTransitionTime = metav1.NewTime(now.Truncate(time.Second))
		if old := meta.FindStatusCondition(have, c.Type); old != nil && old.Status == c.Status {
			c.LastTransitionTime = old.LastTransitionTime
		}
		merged[i] = c
	}
	return merged
}
