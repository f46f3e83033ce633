package plugin

import (
	"bufio"
	"context"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"

	"github.com/weir-dev/weir/api/v1alpha1"
)

// credentialsOf creates the Secret that a hub makes for a member.
func credentialsOf(t *testing.T, member string, entries ...string) {
	t.Helper()
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "weir-system"}}
	if err := server.Create(t.Context(), ns); err != nil && !apierrors.IsAlreadyExists(err) {
		t.Fatal(err)
	}
	s := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "weir-system", Name: memberSecret + member, Labels: map[string]string{"of": "hub"}}, Data: map[string][]byte{}}
	for _, entry := range entries {
		s.Data[entry] = []byte("the " + entry)
	}
	if err := server.Create(t.Context(), s); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := server.Delete(context.Background(), s); err != nil {
			t.Error(err)
		}
	})
}

// TestBudgetJoin: the output is what docs/federation.md has the member's administrator apply.
func TestBudgetJoin(t *testing.T) {
	createNamespace(t)
	world(t)
	credentialsOf(t, "us-east", credentials...)
	text, stderr := run(t, "budget", "join", "-n", "shop", "checkout-world", "--member", "us-east", "--endpoint", "weir-hub.example.com:15040")
	if !strings.Contains(stderr, "The output has credentials") {
		t.Errorf("it warns %q", stderr)
	}
	var secret corev1.Secret
	var binding rbacv1.RoleBinding
	var budget v1alpha1.FederatedBudget
	documents := utilyaml.NewYAMLReader(bufio.NewReader(strings.NewReader(text)))
	for _, into := range []any{&secret, &binding, &budget} {
		document, err := documents.Read()
		if err != nil {
			t.Fatal(err)
		}
		if err := yaml.UnmarshalStrict(document, into); err != nil {
			t.Fatalf("%v\n%s", err, document)
		}
	}
	if secret.Namespace != "shop" || secret.Name != "weir-hub" || len(secret.Data) != 4 || string(secret.Data["token"]) != "the token" || len(secret.Labels) > 0 {
		t.Errorf("the Secret is %+v", secret)
	}
	if binding.Namespace != "shop" || binding.RoleRef.Name != "weir-hub-credentials" || len(binding.Subjects) != 1 || binding.Subjects[0].Namespace != "weir-system" || binding.Subjects[0].Name != "weir-controller" {
		t.Errorf("the RoleBinding is %+v", binding)
	}
	// A member applies what the sample of one has.
	var want v1alpha1.FederatedBudget
	sample(t, "federated-member.yaml", "shop", &want)
	if budget.Spec.Hub == nil || *budget.Spec.Hub != *want.Spec.Hub || budget.Spec.ID != want.Spec.ID || budget.Spec.Rate != want.Spec.Rate || len(budget.Spec.Members) != 2 || strings.Contains(text, "status:") {
		t.Errorf("the budget is %+v", budget)
	}
	if _, _, err := offline(t, "-f", fileOf(t, text[strings.LastIndex(text, "---\n"):])); err != nil {
		t.Errorf("the budget is not valid: %v", err)
	}
}

func TestBudgetJoinNamesTheCure(t *testing.T) {
	createNamespace(t)
	world(t)
	credentialsOf(t, "us-east", "ca.crt", "tls.crt", "tls.key")
	var member, redis v1alpha1.FederatedBudget
	sample(t, "federated-member.yaml", "shop", &member)
	member.Name, member.Spec.ID = "member", "shop/member"
	create(t, &member, func() {})
	sample(t, "federated-redis.yaml", "shop", &redis)
	create(t, &redis, func() {})
	for want, args := range map[string][]string{
		"use one of spec.members (eu-west, us-east)": {"checkout-world", "--member", "ap-south"},
		"which is this cluster":                      {"checkout-world", "--member", "eu-west"},
		"has no token yet":                           {"checkout-world", "--member", "us-east"},
		"the hub of member is another cluster":       {"member", "--member", "us-east"},
		"has no hub":                                 {redis.Name, "--member", "us-east"},
		"with --system-namespace":                    {"checkout-world", "--member", "us-east", "--system-namespace", "absent"},
		`required flag(s) "member"`:                  {"checkout-world"},
		`--endpoint is "hub": use host:port`:         {"checkout-world", "--member", "us-east", "--endpoint", "hub"},
	} {
		all := append([]string{"budget", "join", "-n", "shop", "--endpoint", "hub:15040", "--kubeconfig", kubeconfig}, args...)
		if out, _, err := execute(t, all...); err == nil || !strings.Contains(err.Error(), want) || out != "" {
			t.Errorf("error %v, want one with %q; it printed %q", err, want, out)
		}
	}
}
