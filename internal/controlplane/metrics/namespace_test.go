package metrics

import (
	"fmt"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus/testutil"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/weir-dev/weir/api/v1alpha1"
)

// TestPoliciesOfANamespaceAreSentTogether: flows and pods add up, Δ is that of the worst
// policy, and what says nothing of more than one policy is left out.
func TestPoliciesOfANamespaceAreSentTogether(t *testing.T) {
	worse := measured("cart")
	worse.Status.Conditions[0].Status = metav1.ConditionFalse
	worse.Status.Limits[0].Overshoot = &v1alpha1.Overshoot{Observed: new(int64(9)), Bound: new(int64(2)), Worst: new(int64(10))}
	apart := measured("checkout")
	apart.Namespace = "depot"
	const want = `# HELP weir_admitted_per_second Units that the fleet admits in a second.
# TYPE weir_admitted_per_second gauge
weir_admitted_per_second{limit="",namespace="depot",policy=""} 90
weir_admitted_per_second{limit="",namespace="shop",policy=""} 270
# HELP weir_condition 1, for the status that a condition of an object has: True, False or Unknown. The other two are absent.
# TYPE weir_condition gauge
weir_condition{condition="Programmed",kind="RateLimitPolicy",name="",namespace="depot",status="True"} 1
weir_condition{condition="Programmed",kind="RateLimitPolicy",name="",namespace="shop",status="False"} 1
weir_condition{condition="Programmed",kind="RateLimitPolicy",name="",namespace="shop",status="True"} 2
# HELP weir_enforcers Pods that enforce the present generation of the policy.
# TYPE weir_enforcers gauge
weir_enforcers{namespace="depot",policy=""} 2
weir_enforcers{namespace="shop",policy=""} 6
# HELP weir_generation Generation of an object's spec, which rises with each edit.
# TYPE weir_generation gauge
weir_generation{kind="RateLimitPolicy",name="",namespace="depot"} 2
weir_generation{kind="RateLimitPolicy",name="",namespace="shop"} 6
# HELP weir_overshoot Units admitted beyond the limit in the window measured last.
# TYPE weir_overshoot gauge
weir_overshoot{limit="",namespace="depot",policy=""} 1
weir_overshoot{limit="",namespace="shop",policy=""} 9
# HELP weir_overshoot_bound Units that the configuration allows beyond the limit in one window; absent while nothing bounds them.
# TYPE weir_overshoot_bound gauge
weir_overshoot_bound{limit="",namespace="depot",policy=""} 4
weir_overshoot_bound{limit="",namespace="shop",policy=""} 4
`
	o := &Objects{Cache: cache(t, measured("a"), measured("b"), worse, apart), Leads: yes, Namespaces: true}
	err := testutil.GatherAndCompare(registry(o), strings.NewReader(want),
		"weir_admitted_per_second", "weir_condition", "weir_enforcers", "weir_generation", "weir_overshoot", "weir_overshoot_bound", "weir_limit_window_used")
	if err != nil {
		t.Error(err)
	}
}

// TestSeriesOfNamespacesDoNotGrowWithPolicies: pools and budgets keep theirs.
func TestSeriesOfNamespacesDoNotGrowWithPolicies(t *testing.T) {
	count := func(policies int) int {
		all := []client.Object{&v1alpha1.ConcurrencyPool{
			ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "backend"},
			Status:     v1alpha1.ConcurrencyPoolStatus{InFlight: new(int64(3))},
		}}
		for i := range policies {
			all = append(all, measured(fmt.Sprint("p", i)))
		}
		r := registry(&Objects{Cache: cache(t, all...), Leads: yes, Namespaces: true})
		if n, err := testutil.GatherAndCount(r, "weir_fleet_pool_in_flight"); err != nil || n != 1 {
			t.Fatalf("%d series of the pool, %v", n, err)
		}
		n, err := testutil.GatherAndCount(r)
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	if one, many := count(1), count(50); one != many {
		t.Errorf("%d series of one policy became %d of 50", one, many)
	}
}
