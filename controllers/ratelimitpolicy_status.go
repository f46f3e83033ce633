package controllers

import (
	"cmp"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/weir-dev/weir/api/v1alpha1"
	"github.com/weir-dev/weir/internal/audit"
	"github.com/weir-dev/weir/internal/condition"
)

// statusOf returns the status that says what the scope knows. Transition times
// come from the status the policy has now.
func statusOf(s *scope) v1alpha1.RateLimitPolicyStatus {
	status := v1alpha1.RateLimitPolicyStatus{
		ObservedGeneration: s.policy.Generation,
		Conditions:         condition.Merge(s.policy.Status.Conditions, conditionsOf(s), s.policy.Generation, s.now),
	}
	status.Store = s.policy.Status.Store // which nothing may forget
	if s.accepted() {
		status.Enforcement = s.roster().enforcement()
		status.Guarantee = guarantee(s)
		status.Store = storeStatus(s)
		status.Limits = limits(s)
	}
	if len(s.observation.Limits) > 0 {
		status.LastObservationTime = &metav1.Time{Time: s.now.Truncate(time.Second)}
	}
	status.Summary = summary(s, &status)
	return status
}

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
	for _, l := range s.policy.Spec.Limits {
		switch carry := s.carry(l.Name); {
		case s.unsettled(l.Name):
			g.Reason += fmt.Sprintf("; nothing bounds limit %s, as its responses tell what requests cost", l.Name)
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
		return &v1alpha1.Guarantee{
			Grade:  v1alpha1.HardGuarantee,
			Reason: "a controller that takes over grants nothing from windows whose grants it may not know",
		}
	case s.store.err != nil:
		return nil
	}
	return s.store.guarantee.DeepCopy()
}

// limits returns the figures of each limit of the spec, in its order. A limit
// that no sidecar reported has none.
func limits(s *scope) []v1alpha1.LimitStatus {
	statuses := make([]v1alpha1.LimitStatus, 0, len(s.policy.Spec.Limits))
	for i := range s.policy.Spec.Limits {
		limit := &s.policy.Spec.Limits[i]
		status := v1alpha1.LimitStatus{Name: limit.Name, Rates: strings.Join(s.rates(limit), " ")}
		if f, ok := s.figures(limit.Name); ok {
			describe(f, &status)
			if status.Overshoot != nil && s.unsettled(limit.Name) {
				status.Overshoot.Bound = nil // also while a window without a bound was not measured yet
			}
			if limit.BudgetRef != nil {
				status.UnderUtilization = nil // what is left here may have been used in another cluster
			}
			status.HottestKeys = hottest(f.Hottest, s.now)
		}
		statuses = append(statuses, status)
	}
	return statuses
}

// figures returns what was measured of a limit under the policy's generation, and
// false when nothing was.
func (s *scope) figures(limit string) (audit.Figures, bool) {
	for _, l := range s.observation.Limits {
		if l.Limit == limit && l.Verdict != audit.NoTraffic {
			return l.Figures, true
		}
	}
	return audit.Figures{}, false
}

// describe writes figures into the status of their limit.
func describe(f audit.Figures, status *v1alpha1.LimitStatus) {
	status.AdmittedPerSecond = new(int64(math.Round(f.Flow.AdmittedPerSecond)))
	status.RejectedPerSecond = new(int64(math.Round(f.Flow.RejectedPerSecond)))
	status.ActiveKeys = new(f.ActiveKeys)
	if f.Flow.RequestsPerRoundTrip > 0 {
		status.RequestsPerRoundTrip = oneDecimal(f.Flow.RequestsPerRoundTrip)
	}
	if o := f.Overshoot; o != nil {
		status.WindowEnd = microTime(o.WindowEnd)
		status.Overshoot = &v1alpha1.Overshoot{Worst: &o.Worst, WorstTime: microTime(o.WorstEnd)}
		if !o.WindowEnd.IsZero() {
			status.Overshoot.Observed = &o.Observed
		}
		if !o.WindowEnd.IsZero() && !o.Unbounded {
			status.Overshoot.Bound = &o.Bound
		}
	}
	if u := f.UnderUtilization; u != nil {
		status.UnderUtilization = &v1alpha1.UnderUtilization{ObservedBasisPoints: &u.Observed, WorstBasisPoints: &u.Worst}
	}
}

func hottest(keys []audit.KeyCount, now time.Time) []v1alpha1.HotKey {
	var out []v1alpha1.HotKey
	for _, k := range keys {
		out = append(out, v1alpha1.HotKey{
			Hash: k.Hash, Admitted: k.Admitted, Refused: k.Refused, MeasuredAt: metav1.Time{Time: now.Truncate(time.Second)},
		})
	}
	return out
}

func microTime(t time.Time) *metav1.MicroTime {
	if t.IsZero() {
		return nil
	}
	return &metav1.MicroTime{Time: t}
}

func rateInShort(r v1alpha1.Rate) string {
	return fmt.Sprintf("%d/%s", r.Limit, cmp.Or(string(r.Window), string(r.Cadence)))
}

func oneDecimal(x float64) string { return strconv.FormatFloat(x, 'f', 1, 64) }
