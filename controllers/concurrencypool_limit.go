package controllers

import (
	"fmt"
	"strconv"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/weir-dev/weir/api/v1alpha1"
	"github.com/weir-dev/weir/internal/controlplane/audit"
	"github.com/weir-dev/weir/internal/controlplane/audit/poolaudit"
	"github.com/weir-dev/weir/internal/controlplane/condition"
	"github.com/weir-dev/weir/pkg/limiter"
	"github.com/weir-dev/weir/pkg/policy"
)

// saturated reports whether requests find no slot, and says in any case why the limit
// is where it is.
func saturated(s *poolScope) metav1.Condition {
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
