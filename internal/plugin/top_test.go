package plugin

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/weir-dev/weir/api/v1alpha1"
	"github.com/weir-dev/weir/pkg/policy"
	"github.com/weir-dev/weir/pkg/store"
)

var measured = metav1.NewTime(time.Date(2026, 11, 27, 9, 0, 0, 0, time.UTC))

func hotKey(value string, admitted, refused int64) v1alpha1.HotKey {
	return v1alpha1.HotKey{
		Hash: store.HashValue(value), Admitted: admitted * 60, Refused: refused * 60,
		AdmittedPerMinute: &admitted, RefusedPerMinute: &refused, MeasuredAt: measured,
	}
}

// hot creates a policy of the sample overrides whose status has keys.
func hot(t *testing.T) {
	t.Helper()
	var p v1alpha1.RateLimitPolicy
	sample(t, "overrides.yaml", "shop", &p)
	missing := hotKey(policy.MissingValue(), 20, 0)
	missing.Shared = true
	old := hotKey("old", 1, 1)
	old.AdmittedPerMinute, old.RefusedPerMinute = nil, nil
	create(t, &p, func() {
		p.Status.Limits = []v1alpha1.LimitStatus{{Name: "per-tenant", HottestKeys: []v1alpha1.HotKey{
			hotKey("acme", 5800, 900), hotKey("gold", 9200, 0), missing, old,
		}}}
	})
}

// TestTop compares the output of top with the page that documents it.
func TestTop(t *testing.T) {
	createNamespace(t)
	hot(t)
	args := []string{"top", "-n", "shop", "overrides", "--value", "acme"}
	table, _ := run(t, args...)
	documented(t, "kubectl weir top -n shop overrides --value acme", table)
	if all, _ := run(t, "top", "-A", "--value", "acme"); all != table {
		t.Errorf("top -A is\n%swant\n%s", all, table)
	}
	text, _ := run(t, append(args, "-o", "json")...)
	var list topList
	if err := json.Unmarshal([]byte(text), &list); err != nil || len(list.Items) != 4 {
		t.Fatalf("JSON is %s (%v)", text, err)
	}
	first, last := list.Items[0], list.Items[3]
	if first.Value != "gold" || ptr.Deref(first.AdmittedPerMinute, 0) != 9200 || ptr.Deref(first.RefusedPerMinute, 1) != 0 || first.Admitted != 552000 || !first.MeasuredAt.Equal(measured.Time) {
		t.Errorf("the first row is %+v", first)
	}
	if last.AdmittedPerMinute != nil || last.Refused != 60 || last.Value != "" {
		t.Errorf("the last row is %+v", last)
	}
	if stdout, stderr := run(t, "top", "-n", "default"); stdout != "" || !strings.Contains(stderr, "-A looks in all namespaces") {
		t.Errorf("top of nothing prints %q and %q", stdout, stderr)
	}
	for want, wrong := range map[string][]string{
		"choose another with -n": {"top", "-n", "shop", "absent"},
		"in place of -A":         {"top", "-A", "overrides"},
	} {
		if _, _, err := execute(t, append(wrong, "--kubeconfig", kubeconfig)...); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want one with %q", err, want)
		}
	}
}

// TestTopNamesValuesOfABudgetsKey: the limit has none, so its key is read from the budget.
func TestTopNamesValuesOfABudgetsKey(t *testing.T) {
	createNamespace(t)
	var b v1alpha1.FederatedBudget
	sample(t, "federated-users.yaml", "shop", &b)
	b.Spec.Key.Parts = []v1alpha1.KeyPart{{Type: v1alpha1.HeaderPart, Header: &v1alpha1.HeaderKey{Name: "x-user"}}}
	create(t, &b, func() {})
	var p v1alpha1.RateLimitPolicy
	sample(t, "federated-policy.yaml", "shop", &p)
	p.Spec.Limits = []v1alpha1.Limit{{Name: "per-user", Scope: v1alpha1.FederatedScope, BudgetRef: &v1alpha1.BudgetReference{Name: b.Name}}}
	create(t, &p, func() {
		p.Status.Limits = []v1alpha1.LimitStatus{{Name: "per-user", HottestKeys: []v1alpha1.HotKey{hotKey("alice", 20, 0), hotKey("bob", 10, 0)}}}
	})
	text, _ := run(t, "top", "-n", "shop", p.Name, "--value", "alice", "--value", "a,b", "-o", "json")
	var list topList
	if err := json.Unmarshal([]byte(text), &list); err != nil || len(list.Items) != 2 {
		t.Fatalf("JSON is %s (%v)", text, err)
	}
	if list.Items[0].Value != "alice" || list.Items[1].Value != "" {
		t.Errorf("the rows are %+v, want that the first is named alice", list.Items)
	}
}
