package hub

import (
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/weir-dev/weir/pkg/federation/ledger"
)

// secretOf is the Secret of a member as the hub makes it.
func secretOf(member string, annotations map[string]string) *corev1.Secret {
	return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{
		Namespace: "weir-system", Name: MemberPrefix + member, Labels: map[string]string{MemberLabel: member}, Annotations: annotations,
	}}
}

// retiring returns Credentials of a hub that has some Secrets and keeps one budget.
func retiring(now time.Time, members []string, secrets ...client.Object) (*Credentials, *clocktesting.FakeClock, *fakeBudgets) {
	clock, budgets := clocktesting.NewFakeClock(now), &fakeBudgets{budgets: map[string]ledger.Params{budgetID: params(100, members...)}}
	return NewCredentials(CredentialsConfig{
		Client: fake.NewClientBuilder().WithObjects(secrets...).Build(), Namespace: "weir-system", Self: "a", Budgets: budgets,
		Names: []string{"hub"}, Clock: clock,
	}), clock, budgets
}

func (c *Credentials) has(t *testing.T, member string) bool {
	t.Helper()
	err := c.config.Client.Get(t.Context(), types.NamespacedName{Namespace: "weir-system", Name: MemberPrefix + member}, &corev1.Secret{})
	if err != nil && !apierrors.IsNotFound(err) {
		t.Fatal(err)
	}
	return err == nil
}

// TestSecretsThatNobodyUsedAreDeleted a day after the last budget that named the member.
func TestSecretsThatNobodyUsedAreDeleted(t *testing.T) {
	unused := map[string]string{unusedAnnotation: "true"}
	others := secretOf("other", unused)
	others.Name = "another"
	c, clock, budgets := retiring(time.Unix(1_000_000, 0), []string{"a", "named"},
		secretOf("named", unused), secretOf("left", unused), secretOf("old", nil), secretOf("now", unused), others)
	look := func() {
		t.Helper()
		found, err := c.secrets(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if err := c.retire(t.Context(), found); err != nil {
			t.Fatal(err)
		}
	}
	expect := func(when string, want map[string]bool) {
		t.Helper()
		for member, there := range want {
			if c.has(t, member) != there {
				t.Errorf("%s the Secret of %s is there: %t, want %t", when, member, !there, there)
			}
		}
	}
	look()
	clock.Step(unusedLife - time.Second)
	c.used("now") // by a token that it still has
	look()
	expect("after almost a day", map[string]bool{"named": true, "left": true, "old": true, "now": true})
	clock.Step(time.Second)
	look()
	expect("after a day", map[string]bool{"named": true, "left": false, "old": true, "now": true})
	clock.Step(1000 * unusedLife)
	look()
	expect("after years", map[string]bool{"named": true, "old": true, "now": true})
	budgets.drop(budgetID)
	look()
	expect("at once", map[string]bool{"named": true})
	clock.Step(unusedLife)
	look()
	expect("a day later", map[string]bool{"named": false, "old": true, "now": true})
	if err := c.config.Client.Get(t.Context(), client.ObjectKeyFromObject(others), &corev1.Secret{}); err != nil {
		t.Errorf("a Secret of another name: %v", err)
	}
}

// TestSecretsThatNobodyUsedAreFew whatever budgets named and do not name any more.
func TestSecretsThatNobodyUsedAreFew(t *testing.T) {
	now := time.Unix(1_000_000, 0)
	var secrets []client.Object
	for i := range maxUnused + 10 {
		secrets = append(secrets, secretOf(fmt.Sprintf("m%d", i), map[string]string{
			unusedAnnotation: "true", unnamedAnnotation: now.Add(time.Duration(i) * time.Second).UTC().Format(time.RFC3339),
		}))
	}
	c, _, _ := retiring(now.Add(time.Hour), []string{"a"}, secrets...)
	if err := c.reconcile(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	found, err := c.secrets(t.Context())
	if err != nil || len(found) != maxUnused {
		t.Errorf("%d Secrets are left, %v; want %d", len(found), err, maxUnused)
	}
	if c.has(t, "m9") || !c.has(t, "m10") {
		t.Error("others are left than those that were named last")
	}
}

// TestAMemberThatConnectsHasUsedItsSecret for good.
func TestAMemberThatConnectsHasUsedItsSecret(t *testing.T) {
	w := newWorld(t).start(t)
	unused := func(member string) bool {
		s := &corev1.Secret{}
		if err := w.kube.Get(t.Context(), secretNamed(w, MemberPrefix+member), s); err != nil {
			t.Fatal(err)
		}
		return s.Annotations[unusedAnnotation] != ""
	}
	if !unused("b") || !unused("c") {
		t.Error("a Secret that was just made is taken for used")
	}
	p, _ := w.budgets.Budget(budgetID)
	if _, err := w.open(t, w.secret(t, "b")).Apply(t.Context(), budgetID, p, lease("b", 1, 5)); err != nil {
		t.Fatal(err)
	}
	w.reconcile(t)
	if unused("b") || !unused("c") {
		t.Errorf("unused are b: %t, c: %t, after b has connected", unused("b"), unused("c"))
	}
	w.budgets.drop(budgetID)
	w.reconcile(t)
	w.budgets.set(budgetID, p)
	w.reconcile(t)
	s := &corev1.Secret{}
	if err := w.kube.Get(t.Context(), secretNamed(w, MemberPrefix+"c"), s); err != nil || s.Annotations[unnamedAnnotation] != "" {
		t.Errorf("a member that is named again: %v, %v", s.Annotations, err)
	}
}
