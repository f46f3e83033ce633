package metrics

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/weir-dev/weir/api/v1alpha1"
)

var (
	budgetLabels = []string{"namespace", "budget"}
	memberLabels = []string{"namespace", "budget", "member"}
	rateLabels   = []string{"namespace", "budget", "rate"}

	budgetLimit       = newDesc("weir_budget_limit", "Units of the open window.", budgetLabels)
	budgetGranted     = newDesc("weir_budget_granted", "Units of the open window that members were granted and did not give back.", budgetLabels)
	budgetUnallocated = newDesc("weir_budget_unallocated", "Units of the open window that are left for any member to ask for.", budgetLabels)
	budgetOvershoot   = newDesc("weir_budget_overshoot", "Units that all clusters admitted beyond the limit in the window measured last.", budgetLabels)
	budgetWorst       = newDesc("weir_budget_overshoot_worst", "The most units that all clusters admitted beyond the limit in one window since the budget changed.", budgetLabels)
	budgetBound       = newDesc("weir_budget_overshoot_bound", "Units that the configuration allows beyond the limit in one window.", budgetLabels)
	budgetUnused      = newDesc("weir_budget_underutilization_ratio", "Part of the limit that was left while requests were refused in some cluster, in the window measured last.", budgetLabels)

	memberGranted = newDesc("weir_budget_member_granted", "Units of the open window that the member was granted and did not give back.", memberLabels)
	memberUsed    = newDesc("weir_budget_member_used", "Units that the member admitted in the window measured last.", memberLabels)
	memberUp      = newDesc("weir_budget_member_connected", "1 while the coordinator has heard of the member lately; one without requests falls silent, too.", memberLabels)

	rateLimit     = newDesc("weir_budget_rate_limit", "Units of the open window of an additional rate.", rateLabels)
	rateGranted   = newDesc("weir_budget_rate_granted", "Units of the open window of an additional rate that members were granted and did not give back.", rateLabels)
	rateOvershoot = newDesc("weir_budget_rate_overshoot", "Units that all clusters admitted beyond the limit of an additional rate in its window measured last.", rateLabels)
	rateBound     = newDesc("weir_budget_rate_overshoot_bound", "Units that the configuration allows beyond the limit of an additional rate in one window.", rateLabels)
	rateUnused    = newDesc("weir_budget_rate_underutilization_ratio", "Part of the limit of an additional rate that was left while requests were refused in some cluster, in its window measured last.", rateLabels)

	budgetDescs = []*prometheus.Desc{
		budgetLimit, budgetGranted, budgetUnallocated, budgetOvershoot, budgetWorst, budgetBound, budgetUnused,
		memberGranted, memberUsed, memberUp,
		rateLimit, rateGranted, rateOvershoot, rateBound, rateUnused,
	}
)

func reportBudget(out output, b *v1alpha1.FederatedBudget) {
	s := &b.Status
	if s.ObservedGeneration != b.Generation {
		return // nothing is known of this one
	}
	labels := []string{b.Namespace, b.Name}
	if a := s.Allocation; a != nil {
		report(out, budgetLimit, float64(a.Limit), labels...)
		report(out, budgetGranted, float64(a.Granted), labels...)
		report(out, budgetUnallocated, float64(a.Unallocated), labels...)
	}
	if o := s.Overshoot; o != nil {
		reportKnown(out, budgetOvershoot, o.Observed, labels...)
		reportKnown(out, budgetWorst, o.Worst, labels...)
		reportKnown(out, budgetBound, o.Bound, labels...)
	}
	if u := s.UnderUtilization; u != nil {
		reportRatio(out, budgetUnused, u.ObservedBasisPoints, labels...)
	}
	for i := range s.AdditionalRates {
		r := &s.AdditionalRates[i]
		labels := []string{b.Namespace, b.Name, r.Rate}
		if a := r.Allocation; a != nil {
			report(out, rateLimit, float64(a.Limit), labels...)
			report(out, rateGranted, float64(a.Granted), labels...)
		}
		if o := r.Overshoot; o != nil {
			reportKnown(out, rateOvershoot, o.Observed, labels...)
			reportKnown(out, rateBound, o.Bound, labels...)
		}
		if u := r.UnderUtilization; u != nil {
			reportRatio(out, rateUnused, u.ObservedBasisPoints, labels...)
		}
	}
	for i := range s.Members {
		m := &s.Members[i]
		labels := []string{b.Namespace, b.Name, m.Name}
		report(out, memberUp, one(m.State == v1alpha1.MemberConnected), labels...)
		reportKnown(out, memberGranted, m.Granted, labels...)
		reportKnown(out, memberUsed, m.Used, labels...)
	}
}
