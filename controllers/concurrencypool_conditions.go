package controllers

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/weir-dev/weir/api/v1alpha1"
	"github.com/weir-dev/weir/internal/controlplane/audit"
	"github.com/weir-dev/weir/internal/controlplane/audit/poolaudit"
	"github.com/weir-dev/weir/internal/controlplane/condition"
	"github.com/weir-dev/weir/pkg/limiter"
	"github.com/weir-dev/weir/pkg/policy"
)

// poolConditionsOf returns every condition of the pool.
func poolConditionsOf(s *poolScope) []metav1.Condition {
	switch {
	case s.invalid != nil:
		return rejected(v1alpha1.InvalidReason, s.invalid.Error())
	case s.conflict != "":
		return rejected(v1alpha1.ConflictedReason, s.conflict)
	}
	return []metav1.Condition{
		condition.True(v1alpha1.AcceptedCondition, v1alpha1.AcceptedReason, strings.Join(append([]string{"the pool is valid"}, s.doubts...), "; ")),
		s.enforcement().programmed(),
		withinBounds(s),
		coordinatorReachable(s),
		saturated(s),
		s.enforcement().ready(),
	}
}

// withinBounds reports whether what was in flight stayed within the limit, and that of every
// value within the limit per value: it returns the worse condition of both limits.
func withinBounds(s *poolScope) metav1.Condition {
	c := poolWithinBound(s)
	k, ok := s.perKey()
	if !ok || c.Status == metav1.ConditionFalse {
		return c
	}
	of := poolWithinBound(k)
	switch {
	case of.Status == metav1.ConditionTrue && c.Status == metav1.ConditionTrue:
		c.Message += "; by value of the key, " + of.Message
		return c
	case of.Status == metav1.ConditionFalse, c.Status == metav1.ConditionTrue && of.Reason != v1alpha1.NoTrafficReason:
		of.Message = "by value of the key, " + of.Message
		return of
	}
	return c
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
		if otherwise := s.otherwise(); len(otherwise) > 0 {
			return condition.Unknown(kind, v1alpha1.PodsNotLimitedReason,
				"these pods give slots to the requests that an earlier generation selects, or count them for the values of its key: "+nameSome(otherwise)+
					"; the condition Programmed says why; of the others "+s.measured(f.Overshoot))
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
		for _, r := range []*poolaudit.Report{session.Report, session.Keys} {
			if r != nil && r.CoordinatorError != "" {
				failures = append(failures, session.Pod+" ("+r.CoordinatorError+")")
				break
			}
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
	if f := s.observation.Keys; f != nil && f.Quarantined > 0 {
		return condition.True(kind, v1alpha1.QuarantinedReason,
			"the coordinator does not know what pods have in flight of each value of the key: until every share that it may have forgotten has expired, "+
				"pods keep what they use and get no more, and refuse other requests that have the key")
	}
	if of := s.enforced.Coordinator; of.Type != policy.ControllerStore {
		return condition.True(kind, v1alpha1.ReachableReason, fmt.Sprintf("%s at %s divides the limit", of.Type, of.Address))
	}
	return condition.True(kind, v1alpha1.ReachableReason, "the leading controller divides the limit")
}

// cutOff names the pods that have no share, and says what that means.
func (s *poolScope) cutOff() (out string) {
	names := s.reporting((*poolaudit.Report).CutOff)
	if len(names) > 0 {
		out = "; without a share, so they refuse every request: " + nameSome(names)
	}
	k, ok := s.perKey()
	if !ok {
		return out
	}
	more := slices.DeleteFunc(k.reporting((*poolaudit.Report).CutOff), func(pod string) bool { return slices.Contains(names, pod) })
	if len(more) > 0 {
		out += "; without a share of the limit per key, so they refuse every request that has the key: " + nameSome(more)
	}
	return out
}

// saturated reports whether requests find no slot of the pool, and says in any case why the
// limit is where it is, and when that of a value of the key does not go round.
func saturated(s *poolScope) metav1.Condition {
	c := poolSaturated(s)
	if f := s.observation.Keys; f != nil && f.Limit > 0 && f.Limit < f.Holders {
		c.Message += fmt.Sprintf("; every value of the key has %d slots, fewer than the %d pods that share them, so some have none and refuse every request that has the key: raise key.limit",
			f.Limit, f.Holders)
	}
	return c
}

// poolSaturated is saturated without the key.
func poolSaturated(s *poolScope) metav1.Condition {
	const kind = v1alpha1.SaturatedCondition
	f, ok := s.figures()
	switch {
	case !ok || f.Verdict == audit.NoTraffic && f.CutOff == 0:
		return condition.Unknown(kind, v1alpha1.NoTrafficReason, "no sidecar has reported a request")
	case f.CutOff > 0 && f.Granted == 0:
		return condition.Unknown(kind, v1alpha1.UnreachableReason, "the coordinator does not answer, so no pod has a share of the limit and every request is refused")
	case f.Pending:
		return condition.Unknown(kind, v1alpha1.StartingReason, "nothing was measured yet since the pool changed")
	case f.Limit == 0:
		return condition.Unknown(kind, v1alpha1.StartingReason, "no sidecar was sent the limit yet")
	case !f.Saturated:
		return condition.False(kind, v1alpha1.HasHeadroomReason, s.why(f))
	}
	reason := map[v1alpha1.LimitFixedBy]string{
		v1alpha1.FixedByAlgorithm: v1alpha1.AtLimitReason,
		v1alpha1.FixedByMin:       v1alpha1.AtMinReason,
		v1alpha1.FixedByMax:       v1alpha1.AtMaxReason,
	}[s.fixedBy(f)]
	return condition.True(kind, reason, "requests find no slot; "+s.why(f))
}

// fixedBy returns what keeps the limit where it is.
func (s *poolScope) fixedBy(f poolaudit.Figures) v1alpha1.LimitFixedBy {
	switch r := s.enforced.Limit; {
	case f.Limit >= r.Max:
		return v1alpha1.FixedByMax
	case f.Limit <= r.Min:
		return v1alpha1.FixedByMin
	}
	return v1alpha1.FixedByAlgorithm
}

// why says why the limit is where it is, and when it does not go round.
func (s *poolScope) why(f poolaudit.Figures) string {
	if f.Limit >= f.Holders {
		return s.origin(f)
	}
	raise := "limit.min"
	if f.Limit >= s.enforced.Limit.Max {
		raise = "limit.max"
	}
	return fmt.Sprintf("%s; these are fewer slots than the %d pods that share them, so some have none and refuse every request: raise %s",
		s.origin(f), f.Holders, raise)
}

// origin says in a sentence why the limit is where it is.
func (s *poolScope) origin(f poolaudit.Figures) string {
	limit, algorithm := fmt.Sprintf("limit %d", f.Limit), s.enforced.Algorithm.Type
	latency := "latency " + inShort(f.Latency)
	if f.Baseline > 0 {
		latency += fmt.Sprintf(" against %s without load", inShort(f.Baseline))
	}
	switch by := s.fixedBy(f); {
	case algorithm == policy.FixedLimit:
		return limit + " is limit.max, since algorithm Fixed infers nothing"
	case f.Measuring == 0:
		return limit + " is where it begins: no latency was measured yet"
	case s.enforced.Limit.Min == s.enforced.Limit.Max:
		return limit + " cannot move, since limit.min is limit.max: " + latency
	case by == v1alpha1.FixedByMax:
		return fmt.Sprintf("%s is limit.max: by %s pods infer that the backend bears it, or more: %s", limit, algorithm, latency)
	case by == v1alpha1.FixedByMin:
		return fmt.Sprintf("%s is limit.min: by %s pods infer that the backend bears no more, or less: %s", limit, algorithm, latency)
	}
	return fmt.Sprintf("%s by %s between %d and %d, %s of what %s: %s",
		limit, algorithm, s.enforced.Limit.Min, s.enforced.Limit.Max, aggregates[s.enforced.Aggregate], infer(f.Measuring), latency)
}

// aggregates are how messages call them.
var aggregates = map[policy.Aggregate]string{policy.Median: "the median", policy.Minimum: "the least"}

func infer(pods int64) string {
	if pods == 1 {
		return "1 pod infers"
	}
	return fmt.Sprintf("%d pods infer", pods)
}

// inShort writes a latency with two or three digits.
func inShort(d limiter.Micros) string {
	switch ms := float64(d) / 1000; {
	case d < limiter.Millisecond:
		return fmt.Sprintf("%dµs", d)
	case d < 10*limiter.Millisecond:
		return strconv.FormatFloat(ms, 'f', 1, 64) + "ms"
	case d < 10*limiter.Second:
		return strconv.FormatFloat(ms, 'f', 0, 64) + "ms"
	default:
		return strconv.FormatFloat(ms/1000, 'f', 0, 64) + "s"
	}
}
