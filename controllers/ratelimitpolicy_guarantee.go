package controllers

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/weir-dev/weir/api/v1alpha1"
	"github.com/weir-dev/weir/pkg/policy"
	"github.com/weir-dev/weir/pkg/store"
)

// guarantee says how firm the bounds are, and of limits whose bound is not the limit
// itself what it is. It is absent while the store that it rests on cannot be asked.
func guarantee(s *scope) *v1alpha1.Guarantee {
	g := firmness(s)
	if g != nil {
		g = s.weakened(g)
	}
	if g == nil {
		return nil
	}
	if s.forgetful() {
		g.Grade = v1alpha1.BestEffortGuarantee
		g.Reason += "; onMemoryLoss Resume goes on with the counts that are left, so each loss of memory of the store may admit at most one more limit in the windows that are open"
	}
	if past := s.enforcement().past(); len(past) > 0 {
		g.Grade = v1alpha1.BestEffortGuarantee
		g.Reason = "nothing limits requests to " + nameSome(past) + "; of the other pods: " + g.Reason
	}
	for _, l := range s.policy.Spec.Limits {
		switch carry := s.carry(l.Name); {
		case s.unsettled(l.Name):
			g.Reason += fmt.Sprintf("; nothing bounds limit %s, as its responses report what requests cost", l.Name)
		case carry > 0:
			g.Reason += fmt.Sprintf("; leases carry over, so a window of limit %s may admit %d more for each pod", l.Name, carry)
		}
	}
	g.Reason = shortened(g.Reason)
	return g
}

// firmness grades what the counters rest on.
func firmness(s *scope) *v1alpha1.Guarantee {
	switch {
	case s.policy.Spec.OnStoreUnavailable.Action == v1alpha1.AllowAction:
		return &v1alpha1.Guarantee{
			Grade:  v1alpha1.BestEffortGuarantee,
			Reason: "onStoreUnavailable.action Allow admits requests uncounted while the store is away",
		}
	case !s.move.remote():
		return &v1alpha1.Guarantee{Grade: v1alpha1.HardGuarantee, Reason: s.ofController()}
	case s.store.err != nil:
		return nil
	}
	return new(described(s.keeping()))
}

// ofController says why no leader grants twice what another granted.
func (s *scope) ofController() string {
	const volatile = "a controller that takes over grants nothing from windows whose grants it may not know"
	const durable = "the controller sets aside in the API server what it grants of limits whose counters are durable"
	kinds := s.retentions()
	switch {
	case kinds[true] && kinds[false]:
		return volatile + ", and " + durable
	case kinds[true]:
		return durable
	}
	return volatile
}

// retentions returns whether any limit has counters that are durable, or not.
func (s *scope) retentions() map[bool]bool {
	kinds := make(map[bool]bool)
	for _, l := range s.enforced.Limits {
		if l.Budget == nil {
			kinds[l.Retention.Durable] = true
		}
	}
	return kinds
}

// keeping returns how firmly the store keeps the counters of the policy: as it keeps
// those that it keeps the least.
func (s *scope) keeping() store.Guarantee {
	kinds := s.retentions()
	switch {
	case kinds[true] && kinds[false]:
		return s.store.facts.Durable.Guarantee.Weaker(s.store.facts.Volatile.Guarantee)
	case kinds[true]:
		return s.store.facts.Durable.Guarantee
	}
	return s.store.facts.Volatile.Guarantee
}

// forgetful reports whether the store may forget grants of a limit that goes on all the
// same.
func (s *scope) forgetful() bool {
	return !s.store.facts.Lossless && slices.ContainsFunc(s.enforced.Limits, func(l policy.Limit) bool { return s.resumes(l.Name) })
}

// resumes reports whether a limit goes on when its store loses its memory. The controller's
// own never does.
func (s *scope) resumes(limit string) bool {
	return s.move.remote() && s.retention(limit).Resume
}

// hardReason is what the grade Hard rests on, for which a server gives no reason.
const hardReason = "one server that never forgets a counter while it runs; a restart that may have lost grants costs the open windows"

// described puts a store's guarantee into the words of the API, which has a reason for
// every grade.
func described(g store.Guarantee) v1alpha1.Guarantee {
	return v1alpha1.Guarantee{Grade: v1alpha1.GuaranteeGrade(g.Grade), Reason: cmp.Or(g.Reason, hardReason)}
}

// strength orders grades.
var strength = map[v1alpha1.GuaranteeGrade]int{
	v1alpha1.BestEffortGuarantee:           1,
	v1alpha1.HardExceptSplitBrainGuarantee: 2,
	v1alpha1.HardGuarantee:                 3,
}
