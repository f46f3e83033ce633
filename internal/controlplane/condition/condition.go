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

// Summary returns the condition of the kind that says whether all of these hold. It is True when
// they are, and otherwise as the first of them that is not.
func Summary(kind, reason, message string, of ...metav1.Condition) metav1.Condition {
	for _, c := range of {
		if c.Status != metav1.ConditionTrue {
			return metav1.Condition{Type: kind, Status: c.Status, Reason: c.Reason, Message: c.Message}
		}
	}
	return True(kind, reason, message)
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
