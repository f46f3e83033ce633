package v1alpha1_test

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	weirv1alpha1 "github.com/weir-dev/weir/api/v1alpha1"
)

// as returns a client of that user, who has those rights on policies.
func as(t *testing.T, user string, verbs ...string) client.Client {
	t.Helper()
	role := &rbacv1.ClusterRole{Rules: []rbacv1.PolicyRule{{APIGroups: []string{"weir.dev"}, Resources: []string{"ratelimitpolicies"}, Verbs: verbs}}}
	role.Name = user
	binding := &rbacv1.ClusterRoleBinding{
		RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: user},
		Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: user}},
	}
	binding.Name = user
	for _, o := range []client.Object{asUnstructured(t, "rbac.authorization.k8s.io/v1", "ClusterRole", role), asUnstructured(t, "rbac.authorization.k8s.io/v1", "ClusterRoleBinding", binding)} {
		if err := server.Create(t.Context(), o); err != nil {
			t.Fatal(err)
		}
	}
	config := rest.CopyConfig(serverConfig)
	config.Impersonate = rest.ImpersonationConfig{UserName: user}
	c, err := client.New(config, client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func asUnstructured(t *testing.T, version, kind string, object any) *unstructured.Unstructured {
	t.Helper()
	text, err := yaml.Marshal(object)
	if err != nil {
		t.Fatal(err)
	}
	out := &unstructured.Unstructured{}
	if err := yaml.Unmarshal(text, &out.Object); err != nil {
		t.Fatal(err)
	}
	out.SetAPIVersion(version)
	out.SetKind(kind)
	return out
}

// TestAResetTakesAVerbOfItsOwn: an editor of policies may do all else with them.
func TestAResetTakesAVerbOfItsOwn(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("..", "..", "config", "webhook", "reset.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	for document := range bytes.SplitSeq(text, []byte("\n---\n")) {
		o := &unstructured.Unstructured{}
		if err := yaml.Unmarshal(document, &o.Object); err != nil {
			t.Fatal(err)
		}
		if err := server.Create(t.Context(), o); err != nil {
			t.Fatal(err)
		}
	}
	editor := as(t, "editor", "create", "get", "update", "patch", "delete")
	resetter := as(t, "resetter", "get", "update", "patch", "reset")

	policy := newPolicy(t, withSpec(``))
	if err := server.Create(t.Context(), policy); err != nil {
		t.Fatal(err)
	}
	annotate := func(c client.Client, request string, options ...client.PatchOption) error {
		before := policy.DeepCopy()
		annotations := map[string]string{"other": time.Now().String()}
		if request != "" {
			annotations[weirv1alpha1.ResetAnnotation] = request
		}
		policy.SetAnnotations(annotations)
		err := c.Patch(t.Context(), policy, client.MergeFrom(before), options...)
		if err != nil {
			policy = before
		}
		return err
	}
	// The server takes a moment to know the rule and the roles.
	for deadline := time.Now().Add(30 * time.Second); ; time.Sleep(100 * time.Millisecond) {
		ruled := apierrors.IsForbidden(annotate(editor, "all@0", client.DryRunAll))
		if ruled && annotate(resetter, "all@0", client.DryRunAll) == nil {
			break
		}
		policy.SetAnnotations(nil)
		if time.Now().After(deadline) {
			t.Fatal("an editor without the verb reset was not refused within 30 s")
		}
	}
	policy.SetAnnotations(nil)

	if err := annotate(resetter, "all@1"); err != nil {
		t.Errorf("who may reset is refused: %v", err)
	}
	if err := annotate(editor, "all@1"); err != nil {
		t.Errorf("an edit that leaves the request alone is refused: %v", err)
	}
	if err := annotate(editor, "all@2"); !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), "weir-policy-resetter") {
		t.Errorf("another request by an editor: %v, want it forbidden, with the cure", err)
	}
	if err := annotate(editor, ""); err != nil {
		t.Errorf("removing the request is refused: %v", err)
	}
	if err := annotate(editor, "all@1"); !apierrors.IsForbidden(err) {
		t.Errorf("the first request again: %v, want it forbidden", err)
	}
	created := newPolicy(t, withSpec(``))
	created.SetAnnotations(map[string]string{weirv1alpha1.ResetAnnotation: "all@1"})
	if err := editor.Create(t.Context(), created); !apierrors.IsForbidden(err) {
		t.Errorf("a policy that is created with a request: %v, want it forbidden", err)
	}
}
