package plugin

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/weir-dev/weir/api/v1alpha1"
)

// world creates the budget of a sample, as its hub sees it.
func world(t *testing.T) {
	t.Helper()
	var b v1alpha1.FederatedBudget
	sample(t, "federated-hub.yaml", "shop", &b)
	create(t, &b, func() {
		b.Status.Self = "eu-west"
		b.Status.Root = &v1alpha1.BudgetRoot{Member: "eu-west", State: v1alpha1.RootLeading}
		b.Status.Allocation = &v1alpha1.BudgetDivision{
			Window: metav1.NewMicroTime(measured.Time), Limit: 100000, Granted: 61000, Kept: 9000, Unallocated: 30000,
		}
		b.Status.Members = []v1alpha1.BudgetMemberStatus{
			{Name: "eu-west", State: v1alpha1.MemberConnected, Granted: ptr.To[int64](45000), Wanted: ptr.To[int64](45000), Used: ptr.To[int64](44210), LastSeenTime: &measured},
			{Name: "us-east", State: v1alpha1.MemberSilent, Granted: ptr.To[int64](16000), Wanted: ptr.To[int64](25000), Slice: ptr.To[int64](0), Used: ptr.To[int64](15800), LastSeenTime: &measured},
		}
		b.Status.Conditions = []metav1.Condition{
			{Type: v1alpha1.ConnectedCondition, Status: metav1.ConditionTrue, Reason: v1alpha1.ConnectedReason, LastTransitionTime: measured},
			{Type: v1alpha1.LearningCondition, Status: metav1.ConditionFalse, Reason: v1alpha1.LearnedReason, Message: "no", LastTransitionTime: measured},
		}
	})
}

// TestBudgetStatus compares the output of budget status with the page that documents it.
func TestBudgetStatus(t *testing.T) {
	createNamespace(t)
	world(t)
	tables, _ := run(t, "budget", "status", "-n", "shop", "checkout-world")
	documented(t, "kubectl weir budget status -n shop checkout-world", tables)
	if all, _ := run(t, "budget", "status", "-A"); all != tables {
		t.Errorf("budget status -A is\n%swant\n%s", all, tables)
	}
	text, _ := run(t, "budget", "status", "-n", "shop", "-o", "json")
	var list budgetList
	if err := json.Unmarshal([]byte(text), &list); err != nil || len(list.Items) != 1 {
		t.Fatalf("JSON is %s (%v)", text, err)
	}
	b := list.Items[0]
	if b.Limit != 100000 || b.Window != "1s" || *b.Granted != 61000 || *b.Kept != 9000 || *b.Unallocated != 30000 || b.Connected != metav1.ConditionTrue || b.Reason != "" || len(b.Members) != 2 {
		t.Errorf("it is %+v", b)
	}
	want := memberRow{Member: "us-east", State: v1alpha1.MemberSilent}
	m := b.Members[1]
	if m.Member != want.Member || m.State != want.State || m.Self || m.Hub || *m.Granted != 16000 || *m.Wanted != 25000 || *m.Slice != 0 || *m.Used != 15800 || !m.LastSeenTime.Equal(measured.Time) {
		t.Errorf("the member is %+v", m)
	}
	if stdout, stderr := run(t, "budget", "status", "-n", "default"); stdout != "" || !strings.Contains(stderr, "-A looks in all namespaces") {
		t.Errorf("budget status of nothing prints %q and %q", stdout, stderr)
	}
	for want, wrong := range map[string][]string{
		"choose another with -n": {"-n", "shop", "absent"},
		"in place of -A":         {"-A", "checkout-world"},
	} {
		if _, _, err := execute(t, append([]string{"budget", "status", "--kubeconfig", kubeconfig}, wrong...)...); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want one with %q", err, want)
		}
	}
}

// TestARowOfEachRate shows how its open window is divided.
func TestARowOfEachRate(t *testing.T) {
	var b v1alpha1.FederatedBudget
	sample(t, "federated-rates.yaml", "shop", &b)
	b.Status.Allocation = &v1alpha1.BudgetDivision{Limit: 100, Granted: 61, Kept: 9, Unallocated: 30}
	b.Status.AdditionalRates = []v1alpha1.BudgetRateStatus{{Rate: "10k/24h", Allocation: &v1alpha1.BudgetDivision{Limit: 10000, Granted: 700, Kept: 200, Unallocated: 9100}}}
	want := [][]string{
		{"shop", "plan-world", "100/1s", "", "", "Unknown", "61", "9", "30", ""},
		{"shop", "plan-world", "10k/24h", "", "", "Unknown", "700", "200", "9100", ""},
	}
	if diff := cmp.Diff(want, budgetList{Items: []budgetRow{budgetOf(&b)}}.cells()); diff != "" {
		t.Errorf("rows (-want +got):\n%s", diff)
	}
}

// TestBudgetsThatAreNotLinked have the reason, and members that are not known yet.
func TestBudgetsThatAreNotLinked(t *testing.T) {
	condition := func(kind string, status metav1.ConditionStatus) []metav1.Condition {
		return []metav1.Condition{{Type: kind, Status: status, Message: "because"}}
	}
	for name, tc := range map[string]struct {
		conditions []metav1.Condition
		connected  metav1.ConditionStatus
		reason     string
	}{
		"new":           {nil, metav1.ConditionUnknown, ""},
		"not accepted":  {condition(v1alpha1.AcceptedCondition, metav1.ConditionFalse), metav1.ConditionUnknown, "because"},
		"not connected": {condition(v1alpha1.ConnectedCondition, metav1.ConditionFalse), metav1.ConditionFalse, "because"},
		"learning":      {condition(v1alpha1.LearningCondition, metav1.ConditionTrue), metav1.ConditionUnknown, "because"},
		"connected":     {condition(v1alpha1.ConnectedCondition, metav1.ConditionTrue), metav1.ConditionTrue, ""},
	} {
		t.Run(name, func(t *testing.T) {
			b := &v1alpha1.FederatedBudget{}
			b.Spec.Members = []v1alpha1.BudgetMember{{Name: "eu-west", Nominal: 7}}
			b.Spec.Coordinator.Type = v1alpha1.RedisCoordinator
			b.Status.Root = &v1alpha1.BudgetRoot{State: v1alpha1.RootFollowing, Address: "redis:6379"}
			b.Status.Conditions = tc.conditions
			row := budgetOf(b)
			if row.Connected != tc.connected || row.Reason != tc.reason || row.Root != "Redis" || row.Address != "redis:6379" || row.State != v1alpha1.RootFollowing {
				t.Errorf("it is %+v", row)
			}
			if len(row.Members) != 1 || row.Members[0] != (memberRow{Member: "eu-west", Nominal: 7}) {
				t.Errorf("its members are %+v", row.Members)
			}
		})
	}
}

// TestRolesOfMembers are in one column.
func TestRolesOfMembers(t *testing.T) {
	seen := time.Time{}
	l := budgetList{Items: []budgetRow{{Budget: "b", Members: []memberRow{{Member: "x", Self: true}, {Member: "y", Hub: true, LastSeenTime: &seen}, {Member: "z"}}}}}
	var roles []string
	for _, cells := range l.members() {
		roles = append(roles, cells[2])
	}
	if got := strings.Join(roles, "|"); got != "self|hub|" {
		t.Errorf("roles are %s", got)
	}
}
