package controllers

import (
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/weir-dev/weir/api/v1alpha1"
	"github.com/weir-dev/weir/internal/controlplane/audit"
	"github.com/weir-dev/weir/internal/controlplane/audit/poolaudit"
	"github.com/weir-dev/weir/internal/controlplane/condition"
	"github.com/weir-dev/weir/pkg/policy"
)

// poolConditionsOf returns every condition of the pool. A pool that is not accepted has
// no other.
func poolConditionsOf(s *poolScope) []metav1.Condition {
	const kind = v1alpha1.AcceptedCondition
	switch {
	case s.invalid != nil:
		return []metav1.Condition{condition.False(kind, v1alpha1.InvalidReason, s.invalid.Error())}
	case s.conflict != "":
		return []metav1.Condition{condition.False(kind, v1alpha1.ConflictedReason, s.conflict)}
	}
	return []metav1.Condition{
		condition.True(kind, v1alpha1.AcceptedReason, strings.Join(append([]string{"the pool is valid"}, s.doubts...), "; ")),
		s.enforcement().programmed(),
		poolWithinBound(s),
		coordinatorReachable(s),
		saturated(s),
	}
}

// poolWithinBound reports whether what was in flight stayed within the limit.
func poolWithinBound(s *poolScope) metav1.Condition {
	const kind = v1alpha1.WithinBoundCondition
	f, ok := s.figures()
	if !ok {
		return condition.Unknown(kind, v1alpha1.NoTrafficReason, "no sidecar has reported a request")
	}
	if unread, ok := s.enforcement().unread(); ok && f.Verdict != audit.Exceeded && f.Verdict != audit.FailOpen {
		return unread
	}
	switch f.Verdict {
	case audit.Exceeded:
		return condition.False(kind, v1alpha1.BoundExceededReason, s.overshot(f.Overshoot))
	case audit.FailOpen:
		return condition.Unknown(kind, v1alpha1.LocalOnlyReason,
			"cut off from the coordinator, these pods admit as many requests as they infer by themselves: "+nameSome(s.reporting((*poolaudit.Report).Local)))
	case audit.ReportsMissing:
		return condition.Unknown(kind, v1alpha1.ReportsMissingReason, "a sidecar does not report what it has in flight"+s.silent())
	case audit.Measured:
		if unheard := s.enforcement().unheard(); len(unheard) > 0 {
			return condition.Unknown(kind, v1alpha1.ReportsMissingReason,
				"these sidecars are not connected, so they do not report what they have in flight: "+nameSome(unheard))
		}
		return condition.True(kind, v1alpha1.MeasuredReason, s.measured(f.Overshoot))
	case audit.Starting:
		if f.Spared > 0 {
			return condition.Unknown(kind, v1alpha1.StartingReason,
				fmt.Sprintf("requests that passed without a slot, in mode Shadow, are still in flight: up to %d", f.Spared))
		}
		return condition.Unknown(kind, v1alpha1.StartingReason, "nothing was measured yet since this controller took over or the pool changed")
	default:
		return condition.Unknown(kind, v1alpha1.NoTrafficReason, "no sidecar has reported a request")
	}
}

func (s *poolScope) overshot(o *poolaudit.Overshoot) string {
	if o == nil {
		return "more requests were in flight than the limit allows"
	}
	message := fmt.Sprintf("up to %d requests more than the limit allows were in flight at %s", o.Worst, o.WorstTime.UTC().Format("2006-01-02T15:04:05.000Z"))
	if s.enforced.SelfFence.OnFenced == policy.Drain {
		message += "; requests of a pod that was cut off may have run longer than selfFence.margin: raise it, or set selfFence.onFenced to Abort"
	}
	return message
}

func (s *poolScope) measured(o *poolaudit.Overshoot) string {
	switch {
	case o == nil:
		return "what was in flight stayed within the limit"
	case s.enforced.Mode == policy.Shadow:
		return fmt.Sprintf("mode Shadow bounds nothing; worst overshoot %d", o.Worst)
	case s.enforced.Handoff == policy.Occupancy:
		return fmt.Sprintf("shares stayed within the limit; while they change hands handoff Occupancy does not bound what is in flight; worst overshoot %d", o.Worst)
	case o.Worst > 0:
		return fmt.Sprintf("what was in flight stayed within the limit but for requests that passed without a slot, in mode Shadow or in pods that were cut off from the coordinator; worst overshoot %d", o.Worst)
	}
	return "what was in flight stayed within the limit; worst overshoot 0"
}

// silent names the sidecars that never reported the pool.
func (s *poolScope) silent() string {
	var names []string
	for _, session := range s.observation.Sessions {
		if session.Report == nil {
			names = append(names, session.Pod)
		}
	}
	if len(names) == 0 {
		return ""
	}
	slices.Sort(names)
	return ": " + nameSome(names)
}

// coordinatorReachable is False while the coordinator does not answer a sidecar, or its
// credentials cannot be had.
func coordinatorReachable(s *poolScope) metav1.Condition {
	const kind = v1alpha1.CoordinatorReachableCondition
	var failures []string
	for _, session := range s.observation.Sessions {
		if r := session.Report; r != nil && r.CoordinatorError != "" {
			failures = append(failures, session.Pod+" ("+r.CoordinatorError+")")
		}
	}
	if len(failures) > 0 {
		slices.Sort(failures)
		return condition.False(kind, v1alpha1.UnreachableReason, "the coordinator does not answer "+nameSome(slices.Compact(failures))+s.cutOff())
	}
	if s.credentials.err != nil {
		return condition.False(kind, v1alpha1.UnreachableReason, s.credentials.err.Error())
	}
	if f, ok := s.figures(); ok && f.Quarantined > 0 {
		return condition.True(kind, v1alpha1.QuarantinedReason,
			"the coordinator has just lost its memory: until every share that it may have forgotten has expired, pods keep what they use and get no more")
	}
	if of := s.enforced.Coordinator; of.Type != policy.ControllerStore {
		return condition.True(kind, v1alpha1.ReachableReason, fmt.Sprintf("%s at %s divides the limit", of.Type, of.Address))
	}
	return condition.True(kind, v1alpha1.ReachableReason, "the leading controller divides the limit")
}

// cutOff names the pods that have no share, and says what that means.
func (s *poolScope) cutOff() string {
	names := s.reporting((*poolaudit.Report).CutOff)
	if len(names) == 0 {
		return ""
	}
	return "; without a share, so they refuse every request: " + nameSome(names)
}
