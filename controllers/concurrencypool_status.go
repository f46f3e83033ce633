package controllers

import (
	"cmp"
	"math"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

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
