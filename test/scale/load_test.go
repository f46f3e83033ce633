package main

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/weir-dev/weir/api/v1alpha1"
	"github.com/weir-dev/weir/pkg/limiter"
	"github.com/weir-dev/weir/pkg/twotier"
)

// admitted returns a load of a limit of 3 that was admitted that much by leases and by shares,
// in one window after the other.
func admitted(windows ...[2]int) *load {
	l := &load{limit: 3, leased: map[int64]int64{}, alone: map[int64]int64{}}
	for i, w := range windows {
		of := &limiter.Windows{N: 1}
		of.Open[0].Index = int64(100 + i)
		for range w[0] {
			l.count(twotier.Decision{Allowed: true, Source: twotier.FromLease, Windows: of})
		}
		for range w[1] {
			l.count(twotier.Decision{Allowed: true, Source: twotier.FromLocalShare, Windows: of})
		}
	}
	return l
}

func TestWindowsAreHeldAgainstTheLimit(t *testing.T) {
	l := admitted([2]int{3, 3}, [2]int{2, 2}, [2]int{0, 3}, [2]int{1, 1})
	if all, worst := l.over(); all != 4 || worst != 3 {
		t.Errorf("%d over and %d in the worst window, want 4 and 3", all, worst)
	}
	if err := l.wrong(); err != nil {
		t.Error(err)
	}
	if text := l.text(); !strings.HasSuffix(text, ": 3 + 3, 2 + 2, 0 + 3, 1 + 1.") {
		t.Errorf("the text is %q", text)
	}
	for _, w := range [][2]int{{4, 0}, {0, 4}} {
		if admitted(w).wrong() == nil {
			t.Errorf("of a limit of 3, %d by leases and %d by shares are right", w[0], w[1])
		}
	}
	l.count(twotier.Decision{Allowed: true})
	if l.wrong() == nil {
		t.Error("a request that is charged to no window is right")
	}
}

func TestTheStatusIsComparedWithTheAdmittedUnits(t *testing.T) {
	says := func(worst int64, how v1alpha1.Completeness) *v1alpha1.RateLimitPolicy {
		p := &v1alpha1.RateLimitPolicy{}
		p.Status.Limits = []v1alpha1.LimitStatus{{Overshoot: &v1alpha1.Overshoot{Worst: &worst, Completeness: how}}}
		return p
	}
	within := func(p *v1alpha1.RateLimitPolicy, is metav1.ConditionStatus) *v1alpha1.RateLimitPolicy {
		meta.SetStatusCondition(&p.Status.Conditions, metav1.Condition{Type: v1alpha1.WithinBoundCondition, Status: is})
		return p
	}
	l := admitted([2]int{3, 2}, [2]int{3, 0})
	for name, row := range map[string]struct {
		says *v1alpha1.RateLimitPolicy
		ok   bool
	}{
		"the truth":               {says(2, v1alpha1.Complete), true},
		"the truth, within bound": {within(says(2, v1alpha1.Complete), metav1.ConditionTrue), true},
		"beyond its bound":        {within(says(2, v1alpha1.Complete), metav1.ConditionFalse), false},
		"at least less":           {says(1, v1alpha1.AtLeast), true},
		"less":                    {says(1, v1alpha1.Complete), false},
		"at least more":           {says(3, v1alpha1.AtLeast), false},
		"more":                    {says(3, v1alpha1.Complete), false},
		"nothing":                 {&v1alpha1.RateLimitPolicy{}, false},
	} {
		if err := l.disputed(row.says); (err == nil) != row.ok {
			t.Errorf("%s: the error is %v", name, err)
		}
	}
}
