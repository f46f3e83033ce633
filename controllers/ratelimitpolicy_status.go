package controllers

import (
	"cmp"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/weir-dev/weir/api/v1alpha1"
	"github.com/weir-dev/weir/internal/controlplane/audit"
	"github.com/weir-dev/weir/internal/controlplane/condition"
	"github.com/weir-dev/weir/pkg/policy"
	"github.com/weir-dev/weir/pkg/store"
)

// statusOf returns the status that says what the scope knows. Transition times
// come from the status the policy has now.
func statusOf(s *scope) v1alpha1.RateLimitPolicyStatus {
	status := v1alpha1.RateLimitPolicyStatus{
		ObservedGeneration: s.policy.Generation,
		Conditions:         condition.Merge(s.policy.Status.Conditions, conditionsOf(s), s.policy.Generation, s.now),
	}
	status.Store, status.Reset = s.policy.Status.Store, s.policy.Status.Reset // which nothing may forget
	if s.accepted() {
		status.Enforcement = s.enforcement().status()
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

// limits returns the figures of each limit of the spec, in its order. A limit
// that no sidecar reported has none.
func limits(s *scope) []v1alpha1.LimitStatus {
	statuses := make([]v1alpha1.LimitStatus, 0, len(s.policy.Spec.Limits))
	for i := range s.policy.Spec.Limits {
		limit := &s.policy.Spec.Limits[i]
		status := v1alpha1.LimitStatus{Name: limit.Name, Rates: strings.Join(s.rates(limit), " "), LearningUntil: s.learningUntil(limit.Name)}
		if f, ok := s.figures(limit.Name); ok {
			describe(f, &status)
			status.Window = s.windowStatus(limit, f.Open)
			if status.Overshoot != nil && s.unsettled(limit.Name) {
				status.Overshoot.Bound = nil // also while a window without a bound was not measured yet
			}
			if limit.BudgetRef != nil {
				status.UnderUtilization = nil // what is left here may have been used in another cluster
			}
			status.HottestKeys = hottest(f.Hottest, s.now)
		} else if o := s.before(limit.Name); o != nil && o.Worst != nil {
			status.Overshoot = &v1alpha1.Overshoot{Worst: o.Worst, WorstTime: o.WorstTime, Completeness: v1alpha1.AtLeast, Excess: o.Excess}
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

// windowStatus describes the open window of a limit, nil where other clusters use it, too,
// and where the algorithm has no windows that could be read.
func (s *scope) windowStatus(limit *v1alpha1.Limit, w *audit.OpenWindow) *v1alpha1.WindowStatus {
	windows := limit.Algorithm == "" || limit.Algorithm == v1alpha1.FixedWindowAlgorithm || limit.Algorithm == v1alpha1.QuotaAlgorithm
	if w == nil || limit.BudgetRef != nil || !windows {
		return nil
	}
	return &v1alpha1.WindowStatus{
		Used: max(0, w.Used), Limit: w.Limit, Remaining: max(0, w.Limit-max(0, w.Used)),
		StartedAt: metav1.MicroTime{Time: w.Began}, ResetsAt: metav1.MicroTime{Time: w.Ends},
		MeasuredAt: metav1.Time{Time: s.now.Truncate(time.Second)},
	}
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
		status.Overshoot = &v1alpha1.Overshoot{Worst: &o.Worst, WorstTime: microTime(o.WorstEnd), Completeness: v1alpha1.Complete}
		if o.AtLeast {
			status.Overshoot.Completeness = v1alpha1.AtLeast
		}
		if o.Excess > 0 {
			status.Overshoot.Excess = &o.Excess
		}
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

// missingHash is that of the counter of requests without a limit's key.
var missingHash = store.HashValue(policy.MissingValue())

// isShared reports whether several values of a key have the counter.
func isShared(hash string) bool {
	_, shared := store.SharedBy(hash)
	return shared || hash == missingHash
}

func hottest(keys []audit.HotKey, now time.Time) []v1alpha1.HotKey {
	var out []v1alpha1.HotKey
	for _, k := range keys {
		out = append(out, v1alpha1.HotKey{
			Hash: k.Hash, Shared: isShared(k.Hash), Admitted: k.Admitted, Refused: k.Refused,
			AdmittedPerMinute: new(int64(math.Round(k.AdmittedPerMinute))), RefusedPerMinute: new(int64(math.Round(k.RefusedPerMinute))),
			MeasuredAt: metav1.Time{Time: now.Truncate(time.Second)},
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

// changeOf returns what differs between two versions of a policy's status. A move to
// another store that made a step does not wait either.
func changeOf(have, next *v1alpha1.RateLimitPolicyStatus) change {
	switch {
	case have.ObservedGeneration != next.ObservedGeneration || moved(have.Store, next.Store) || conditionsTurned(have.Conditions, next.Conditions):
		return turned
	case !equality.Semantic.DeepEqual(have.Conditions, next.Conditions) ||
		!equality.Semantic.DeepEqual(have.Enforcement, next.Enforcement) ||
		!equality.Semantic.DeepEqual(have.Guarantee, next.Guarantee) ||
		!equality.Semantic.DeepEqual(have.Store, next.Store):
		return progressed
	case figuresDiffer(have, next):
		return figuresNew
	}
	return unchanged
}

func moved(have, next *v1alpha1.StoreStatus) bool {
	if have == nil || next == nil {
		return have != next
	}
	return have.Phase != next.Phase || have.Failed != next.Failed ||
		!equality.Semantic.DeepEqual(have.Active, next.Active) || !equality.Semantic.DeepEqual(have.ServesFrom, next.ServesFrom)
}

// figuresDiffer ignores when figures were taken: the same figures a moment later
// are not a change.
func figuresDiffer(have, next *v1alpha1.RateLimitPolicyStatus) bool {
	a, b := have.DeepCopy(), next.DeepCopy()
	for _, s := range []*v1alpha1.RateLimitPolicyStatus{a, b} {
		s.LastObservationTime = nil
		for i := range s.Limits {
			s.Limits[i].WindowEnd = nil
			if w := s.Limits[i].Window; w != nil {
				w.MeasuredAt = metav1.Time{}
			}
			for j := range s.Limits[i].HottestKeys {
				s.Limits[i].HottestKeys[j].MeasuredAt = metav1.Time{}
			}
		}
	}
	return !equality.Semantic.DeepEqual(a, b)
}
