package controllers

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-dev/weir/api/v1alpha1"
	"github.com/weir-dev/weir/internal/controlplane/audit"
	"github.com/weir-dev/weir/internal/controlplane/audit/poolaudit"
	"github.com/weir-dev/weir/internal/controlplane/coordinator"
	"github.com/weir-dev/weir/pkg/limiter"
	"github.com/weir-dev/weir/pkg/policy"
)

func TestStatusOfAPool(t *testing.T) {
	s := newPoolScope(
		measuring(func(f *poolaudit.Figures) {
			f.Saturated, f.Queued, f.AdmittedPerSecond, f.RejectedPerSecond = true, 3, 99.6, 4.2
			f.Overshoot = &poolaudit.Overshoot{Worst: 2, WorstTime: now, Unbounded: true}
			f.UnderUtilization = &audit.UnderUtilization{Observed: 120, Worst: 4000}
			f.Partitions = []poolaudit.PartitionFigures{{Name: "live", Guaranteed: 40, InFlight: 7, RejectedPerSecond: 1.5}}
		}),
		enforcing(func(p *policy.Pool) { p.Partitions = []policy.Partition{{Name: "batch"}, {Name: "live"}} }),
		reported(1, func(r *poolaudit.Report) { r.Share, r.Fenced, r.Latency = 0, true, 0 }),
	)
	got := poolStatusOf(s)
	got.Conditions = nil
	want := v1alpha1.ConcurrencyPoolStatus{
		ObservedGeneration: 4,
		MeasuredAt:         got.MeasuredAt,
		Enforcement:        &v1alpha1.Enforcement{Desired: 2, Current: 2},
		Limit: &v1alpha1.PoolLimitStatus{
			Current: 412, FixedBy: v1alpha1.FixedByAlgorithm,
			Reason: "limit 412 by Gradient2 between 8 and 4000, the median of what 2 pods infer: latency 26ms against 21ms without load",
		},
		InFlight: new(int64(380)), Granted: new(int64(412)), Queued: new(int64(3)), Holders: new(int32(2)), Fenced: new(int32(0)),
		AdmittedPerSecond: new(int64(100)), RejectedPerSecond: new(int64(4)),
		Latency:          &v1alpha1.PoolLatency{BaselineMicroseconds: new(int64(21_000)), CurrentMicroseconds: new(int64(26_000))},
		Overshoot:        &v1alpha1.Overshoot{Observed: new(int64(0)), Worst: new(int64(2)), WorstTime: microTime(now)},
		UnderUtilization: &v1alpha1.UnderUtilization{ObservedBasisPoints: new(int32(120)), WorstBasisPoints: new(int32(4000))},
		Partitions: []v1alpha1.PartitionStatus{
			{Name: "batch"}, {Name: "live", Guaranteed: new(int64(40)), InFlight: new(int64(7)), RejectedPerSecond: new(int64(2))},
		},
		Shares: []v1alpha1.PodShare{
			{Pod: "a", Share: 206, InFlight: 190, Inferred: new(int64(412))}, {Pod: "b", InFlight: 190, Fenced: true},
		},
		Summary: v1alpha1.PoolSummary{
			Pods: "2/2", Limit: "412", InFlight: "380", Overshoot: "0 ≤ ∞", Unused: "1.2%", Latency: "26ms/21ms", Saturated: "AtLimit",
		},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("status (-want +got):\n%s", diff)
	}
	if got.MeasuredAt == nil || !got.MeasuredAt.Time.Equal(now.Truncate(time.Second)) {
		t.Errorf("measured at %v, want %v", got.MeasuredAt, now)
	}
}

func TestAStatusWithoutMeasurementsHasNoFigures(t *testing.T) {
	got := poolStatusOf(newPoolScope(func(s *poolScope) { s.observation = coordinator.PoolObservation{} }))
	got.Conditions = nil
	want := v1alpha1.ConcurrencyPoolStatus{
		ObservedGeneration: 4, Enforcement: &v1alpha1.Enforcement{Desired: 2},
		Summary: v1alpha1.PoolSummary{Pods: "0/2", Limit: "-", InFlight: "-", Overshoot: "-", Unused: "-", Latency: "-", Saturated: "-"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("status (-want +got):\n%s", diff)
	}
}

// A pool whose coordinator does not answer is distinguished from one without requests.
func TestAnUnreachableCoordinatorShowsInTheColumns(t *testing.T) {
	for name, s := range map[string]*poolScope{
		"of one pod": newPoolScope(reported(1, neverAnswered)),
		"of all": newPoolScope(reported(0, neverAnswered), reported(1, neverAnswered),
			measuring(func(f *poolaudit.Figures) { f.Limit, f.Granted, f.CutOff = 0, 0, 2 })),
	} {
		if got := poolStatusOf(s).Summary.Saturated; got != v1alpha1.UnreachableReason {
			t.Errorf("%s: saturated is %q, want Unreachable", name, got)
		}
	}
}

func TestTheLargestSharesAreShown(t *testing.T) {
	s := newPoolScope(func(s *poolScope) { s.observation.Sessions = nil })
	for i := range maxShares + 10 {
		name := fmt.Sprintf("pod-%02d", i)
		s.observation.Sessions = append(s.observation.Sessions, coordinator.PoolSession{
			Session: coordinator.Session{Pod: name, PodUID: name}, Report: &poolaudit.Report{Share: int64(i)},
		})
	}
	got := s.shares()
	if len(got) != maxShares || got[0].Share != maxShares+9 || got[maxShares-1].Share != 10 {
		t.Errorf("%d shares from %d to %d, want the %d largest", len(got), got[0].Share, got[len(got)-1].Share, maxShares)
	}
}

// A sidecar that restarted has one share, that of its later session.
func TestAPodHasOneShare(t *testing.T) {
	s := newPoolScope(func(s *poolScope) {
		again := s.observation.Sessions[0]
		again.Since, again.Report = now, &poolaudit.Report{Share: 7}
		s.observation.Sessions = append(s.observation.Sessions, again)
	})
	if got := s.shares(); len(got) != 2 || got[1].Share != 7 {
		t.Errorf("shares = %+v, want the later one of pod a", got)
	}
}

func TestWriteDelayOfAPool(t *testing.T) {
	every := figuresIntervalOf("uid")
	tests := map[string]struct {
		change func(*poolScope)
		since  time.Duration
		wait   time.Duration
		want   bool
	}{
		"nothing": {change: func(*poolScope) {}},
		"the time of the measurement": {
			change: func(s *poolScope) { s.now = s.now.Add(time.Minute) },
		},
		"the limit": {
			change: measuring(func(f *poolaudit.Figures) { f.Limit++ }), since: 5 * time.Second, wait: every - 5*time.Second, want: true,
		},
		"the limit, and it is time": {
			change: measuring(func(f *poolaudit.Figures) { f.Limit++ }), since: every, want: true,
		},
		"the limit reaches its end": {
			change: measuring(func(f *poolaudit.Figures) { f.Limit = 4000 }), wait: every, want: true,
		},
		"a pod less that acknowledged": {
			change: func(s *poolScope) { s.pods.enforcers = s.pods.enforcers[:1] }, wait: progressInterval, want: true,
		},
		"the holders": {
			change: measuring(func(f *poolaudit.Figures) { f.Holders++ }), since: time.Second, wait: settleInterval - time.Second, want: true,
		},
		"requests find no slot": {
			change: measuring(func(f *poolaudit.Figures) { f.Saturated = true }), want: true,
		},
		"the bound broke": {
			change: measuring(func(f *poolaudit.Figures) { f.Verdict = audit.Exceeded }), want: true,
		},
		"another generation": {
			change: func(s *poolScope) { s.pool.Generation = 5 }, want: true,
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			have := poolStatusOf(newPoolScope())
			s := newPoolScope(tc.change)
			s.pool.Status = have
			next := poolStatusOf(s)
			wait, changed := writeDelay(poolChangeOf(&have, &next), "uid", tc.since)
			if wait != tc.wait || changed != tc.want {
				t.Errorf("writeDelay is (%s, %v), want (%s, %v)", wait, changed, tc.wait, tc.want)
			}
		})
	}
}

func TestLatencyInShort(t *testing.T) {
	for d, want := range map[limiter.Micros]string{
		420: "420µs", 4_240: "4.2ms", 26_300: "26ms", 1_300_000: "1300ms", 12_400_000: "12s",
	} {
		if got := inShort(d); got != want {
			t.Errorf("inShort(%d) = %s, want %s", d, got, want)
		}
	}
}
