package controllers

import (
	"errors"
	"reflect"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/weir-dev/weir/api/v1alpha1"
	"github.com/weir-dev/weir/internal/controlplane/audit"
	"github.com/weir-dev/weir/internal/controlplane/audit/budgetaudit"
	"github.com/weir-dev/weir/internal/controlplane/audit/meter"
	"github.com/weir-dev/weir/internal/controlplane/audit/poolaudit"
	"github.com/weir-dev/weir/internal/controlplane/cutover"
	"github.com/weir-dev/weir/internal/testing/fieldtest"
	"github.com/weir-dev/weir/pkg/federation/ledger"
	"github.com/weir-dev/weir/pkg/limiter"
	"github.com/weir-dev/weir/pkg/policy"
)

func TestEveryFigureOfALimitIsShown(t *testing.T) {
	in := &audit.Figures{
		Verdict: audit.Measured, Flow: meter.Flow{AdmittedPerSecond: 1, RejectedPerSecond: 2, RequestsPerRoundTrip: 3}, ActiveKeys: 4,
		Overshoot: &audit.Overshoot{
			WindowEnd: now, Observed: 5, Bound: 6, Worst: 7, WorstEnd: now.Add(time.Second), AtLeast: true, Excess: 8,
		},
		UnderUtilization: &audit.UnderUtilization{Observed: 9, Worst: 10},
		Hottest:          []audit.HotKey{{KeyCount: audit.KeyCount{Hash: "h", Admitted: 11, Refused: 12}, AdmittedPerMinute: 15, RefusedPerMinute: 16}},
		Open:             &audit.OpenWindow{Began: now, Ends: now.Add(time.Minute), Limit: 14, Used: 13},
	}
	unbounded := *in
	unbounded.Overshoot = &audit.Overshoot{WindowEnd: now, Unbounded: true}
	fieldtest.Matter(t, []*audit.Figures{in, &unbounded}, func(f *audit.Figures) (any, error) {
		return limits(newScope(figures("all", *f))), nil
	},
		"Figures.Generation", "Figures.Verdict", "Figures.Vanished", "Overshoot.WorstUnbounded", // which conditions show
		"LimitStatus.Name", "LimitStatus.Rates", "LimitStatus.LearningUntil", // which are not of figures
		"HotKey.Shared",                                // which follows from the hash
		"HotKey.MeasuredAt", "WindowStatus.MeasuredAt") // which are now
}

func TestEveryFigureOfAPoolIsShown(t *testing.T) {
	in := &poolaudit.Figures{
		Limit: 1, Holders: 2, Granted: 3, InFlight: 4, Queued: 5, CutOff: 6, Baseline: 7, Latency: 8, AdmittedPerSecond: 9, RejectedPerSecond: 10, KeyMissingPerSecond: 19,
		Overshoot:        &poolaudit.Overshoot{Observed: 11, Worst: 12, WorstTime: now},
		UnderUtilization: &audit.UnderUtilization{Observed: 13, Worst: 14},
		Partitions:       []poolaudit.PartitionFigures{{Name: "gold", Guaranteed: 15, InFlight: 16, RejectedPerSecond: 17}},
	}
	other := *in
	other.Limit, other.Overshoot = 18, &poolaudit.Overshoot{WorstTime: now.Add(time.Second)}
	fieldtest.Matter(t, []*poolaudit.Figures{in, &other}, func(f *poolaudit.Figures) (any, error) {
		s := newPoolScope(enforcing(func(p *policy.Pool) {
			p.Partitions, p.Key = []policy.Partition{{Name: "gold"}}, &policy.PoolKey{OnMissing: policy.Reject}
		}))
		s.observation.Keys = f
		var status v1alpha1.ConcurrencyPoolStatus
		s.describe(*f, &status)
		status.Shares = nil // which are not of figures
		return status, nil
	},
		"Figures.Generation", "Figures.Verdict", "Figures.Pending", "Figures.Spared", "Figures.Saturated",
		"Figures.Measuring", "Figures.Quarantined", // which conditions and reasons show
		"ConcurrencyPoolStatus.ObservedGeneration", "ConcurrencyPoolStatus.Conditions", "ConcurrencyPoolStatus.Enforcement",
		"ConcurrencyPoolStatus.Summary", "ConcurrencyPoolStatus.Shares", // which are not of figures
		"ConcurrencyPoolStatus.MeasuredAt", // which is now
		"PoolLimitStatus.FixedBy",          // of the range: TestStatusOfAPool
		"PoolKeysStatus.SmallestShare",     // of reports: TestStatusOfALimitPerKey
		"Overshoot.Completeness", "Overshoot.Excess", "PartitionStatus.Name")
}

func TestEveryFigureOfAPodIsShown(t *testing.T) {
	in := &poolaudit.Report{Share: 1, InFlight: 2, Inferred: 3, Latency: 4, Fenced: true}
	shown := map[string]bool{"Share": true, "InFlight": true, "Inferred": true, "Latency": true, "Fenced": true}
	ignored := []string{"PodShare.Pod"}
	for _, f := range reflect.VisibleFields(reflect.TypeFor[poolaudit.Report]()) {
		if !shown[f.Name] {
			ignored = append(ignored, "Report."+f.Name) // which is summed over pods
		}
	}
	fieldtest.Matter(t, []*poolaudit.Report{in}, func(r *poolaudit.Report) (any, error) {
		s := newPoolScope()
		s.observation.Sessions = s.observation.Sessions[:1]
		s.observation.Sessions[0].Report = r
		return s.shares(), nil
	}, ignored...)
}

func TestEveryFigureOfABudgetIsShown(t *testing.T) {
	in := &budgetaudit.Figures{
		Overshoot:        &budgetaudit.Overshoot{WindowEnd: now, Observed: 1, Bound: 2, Worst: 3, WorstEnd: now.Add(time.Second)},
		UnderUtilization: &audit.UnderUtilization{Observed: 4, Worst: 5},
		LeasesPerSecond:  6, UnitsPerLease: 7,
		Window: &ledger.Closed{Usage: []ledger.MemberUsage{{Member: "us-east", Admitted: 8, Reported: true}}},
	}
	fieldtest.Matter(t, []*budgetaudit.Figures{in}, func(f *budgetaudit.Figures) (any, error) {
		s := newBudgetScope()
		s.observation.Figures = *f
		end, over, unused := s.measured()
		return []any{over, end, unused, coordination(f), s.used("us-east")}, nil
	},
		"Figures.Generation", "Figures.Verdict", "Figures.Silent", "Overshoot.WorstBound", // which conditions show
		"Closed.Index", "Closed.Limit", "Closed.Granted", "MemberUsage.Granted", "MemberUsage.Refused", "MemberUsage.Complete", // Δ and U are made of these
		"Overshoot.Completeness", "Overshoot.Excess") // which a budget does not have
}

func TestEveryFieldOfALedgerIsShown(t *testing.T) {
	in := &ledger.State{
		Window: limiter.Second, Index: now.Unix(), Term: 1, Limit: 100, Reserved: 100,
		Accounts: []ledger.Account{{Member: "us-east", Holder: "h", Seq: 1, Granted: 9}},
		Standings: []ledger.Standing{{
			Member: "us-east", Seen: limiter.Instant(now.UnixMicro()), Weight: 1, Demand: 14, Slice: 6,
		}},
	}
	fieldtest.Matter(t, []*ledger.State{in}, func(l *ledger.State) (any, error) {
		s := newBudgetScope()
		s.enforced.Params.Slices = true
		for i := range s.enforced.Params.Members {
			s.enforced.Params.Members[i].Nominal, s.enforced.Params.Members[i].Kept = 20, 10
		}
		s.observation.Read = limiter.Instant(now.UnixMicro())
		return []any{division(l, s.enforced.Params), s.members(l)}, nil
	},
		"State.Latest", "State.Before", "State.Reserved", "State.Closed", "State.Vouches", "Account.Holder", "Account.Seq",
		"Standing.Weight", "Standing.Tenants", "Standing.Before", "Standing.Next", "Standing.Told", // by which the coordinator divides
		"BudgetMemberStatus.Name", "BudgetMemberStatus.Used")
}

func TestTheStoreThatAStatusNames(t *testing.T) {
	redis := v1alpha1.Store{Type: v1alpha1.RedisStoreType, Redis: &v1alpha1.RedisStore{Address: "redis:6379"}}
	controller := v1alpha1.Store{Type: v1alpha1.ControllerStore}
	const old, begins = limiter.Instant(7e6), limiter.Instant(9e6)
	then, state := metav1.Time{Time: now.Add(-time.Minute)}, cutover.State{Since: now, Failed: 3}
	draining := state
	draining.Phase = cutover.Draining
	for name, tc := range map[string]struct {
		step cutover.Step
		have *v1alpha1.StoreStatus
		want v1alpha1.StoreStatus
	}{
		"it serves": {
			cutover.Step{State: state},
			nil,
			v1alpha1.StoreStatus{Active: controller, ServesFrom: servesFrom(old), Phase: v1alpha1.StoreServing, Since: &metav1.Time{Time: now}, Failed: 3},
		},
		"it goes on": {
			cutover.Step{State: state},
			&v1alpha1.StoreStatus{Phase: v1alpha1.StoreServing, Since: &then},
			v1alpha1.StoreStatus{Active: controller, ServesFrom: servesFrom(old), Phase: v1alpha1.StoreServing, Since: &then, Failed: 3},
		},
		"it waits": {
			cutover.Step{State: state, Message: "for a"},
			nil,
			v1alpha1.StoreStatus{Active: controller, ServesFrom: servesFrom(old), Phase: v1alpha1.StoreWaiting, Since: &metav1.Time{Time: now}, Failed: 3, Message: "for a"},
		},
		"it drains": {
			cutover.Step{State: draining},
			nil,
			v1alpha1.StoreStatus{Active: controller, ServesFrom: servesFrom(old), Phase: v1alpha1.StoreDraining, Since: &metav1.Time{Time: now}, Failed: 3},
		},
		"another takes over": {
			cutover.Step{State: state, Moved: true, At: begins},
			&v1alpha1.StoreStatus{Phase: v1alpha1.StoreServing, Since: &then},
			v1alpha1.StoreStatus{Active: redis, Access: v1alpha1.GatewayAccess, ServesFrom: servesFrom(begins), Phase: v1alpha1.StoreServing, Since: &metav1.Time{Time: now}, Failed: 3},
		},
		"it is named otherwise": {
			cutover.Step{State: state, Moved: true},
			nil,
			v1alpha1.StoreStatus{Active: redis, Access: v1alpha1.GatewayAccess, ServesFrom: servesFrom(old), Phase: v1alpha1.StoreServing, Since: &metav1.Time{Time: now}, Failed: 3},
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := newScope()
			s.policy.Spec.Store.Store, s.policy.Status.Store = redis, tc.have
			s.policy.Spec.Store.Access = v1alpha1.GatewayAccess
			s.move = move{serving: controller, from: old, step: tc.step}
			if diff := cmp.Diff(&tc.want, storeStatus(s)); diff != "" {
				t.Errorf("status (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(&tc.want, statusOf(s).Store); diff != "" {
				t.Errorf("status of the policy (-want +got):\n%s", diff)
			}
		})
	}
}

// TestAStoreIsLeftAsItWasReached: its status says so until another one serves.
func TestAStoreIsLeftAsItWasReached(t *testing.T) {
	redis := v1alpha1.Store{Type: v1alpha1.RedisStoreType, Redis: &v1alpha1.RedisStore{Address: "redis:6379"}}
	for _, moved := range []bool{false, true} {
		s := newScope()
		s.policy.Spec.Store.Store, s.policy.Spec.Store.Access = v1alpha1.Store{Type: v1alpha1.ControllerStore}, v1alpha1.DirectAccess
		s.policy.Status.Store = &v1alpha1.StoreStatus{Active: redis, Access: v1alpha1.GatewayAccess}
		s.move = move{serving: redis, step: cutover.Step{State: cutover.State{Phase: cutover.Draining}, Moved: moved}}
		if got := storeStatus(s); (got.Access == v1alpha1.GatewayAccess) == moved {
			t.Errorf("moved: %t, the access is %q", moved, got.Access)
		}
	}
}

// TestAPolicyThatIsNotAcceptedForgetsNothing about the store that serves and the reset
// that began.
func TestAPolicyThatIsNotAcceptedForgetsNothing(t *testing.T) {
	s := newScope(func(s *scope) { s.invalid = errors.New("no") })
	s.policy.Status.Store, s.policy.Status.Reset = &v1alpha1.StoreStatus{Failed: 1}, &v1alpha1.ResetStatus{Request: "r"}
	if got := statusOf(s); got.Store != s.policy.Status.Store || got.Reset != s.policy.Status.Reset || got.LastObservationTime != nil {
		t.Errorf("status %+v", got)
	}
}

func TestFiguresAreOfNow(t *testing.T) {
	f := audit.Figures{Verdict: audit.Measured, Hottest: []audit.HotKey{{KeyCount: audit.KeyCount{Hash: "h"}}}, Open: &audit.OpenWindow{Began: now, Ends: now}}
	got := statusOf(newScope(figures("all", f)))
	if want := now.Truncate(time.Second); !got.LastObservationTime.Time.Equal(want) ||
		!got.Limits[0].HottestKeys[0].MeasuredAt.Time.Equal(want) || !got.Limits[0].Window.MeasuredAt.Time.Equal(want) {
		t.Errorf("status %+v", got)
	}
}
