package metrics

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/weir-dev/weir/api/v1alpha1"
)

func yes() bool { return true }

func cache(t *testing.T, objects ...client.Object) client.Reader {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	return fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).Build()
}

func registry(o *Objects) *prometheus.Registry {
	r := prometheus.NewPedanticRegistry()
	r.MustRegister(o)
	return r
}

func measured(name string) *v1alpha1.RateLimitPolicy {
	return &v1alpha1.RateLimitPolicy{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name, Generation: 2},
		Status: v1alpha1.RateLimitPolicyStatus{
			ObservedGeneration: 2,
			Conditions:         []metav1.Condition{{Type: v1alpha1.ProgrammedCondition, Status: metav1.ConditionTrue}},
			Enforcement:        &v1alpha1.Enforcement{Desired: 3, Current: 2},
			Limits: []v1alpha1.LimitStatus{
				{
					Name: "all", AdmittedPerSecond: new(int64(90)), RejectedPerSecond: new(int64(0)),
					Overshoot:        &v1alpha1.Overshoot{Observed: new(int64(1)), Bound: new(int64(4)), Worst: new(int64(3))},
					UnderUtilization: &v1alpha1.UnderUtilization{ObservedBasisPoints: new(int32(125))},
					Window:           &v1alpha1.WindowStatus{Used: 812, Limit: 1000, Remaining: 188, ResetsAt: metav1.NewMicroTime(time.UnixMicro(1_700_000_000_500_000))},
					LearningUntil:    &metav1.Time{Time: time.Unix(1_700_000_600, 0)},
				},
				{Name: "unmeasured"},
				{Name: "unbounded", Overshoot: &v1alpha1.Overshoot{Worst: new(int64(0))}},
			},
		},
	}
}

// TestUnknownFiguresAreAbsent: of the limits two have no figures, and none reads as 0.
func TestUnknownFiguresAreAbsent(t *testing.T) {
	const want = `# HELP weir_condition 1, for the status that a condition of an object has: True, False or Unknown. The other two are absent.
# TYPE weir_condition gauge
weir_condition{condition="Programmed",kind="RateLimitPolicy",name="checkout",namespace="shop",status="True"} 1
# HELP weir_admitted_per_second Units that the fleet admits in a second.
# TYPE weir_admitted_per_second gauge
weir_admitted_per_second{limit="all",namespace="shop",policy="checkout"} 90
# HELP weir_enforcers Pods that enforce the present generation of the policy.
# TYPE weir_enforcers gauge
weir_enforcers{namespace="shop",policy="checkout"} 2
# HELP weir_enforcers_desired Running pods that the policy selects.
# TYPE weir_enforcers_desired gauge
weir_enforcers_desired{namespace="shop",policy="checkout"} 3
# HELP weir_generation Generation of an object's spec, which rises with each edit.
# TYPE weir_generation gauge
weir_generation{kind="RateLimitPolicy",name="checkout",namespace="shop"} 2
# HELP weir_leader 1 on the controller that leads, 0 on the others.
# TYPE weir_leader gauge
weir_leader 1
# HELP weir_limit_learning_until_timestamp_seconds When the limit grants again, in seconds since 1970, while its store grants nothing because it may have forgotten what it granted.
# TYPE weir_limit_learning_until_timestamp_seconds gauge
weir_limit_learning_until_timestamp_seconds{limit="all",namespace="shop",policy="checkout"} 1.7000006e+09
# HELP weir_limit_window_limit Limit of the open window.
# TYPE weir_limit_window_limit gauge
weir_limit_window_limit{limit="all",namespace="shop",policy="checkout"} 1000
# HELP weir_limit_window_resets_timestamp_seconds End of the open window, in seconds since 1970 on the store's clock.
# TYPE weir_limit_window_resets_timestamp_seconds gauge
weir_limit_window_resets_timestamp_seconds{limit="all",namespace="shop",policy="checkout"} 1.7000000005e+09
# HELP weir_limit_window_used Units that the fleet admitted in the open window so far; absent for a limit with a key.
# TYPE weir_limit_window_used gauge
weir_limit_window_used{limit="all",namespace="shop",policy="checkout"} 812
# HELP weir_overshoot Units admitted beyond the limit in the window measured last.
# TYPE weir_overshoot gauge
weir_overshoot{limit="all",namespace="shop",policy="checkout"} 1
# HELP weir_overshoot_bound Units that the configuration allows beyond the limit in one window; absent while nothing bounds them.
# TYPE weir_overshoot_bound gauge
weir_overshoot_bound{limit="all",namespace="shop",policy="checkout"} 4
# HELP weir_overshoot_worst The most units admitted beyond the limit in one window since the policy changed.
# TYPE weir_overshoot_worst gauge
weir_overshoot_worst{limit="all",namespace="shop",policy="checkout"} 3
weir_overshoot_worst{limit="unbounded",namespace="shop",policy="checkout"} 0
# HELP weir_rejected_per_second Units that the fleet refuses in a second or, in mode Shadow, would refuse.
# TYPE weir_rejected_per_second gauge
weir_rejected_per_second{limit="all",namespace="shop",policy="checkout"} 0
# HELP weir_underutilization_ratio Part of the limit that was left while requests were refused, in the window measured last.
# TYPE weir_underutilization_ratio gauge
weir_underutilization_ratio{limit="all",namespace="shop",policy="checkout"} 0.0125
`
	r := registry(&Objects{Cache: cache(t, measured("checkout")), Leads: yes})
	if err := testutil.GatherAndCompare(r, strings.NewReader(want)); err != nil {
		t.Error(err)
	}
	if problems, err := testutil.GatherAndLint(r); err != nil || len(problems) > 0 {
		t.Errorf("%v, %v", problems, err)
	}
}

// TestAnOldStatusHasNoFigures: what was measured of another generation is not known of
// this one.
func TestAnOldStatusHasNoFigures(t *testing.T) {
	old := measured("checkout")
	old.Generation++
	r := registry(&Objects{Cache: cache(t, old), Leads: yes})
	if n, err := testutil.GatherAndCount(r, "weir_enforcers", "weir_overshoot", "weir_overshoot_bound"); err != nil || n != 0 {
		t.Errorf("%d figures, %v", n, err)
	}
}

func TestPoolsAndBudgets(t *testing.T) {
	pool := &v1alpha1.ConcurrencyPool{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "backend", Generation: 1},
		Status: v1alpha1.ConcurrencyPoolStatus{
			ObservedGeneration: 1,
			Conditions:         []metav1.Condition{{Type: v1alpha1.SaturatedCondition, Status: metav1.ConditionUnknown}},
			Limit:              &v1alpha1.PoolLimitStatus{Current: 40}, InFlight: new(int64(39)), Fenced: new(int32(0)),
			Overshoot: &v1alpha1.Overshoot{Observed: new(int64(2))},
		},
	}
	budget := &v1alpha1.FederatedBudget{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "world", Generation: 1},
		Status: v1alpha1.FederatedBudgetStatus{
			ObservedGeneration: 1,
			Allocation:         &v1alpha1.BudgetDivision{Limit: 1000, Granted: 700, Kept: 100, Unallocated: 200},
			AdditionalRates: []v1alpha1.BudgetRateStatus{{
				Rate: "10k/24h", Allocation: &v1alpha1.BudgetDivision{Limit: 10000, Granted: 4000},
				Overshoot: &v1alpha1.Overshoot{Observed: new(int64(1)), Bound: new(int64(2))}, UnderUtilization: &v1alpha1.UnderUtilization{ObservedBasisPoints: new(int32(2500))},
			}},
			Members: []v1alpha1.BudgetMemberStatus{
				{Name: "eu", State: v1alpha1.MemberConnected, Used: new(int64(650))},
				{Name: "us", State: v1alpha1.MemberNever},
			},
		},
	}
	const want = `# HELP weir_budget_limit Units of the open window.
# TYPE weir_budget_limit gauge
weir_budget_limit{budget="world",namespace="shop"} 1000
# HELP weir_budget_member_connected 1 while the coordinator has heard of the member lately; one without requests falls silent, too.
# TYPE weir_budget_member_connected gauge
weir_budget_member_connected{budget="world",member="eu",namespace="shop"} 1
weir_budget_member_connected{budget="world",member="us",namespace="shop"} 0
# HELP weir_budget_member_used Units that the member admitted in the window measured last.
# TYPE weir_budget_member_used gauge
weir_budget_member_used{budget="world",member="eu",namespace="shop"} 650
# HELP weir_budget_rate_granted Units of the open window of an additional rate that members were granted and did not give back.
# TYPE weir_budget_rate_granted gauge
weir_budget_rate_granted{budget="world",namespace="shop",rate="10k/24h"} 4000
# HELP weir_budget_rate_limit Units of the open window of an additional rate.
# TYPE weir_budget_rate_limit gauge
weir_budget_rate_limit{budget="world",namespace="shop",rate="10k/24h"} 10000
# HELP weir_budget_rate_overshoot Units that all clusters admitted beyond the limit of an additional rate in its window measured last.
# TYPE weir_budget_rate_overshoot gauge
weir_budget_rate_overshoot{budget="world",namespace="shop",rate="10k/24h"} 1
# HELP weir_budget_rate_overshoot_bound Units that the configuration allows beyond the limit of an additional rate in one window.
# TYPE weir_budget_rate_overshoot_bound gauge
weir_budget_rate_overshoot_bound{budget="world",namespace="shop",rate="10k/24h"} 2
# HELP weir_budget_rate_underutilization_ratio Part of the limit of an additional rate that was left while requests were refused in some cluster, in its window measured last.
# TYPE weir_budget_rate_underutilization_ratio gauge
weir_budget_rate_underutilization_ratio{budget="world",namespace="shop",rate="10k/24h"} 0.25
# HELP weir_fleet_pool_fenced Pods that refuse everything because they have no share.
# TYPE weir_fleet_pool_fenced gauge
weir_fleet_pool_fenced{namespace="shop",pool="backend"} 0
# HELP weir_fleet_pool_limit Requests that the pods may have in flight together.
# TYPE weir_fleet_pool_limit gauge
weir_fleet_pool_limit{namespace="shop",pool="backend"} 40
# HELP weir_fleet_pool_overshoot Requests in flight beyond the limit, the most that was measured lately.
# TYPE weir_fleet_pool_overshoot gauge
weir_fleet_pool_overshoot{namespace="shop",pool="backend"} 2
# HELP weir_generation Generation of an object's spec, which rises with each edit.
# TYPE weir_generation gauge
weir_generation{kind="ConcurrencyPool",name="backend",namespace="shop"} 1
weir_generation{kind="FederatedBudget",name="world",namespace="shop"} 1
`
	r := registry(&Objects{Cache: cache(t, pool, budget), Leads: yes})
	if err := testutil.GatherAndCompare(r, strings.NewReader(want), "weir_budget_limit", "weir_budget_member_connected", "weir_budget_member_used",
		"weir_budget_rate_granted", "weir_budget_rate_limit", "weir_budget_rate_overshoot", "weir_budget_rate_overshoot_bound", "weir_budget_rate_underutilization_ratio",
		"weir_fleet_pool_fenced", "weir_fleet_pool_limit", "weir_fleet_pool_overshoot", "weir_fleet_pool_overshoot_bound", "weir_fleet_pool_queued", "weir_generation"); err != nil {
		t.Error(err)
	}
}

// TestOnlyTheLeaderMeasures: another replica reads the same status and reports nothing of
// it.
func TestOnlyTheLeaderMeasures(t *testing.T) {
	r := registry(&Objects{Cache: cache(t, measured("checkout")), Leads: func() bool { return false }})
	const want = `# HELP weir_leader 1 on the controller that leads, 0 on the others.
# TYPE weir_leader gauge
weir_leader 0
`
	if err := testutil.GatherAndCompare(r, strings.NewReader(want)); err != nil {
		t.Error(err)
	}
}

// TestSeriesGrowWithObjectsAlone: a keyed limit that saw more keys has no more series.
func TestSeriesGrowWithObjectsAlone(t *testing.T) {
	count := func(keys, objects int) int {
		var all []client.Object
		for i := range objects {
			p := measured(fmt.Sprint("p", i))
			for j := range keys {
				p.Status.Limits[0].HottestKeys = append(p.Status.Limits[0].HottestKeys, v1alpha1.HotKey{Hash: fmt.Sprint(j)})
			}
			all = append(all, p)
		}
		n, err := testutil.GatherAndCount(registry(&Objects{Cache: cache(t, all...), Leads: yes}))
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	if few, many := count(1, 2), count(10, 2); few != many {
		t.Errorf("%d series became %d with more keys", few, many)
	}
	if first, second := count(1, 1), count(1, 2); second-1 != 2*(first-1) { // weir_leader is of the process
		t.Errorf("one policy has %d series and two have %d", first, second)
	}
}

type broken struct{ client.Reader }

func (broken) List(context.Context, client.ObjectList, ...client.ListOption) error {
	return errors.New("the cache is closed")
}

// TestAnUnreadableCacheFailsTheScrape: no figures would look like no policies.
func TestAnUnreadableCacheFailsTheScrape(t *testing.T) {
	if _, err := registry(&Objects{Cache: broken{}, Leads: yes}).Gather(); err == nil || !strings.Contains(err.Error(), "the cache is closed") {
		t.Errorf("error %v, want that of the cache", err)
	}
}
