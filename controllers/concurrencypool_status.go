package controllers

import (
	"cmp"
	"math"
	"slices"
	"strconv"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/weir-dev/weir/api/v1alpha1"
	"github.com/weir-dev/weir/internal/controlplane/audit/poolaudit"
	"github.com/weir-dev/weir/internal/controlplane/condition"
	"github.com/weir-dev/weir/pkg/limiter"
	"github.com/weir-dev/weir/pkg/policy"
)

// maxShares is the number of pods whose shares a status shows.
const maxShares = 32

// poolStatusOf returns the status that says what the scope knows. Transition times come
// from the status the pool has now.
func poolStatusOf(s *poolScope) v1alpha1.ConcurrencyPoolStatus {
	status := v1alpha1.ConcurrencyPoolStatus{
		ObservedGeneration: s.pool.Generation,
		Conditions:         condition.Merge(s.pool.Status.Conditions, poolConditionsOf(s), s.pool.Generation, s.now),
	}
	if s.invalid == nil {
		status.Enforcement = s.enforcement().status()
		if f, ok := s.figures(); ok && !f.Pending {
			s.describe(f, &status)
		}
	}
	status.Summary = poolSummary(&status)
	return status
}

// describe writes figures into the status.
func (s *poolScope) describe(f poolaudit.Figures, status *v1alpha1.ConcurrencyPoolStatus) {
	status.MeasuredAt = &metav1.Time{Time: s.now.Truncate(time.Second)}
	if f.Limit > 0 {
		status.Limit = &v1alpha1.PoolLimitStatus{Current: f.Limit, FixedBy: s.fixedBy(f), Reason: shortened(s.why(f))}
		status.Holders = new(int32(min(f.Holders, math.MaxInt32)))
	}
	status.InFlight, status.Granted, status.Queued = &f.InFlight, &f.Granted, &f.Queued
	status.Fenced = new(int32(min(f.CutOff, math.MaxInt32)))
	status.AdmittedPerSecond = new(int64(math.Round(f.AdmittedPerSecond)))
	status.RejectedPerSecond = new(int64(math.Round(f.RejectedPerSecond)))
	status.Latency = s.latency(f)
	status.Overshoot = poolOvershoot(f.Overshoot)
	if u := f.UnderUtilization; u != nil {
		status.UnderUtilization = &v1alpha1.UnderUtilization{ObservedBasisPoints: &u.Observed, WorstBasisPoints: &u.Worst}
	}
	status.Keys = s.keys()
	status.Partitions = s.partitions(f)
	status.Shares = s.shares()
}

func (s *poolScope) latency(f poolaudit.Figures) *v1alpha1.PoolLatency {
	if s.enforced.Algorithm.Type == policy.FixedLimit || f.Latency == 0 && f.Baseline == 0 {
		return nil
	}
	return &v1alpha1.PoolLatency{BaselineMicroseconds: measuredMicros(f.Baseline), CurrentMicroseconds: measuredMicros(f.Latency)}
}

func measuredMicros(d limiter.Micros) *int64 {
	if d == 0 {
		return nil
	}
	return new(int64(d))
}

// poolOvershoot has a bound of nothing, or none.
func poolOvershoot(o *poolaudit.Overshoot) *v1alpha1.Overshoot {
	if o == nil {
		return nil
	}
	out := &v1alpha1.Overshoot{Observed: &o.Observed, Worst: &o.Worst, WorstTime: microTime(o.WorstTime)}
	if !o.Unbounded {
		out.Bound = new(int64(0))
	}
	return out
}

// keys returns the figures of the limit per value of the key, nil when nothing is known.
func (s *poolScope) keys() *v1alpha1.PoolKeysStatus {
	f := s.observation.Keys
	if f == nil || f.Pending || f.Limit == 0 {
		return nil
	}
	status := &v1alpha1.PoolKeysStatus{
		Limit: f.Limit, InFlight: &f.InFlight, Queued: &f.Queued,
		RejectedPerSecond: new(int64(math.Round(f.RejectedPerSecond))),
		Overshoot:         poolOvershoot(f.Overshoot),
	}
	if s.enforced.Key.OnMissing == policy.Reject {
		status.MissingPerSecond = new(int64(math.Round(f.KeyMissingPerSecond)))
	}
	for _, session := range s.sessions() {
		if r := session.Keys; r != nil && (status.SmallestShare == nil || r.Share < *status.SmallestShare) {
			status.SmallestShare = new(r.Share)
		}
	}
	return status
}

// partitions returns the figures of each partition of the spec, in its order.
func (s *poolScope) partitions(f poolaudit.Figures) []v1alpha1.PartitionStatus {
	var out []v1alpha1.PartitionStatus
	for _, spec := range s.enforced.Partitions {
		status := v1alpha1.PartitionStatus{Name: spec.Name}
		for _, p := range f.Partitions {
			if p.Name == spec.Name {
				status.Guaranteed, status.InFlight = &p.Guaranteed, &p.InFlight
				status.RejectedPerSecond = new(int64(math.Round(p.RejectedPerSecond)))
			}
		}
		out = append(out, status)
	}
	return out
}

// shares returns those of single pods, the largest first.
func (s *poolScope) shares() []v1alpha1.PodShare {
	var out []v1alpha1.PodShare
	for _, session := range s.sessions() {
		r := session.Report
		if r == nil {
			continue
		}
		share := v1alpha1.PodShare{Pod: session.Pod, Share: r.Share, InFlight: r.InFlight, Fenced: r.CutOff()}
		if s.enforced.Algorithm.Type != policy.FixedLimit && r.Latency > 0 {
			share.Inferred = new(r.Inferred)
		}
		out = append(out, share)
	}
	slices.SortFunc(out, func(a, b v1alpha1.PodShare) int {
		return cmp.Or(cmp.Compare(b.Share, a.Share), cmp.Compare(a.Pod, b.Pod))
	})
	return out[:min(len(out), maxShares)]
}

// poolSummary returns the columns that kubectl prints.
func poolSummary(status *v1alpha1.ConcurrencyPoolStatus) v1alpha1.PoolSummary {
	return v1alpha1.PoolSummary{
		Pods:      podsColumn(status.Enforcement),
		Limit:     limitColumn(status.Limit),
		InFlight:  countColumn(status.InFlight),
		Overshoot: dated(overshootInShort(status.Overshoot), status.Conditions),
		Unused:    dated(freeColumn(status.UnderUtilization), status.Conditions),
		Latency:   latencyColumn(status.Latency),
		Saturated: saturatedColumn(status.Conditions),
	}
}

func limitColumn(l *v1alpha1.PoolLimitStatus) string {
	if l == nil {
		return v1alpha1.NotMeasured
	}
	return countColumn(&l.Current)
}

func countColumn(n *int64) string {
	if n == nil {
		return v1alpha1.NotMeasured
	}
	return strconv.FormatInt(*n, 10)
}

func freeColumn(u *v1alpha1.UnderUtilization) string {
	if u == nil {
		return v1alpha1.NotMeasured
	}
	return unusedInShort(ptr.Deref(u.ObservedBasisPoints, -1))
}

// latencyColumn is latency now and without load: 26ms/21ms.
func latencyColumn(l *v1alpha1.PoolLatency) string {
	if l == nil || l.CurrentMicroseconds == nil || l.BaselineMicroseconds == nil {
		return v1alpha1.NotMeasured
	}
	return inShort(limiter.Micros(*l.CurrentMicroseconds)) + "/" + inShort(limiter.Micros(*l.BaselineMicroseconds))
}

// saturatedColumn is No, or why requests find no slot. That the coordinator does not
// answer comes first.
func saturatedColumn(conditions []metav1.Condition) string {
	switch c := meta.FindStatusCondition(conditions, v1alpha1.SaturatedCondition); {
	case meta.IsStatusConditionFalse(conditions, v1alpha1.CoordinatorReachableCondition):
		return v1alpha1.UnreachableReason
	case c == nil || c.Status == metav1.ConditionUnknown:
		return v1alpha1.NotMeasured
	case c.Status == metav1.ConditionFalse:
		return "No"
	default:
		return c.Reason
	}
}

// poolChangeOf returns what differs between two versions of a pool's status. Why a pool
// is saturated is a figure, in words: the limit moves all the time.
func poolChangeOf(have, next *v1alpha1.ConcurrencyPoolStatus) change {
	before, after := withoutFigures(have.Conditions), withoutFigures(next.Conditions)
	switch {
	case have.ObservedGeneration != next.ObservedGeneration || conditionsTurned(before, after):
		return turned
	case !equality.Semantic.DeepEqual(before, after) || !equality.Semantic.DeepEqual(have.Enforcement, next.Enforcement):
		return progressed
	case !equality.Semantic.DeepEqual(have.Holders, next.Holders):
		return redivided
	case poolFiguresDiffer(have, next):
		return figuresNew
	}
	return unchanged
}

// unsettles reports whether figures of next, or those that follow it, move with a change
// that they do not show the end of.
func unsettles(have, next *v1alpha1.ConcurrencyPoolStatus) bool {
	return have.ObservedGeneration != next.ObservedGeneration || !equality.Semantic.DeepEqual(have.Holders, next.Holders)
}

// withoutFigures returns the conditions without what moves with every measurement.
func withoutFigures(conditions []metav1.Condition) []metav1.Condition {
	out := make([]metav1.Condition, len(conditions))
	for i, c := range conditions {
		if c.Type == v1alpha1.SaturatedCondition {
			c.Reason, c.Message = "", ""
		}
		out[i] = c
	}
	return out
}

// poolFiguresDiffer ignores when figures were taken: the same figures a moment later are
// not a change.
func poolFiguresDiffer(have, next *v1alpha1.ConcurrencyPoolStatus) bool {
	a, b := have.DeepCopy(), next.DeepCopy()
	a.MeasuredAt, b.MeasuredAt = nil, nil
	return !equality.Semantic.DeepEqual(a, b)
}
