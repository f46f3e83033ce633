package metrics

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/weir-dev/weir/api/v1alpha1"
)

var (
	policyLabels = []string{"namespace", "policy"}
	limitLabels  = []string{"namespace", "policy", "limit"}

	enforcers = newDesc("weir_enforcers",
		"Pods that enforce the present generation of the policy.", policyLabels)
	enforcersDesired = newDesc("weir_enforcers_desired",
		"Running pods that the policy selects.", policyLabels)
	overshoot = newDesc("weir_overshoot",
		"Units admitted beyond the limit in the window measured last.", limitLabels)
	overshootWorst = newDesc("weir_overshoot_worst",
		"The most units admitted beyond the limit in one window since the policy changed.", limitLabels)
	overshootBound = newDesc("weir_overshoot_bound",
		"Units that the configuration allows beyond the limit in one window; absent while nothing bounds them.", limitLabels)
	underutilization = newDesc("weir_underutilization_ratio",
		"Part of the limit that was left while requests were refused, in the window measured last.", limitLabels)
	admitted = newDesc("weir_admitted_per_second",
		"Units that the fleet admits in a second.", limitLabels)
	rejected = newDesc("weir_rejected_per_second",
		"Units that the fleet refuses in a second or, in mode Shadow, would refuse.", limitLabels)

	windowUsed = newDesc("weir_limit_window_used",
		"Units that the fleet admitted in the open window so far; absent for a limit with a key.", limitLabels)
	windowLimit = newDesc("weir_limit_window_limit",
		"Limit of the open window.", limitLabels)
	windowResets = newDesc("weir_limit_window_resets_timestamp_seconds",
		"End of the open window, in seconds since 1970 on the store's clock.", limitLabels)
	learningUntil = newDesc("weir_limit_learning_until_timestamp_seconds",
		"When the limit grants again, in seconds since 1970, while its store grants nothing because it may have forgotten what it granted.", limitLabels)

	policyDescs = []*prometheus.Desc{
		enforcers, enforcersDesired, overshoot, overshootWorst, overshootBound, underutilization, admitted, rejected,
		windowUsed, windowLimit, windowResets, learningUntil,
	}
)

func reportPolicy(out output, p *v1alpha1.RateLimitPolicy) {
	s := &p.Status
	if s.ObservedGeneration != p.Generation {
		return // nothing is known of this one
	}
	if e := s.Enforcement; e != nil {
		report(out, enforcers, float64(e.Current), p.Namespace, p.Name)
		report(out, enforcersDesired, float64(e.Desired), p.Namespace, p.Name)
	}
	for i := range s.Limits {
		l := &s.Limits[i]
		labels := []string{p.Namespace, p.Name, l.Name}
		reportKnown(out, admitted, l.AdmittedPerSecond, labels...)
		reportKnown(out, rejected, l.RejectedPerSecond, labels...)
		if until := l.LearningUntil; until != nil {
			report(out, learningUntil, float64(until.Unix()), labels...)
		}
		if w := l.Window; w != nil {
			report(out, windowUsed, float64(w.Used), labels...)
			report(out, windowLimit, float64(w.Limit), labels...)
			report(out, windowResets, float64(w.ResetsAt.UnixMicro())/1e6, labels...)
		}
		if o := l.Overshoot; o != nil {
			reportKnown(out, overshoot, o.Observed, labels...)
			reportKnown(out, overshootWorst, o.Worst, labels...)
			reportKnown(out, overshootBound, o.Bound, labels...)
		}
		if u := l.UnderUtilization; u != nil {
			reportRatio(out, underutilization, u.ObservedBasisPoints, labels...)
		}
	}
}
