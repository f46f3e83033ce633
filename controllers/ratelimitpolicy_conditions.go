package controllers

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/weir-dev/weir/api/v1alpha1"
	"github.com/weir-dev/weir/internal/controlplane/audit"
	"github.com/weir-dev/weir/internal/controlplane/condition"
	"github.com/weir-dev/weir/internal/controlplane/coordinator"
)

// namedAtMost is how many pods a message names; the rest are counted.
const namedAtMost = 5

// conditionsOf returns every condition of the policy.
func conditionsOf(s *scope) []metav1.Condition {
	switch {
	case s.invalid != nil:
		return rejected(v1alpha1.InvalidReason, s.invalid.Error())
	case s.unmet != nil:
		return rejected(v1alpha1.BudgetNotFoundReason, s.unmet.Error()+"; until then pods enforce what they were sent before, if anything")
	}
	all := []metav1.Condition{
		condition.True(v1alpha1.AcceptedCondition, v1alpha1.AcceptedReason, strings.Join(slices.Concat([]string{"the policy is valid"}, s.doubts, s.unmatched()), "; ")),
		s.enforcement().programmed(),
		withinBound(s),
		storeReachable(s),
		learningCondition(s),
		s.enforcement().ready(),
	}
	if len(s.verifications) > 0 {
		all = append(all, keysCondition(s))
	}
	if full, ok := keysFull(s.observation); ok {
		all = append(all, full)
	}
	return all
}

// unmatched returns what is odd about limits that no request falls under.
func (s *scope) unmatched() []string {
	var said []string
	for i, l := range s.policy.Spec.Limits {
		if slices.Contains(s.observation.Unmatched, l.Name) {
			said = append(said, fmt.Sprintf("spec.limits[%d]: requests came for an hour or longer, and limit %s matched none of them: check its match and exempt with kubectl weir explain", i, l.Name))
		}
	}
	return said
}

// withinBound reports the verdict that outweighs those of all limits.
func withinBound(s *scope) metav1.Condition {
	const kind = v1alpha1.WithinBoundCondition
	all := s.observation.Limits
	verdict := worstVerdict(all)
	if unread, ok := s.enforcement().unread(); ok && verdict != audit.Exceeded && verdict != audit.FailOpen {
		return unread
	}
	switch verdict {
	case audit.Exceeded:
		return condition.False(kind, v1alpha1.BoundExceededReason, eachWith(all, verdict, exceeded))
	case audit.FailOpen:
		return condition.Unknown(kind, v1alpha1.FailOpenReason,
			"the store is away and requests are admitted uncounted: "+eachWith(all, verdict, limitName))
	case audit.MemoryLost:
		return condition.Unknown(kind, v1alpha1.MemoryLostReason,
			"more was admitted in the last window than its limit, which onMemoryLoss Resume allows once for each loss of memory of the store, and it is not known how often that was: "+eachWith(all, verdict, limitName))
	case audit.ReportsMissing:
		return condition.Unknown(kind, v1alpha1.ReportsMissingReason,
			"a sidecar did not report what it let through in the last window: "+eachWith(all, verdict, limitName))
	case audit.Measured:
		if unheard := s.unheard(); len(unheard) > 0 {
			return condition.Unknown(kind, v1alpha1.ReportsMissingReason,
				"these sidecars are not connected, so they do not report what they let through: "+nameSome(unheard))
		}
		if past := s.enforcement().past(); len(past) > 0 {
			return condition.Unknown(kind, v1alpha1.PodsNotLimitedReason,
				"requests to these pods pass that nothing limits, so they are in no figure: "+nameSome(past)+"; the condition Programmed names the cure; of the other pods "+s.measured()+s.elsewhere())
		}
		return condition.True(kind, v1alpha1.MeasuredReason, s.measured()+s.elsewhere())
	case audit.Starting:
		return condition.Unknown(kind, v1alpha1.StartingReason,
			"no window was measured yet since this controller took over or the policy changed")
	default:
		return condition.Unknown(kind, v1alpha1.NoTrafficReason, "no sidecar has reported a request")
	}
}

// worstVerdict returns NoTraffic when nothing was reported.
func worstVerdict(limits []coordinator.LimitFigures) audit.Verdict {
	worst := audit.NoTraffic
	for _, l := range limits {
		worst = min(worst, l.Verdict)
	}
	return worst
}

// eachWith says something of each limit with the verdict; limits come by name.
func eachWith(limits []coordinator.LimitFigures, v audit.Verdict, say func(coordinator.LimitFigures) string) string {
	var said []string
	for _, l := range limits {
		if l.Verdict == v {
			said = append(said, say(l))
		}
	}
	return nameSome(said)
}

func limitName(l coordinator.LimitFigures) string { return "limit " + l.Limit }

func exceeded(l coordinator.LimitFigures) string {
	if l.Overshoot == nil {
		return limitName(l)
	}
	return fmt.Sprintf("limit %s admitted %d too many in the window that ended at %s",
		l.Limit, l.Overshoot.Worst, l.Overshoot.WorstEnd.UTC().Format("2006-01-02T15:04:05.000Z"))
}

// measured explains a worst overshoot by its own window: the bound of the last one
// may be another.
func (s *scope) measured() string {
	var worst audit.Overshoot
	var limit string
	for _, l := range s.observation.Limits {
		if l.Overshoot != nil && l.Overshoot.Worst > worst.Worst {
			worst, limit = *l.Overshoot, l.Limit
		}
	}
	message := "no measured window exceeded its bound; worst overshoot "
	if s.partial() {
		message += "at least "
	}
	message += strconv.FormatInt(worst.Worst, 10)
	if s.partial() {
		message += ", as not all is known of some windows since the generation began"
	}
	switch {
	case worst.Worst == 0:
		return message
	case slices.Contains(s.inherited, limit):
		return message + ", measured by the replica of the controller that led before, within the bound of its window or while nothing bounded it"
	case worst.WorstUnbounded && s.resumes(limit):
		return message + ", in a window without a bound (the store may have lost its memory, it is not known how often, or sidecars cut off from it were admitting whatever came)"
	case worst.WorstUnbounded && s.unsettled(limit):
		return message + ", in a window without a bound (responses reported what their requests cost after these were let through)"
	case worst.WorstUnbounded:
		return message + ", in a window without a bound (sidecars cut off from the store were admitting whatever came)"
	case s.resumes(limit):
		return message + ", within the bound of its window (onMemoryLoss Resume allows one more limit for each loss of memory of the store, and sidecars cut off from the store admit their local share)"
	case s.carry(limit) > 0:
		return message + ", within the bound of its window (leases carry over, and sidecars cut off from the store admit their local share)"
	}
	return message + ", within the bound of its window (sidecars cut off from the store were admitting their local share)"
}

// partial reports whether some window of the generation may have admitted more than is
// known.
func (s *scope) partial() bool {
	return slices.ContainsFunc(s.observation.Limits, func(l coordinator.LimitFigures) bool { return l.Overshoot != nil && l.Overshoot.AtLeast })
}

// unheard returns the names of the pods that may let requests through and that nothing is
// heard of: enforcers, and pods on their way out that did not account for everything.
func (s *scope) unheard() []string {
	names := s.enforcement().unheard()
	for _, e := range s.pods.leaving {
		if slices.ContainsFunc(s.observation.Limits, func(l coordinator.LimitFigures) bool { return slices.Contains(l.Vanished, string(e.uid)) }) {
			names = append(names, e.name)
		}
	}
	slices.Sort(names)
	return names
}

// gone returns the UIDs of pods whose sidecar vanished and which run no more, ascending.
func gone(limits []coordinator.LimitFigures, selected []*corev1.Pod) []string {
	var all []string
	for _, l := range limits {
		all = append(all, l.Vanished...)
	}
	slices.Sort(all)
	all = slices.Compact(all)
	if len(all) == 0 {
		return nil
	}
	running := make(map[string]bool, len(selected))
	for _, p := range selected {
		running[string(p.UID)] = p.Status.Phase != corev1.PodSucceeded && p.Status.Phase != corev1.PodFailed
	}
	return slices.DeleteFunc(all, func(uid string) bool { return running[uid] })
}

// storeReachable is False while the store does not answer any sidecar, or the
// controller's own probe.
func storeReachable(s *scope) metav1.Condition {
	const kind = v1alpha1.StoreReachableCondition
	var failures []string
	for _, session := range s.observation.Sessions {
		if session.StoreError != "" {
			failures = append(failures, session.Pod+" ("+session.StoreError+")")
		}
	}
	if len(failures) > 0 {
		slices.Sort(failures)
		return condition.False(kind, v1alpha1.UnreachableReason, "the store does not answer "+nameSome(slices.Compact(failures))+s.meanwhile()+s.moving())
	}
	if s.store.err != nil {
		return condition.False(kind, v1alpha1.UnreachableReason, fmt.Sprintf("the store does not answer the controller (%v)", s.store.err)+s.meanwhile()+s.moving())
	}
	if s.move.remote() {
		return condition.True(kind, v1alpha1.ReachableReason, storeName(s.policy, s.move.serving)+" answers"+s.moving())
	}
	return condition.True(kind, v1alpha1.ReachableReason, "the leading controller keeps the counters"+s.leased()+s.moving())
}

// meanwhile says what pods do that are cut off, and where to look.
func (s *scope) meanwhile() string {
	return fmt.Sprintf("; pods that are cut off follow spec.onStoreUnavailable.action %s; check the server, its Secret and network policies",
		s.policy.Spec.OnStoreUnavailable.Action)
}

// nameSome joins the first items of a sorted list and counts the rest, so that a
// message stays short for any fleet.
func nameSome[T any](items []T) string { return nameUpTo(namedAtMost, items) }

func nameUpTo[T any](most int, items []T) string {
	var names []string
	for _, item := range items[:min(len(items), most)] {
		names = append(names, fmt.Sprint(item))
	}
	if more := len(items) - len(names); more > 0 {
		names = append(names, fmt.Sprintf("and %d more", more))
	}
	return strings.Join(names, ", ")
}
