package docs

import (
	"context"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/weir-dev/weir/api/v1alpha1"
	"github.com/weir-dev/weir/internal/testing/apiserver"
)

// blockOf returns the objects of the block of a page that has a text.
func blockOf(t *testing.T, path, has string) (objects []*unstructured.Unstructured) {
	t.Helper()
	p := Page{Path: path, Text: string(read(t, filepath.Join(root, filepath.FromSlash(path))))}
	blocks := p.Blocks()
	i := slices.IndexFunc(blocks, func(b Block) bool { return b.Language == "yaml" && strings.Contains(b.Text, has) })
	if i < 0 {
		t.Fatalf("%s has no block with %s", path, has)
	}
	for document := range strings.SplitSeq(blocks[i].Text, "\n---\n") {
		object := &unstructured.Unstructured{}
		if err := yaml.UnmarshalStrict([]byte(document), &object.Object); err != nil {
			t.Fatalf("%s: %v", p.At(blocks[i].Line), err)
		}
		objects = append(objects, object)
	}
	return objects
}

// TestLimitsOfThePlatform: on an API server, the admission policies of the guides keep a team from
// lifting the limits of the platform, and from leaving its pods without them.
func TestLimitsOfThePlatform(t *testing.T) {
	if err := v1alpha1.AddToScheme(scheme.Scheme); err != nil {
		t.Fatal(err)
	}
	config := apiserver.Start(t, apiserver.WithDefinitions(filepath.Join(root, "config", "crd", "bases")))
	as := func(user string, groups ...string) client.Client {
		c := rest.CopyConfig(config)
		c.Impersonate = rest.ImpersonationConfig{UserName: user, Groups: append(groups, "system:masters")} // may do all that admission lets pass
		server, err := client.New(c, client.Options{})
		if err != nil {
			t.Fatal(err)
		}
		return server
	}
	platform, team, namespaces := as("root", "platform"), as("alice", "shop"), as("system:serviceaccount:kube-system:namespace-controller")
	create := func(by client.Client, object client.Object) {
		t.Helper()
		if err := by.Create(t.Context(), object); err != nil {
			t.Fatal(err)
		}
	}
	for _, object := range blockOf(t, "docs/guides.md", "name: platform-limits") {
		create(platform, object)
	}
	create(platform, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop", Labels: map[string]string{"weir.dev/injection": "enabled"}}})
	create(platform, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "office"}})
	policy := func(by client.Client, name, owner string) *v1alpha1.RateLimitPolicy {
		p := &v1alpha1.RateLimitPolicy{
			ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name, Labels: map[string]string{"example.com/owner": owner}},
			Spec:       v1alpha1.RateLimitPolicySpec{Limits: []v1alpha1.Limit{{Name: "all", Rates: []v1alpha1.Rate{{Limit: 5, Window: "1s"}}}}},
		}
		create(by, p)
		return p
	}
	pod := func(namespace string, annotations, labels map[string]string) *corev1.Pod {
		return &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, GenerateName: "app-", Annotations: annotations, Labels: labels},
			Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "app", Image: "app"}}},
		}
	}
	owned, own := policy(platform, "owned", "platform"), policy(team, "own", "shop")
	edit := func(by client.Client, p *v1alpha1.RateLimitPolicy, patch string, options ...client.PatchOption) error {
		return by.Patch(t.Context(), p.DeepCopy(), client.RawPatch(types.MergePatchType, []byte(patch)), options...)
	}
	const shadow = `{"spec":{"mode":"Shadow"}}`
	const limits, mode, inject = "the platform owns this limit", "weir.dev/mode lifts the limits", "weir.dev/inject leaves a pod"

	// Policies of admission take a moment to be in force.
	err := wait.PollUntilContextTimeout(t.Context(), 100*time.Millisecond, 30*time.Second, true, func(ctx context.Context) (bool, error) {
		bypasses := team.Create(ctx, pod("shop", map[string]string{"weir.dev/mode": "bypass"}, nil), client.DryRunAll)
		return bypasses != nil && edit(team, owned, shadow, client.DryRunAll) != nil, nil
	})
	if err != nil {
		t.Fatal("the policies of admission are not in force")
	}
	for name, tc := range map[string]struct {
		err  error
		want string // empty: it is admitted
	}{
		"a team edits a limit of the platform":      {edit(team, owned, shadow), limits},
		"a team takes the label of the owner off":   {edit(team, owned, `{"metadata":{"labels":null}}`), limits},
		"a team deletes a limit of the platform":    {team.Delete(t.Context(), owned), limits},
		"a team edits its own limit":                {edit(team, own, shadow), ""},
		"a status is written":                       {team.Status().Patch(t.Context(), owned.DeepCopy(), client.RawPatch(types.MergePatchType, []byte(`{"status":{"observedGeneration":1}}`))), ""},
		"the platform edits its limit":              {edit(platform, owned, shadow), ""},
		"a pod of the team bypasses":                {team.Create(t.Context(), pod("shop", map[string]string{"weir.dev/mode": "bypass"}, nil)), mode},
		"a pod opts out by annotation":              {team.Create(t.Context(), pod("shop", map[string]string{"weir.dev/inject": "disabled"}, nil)), inject},
		"a pod opts out by label":                   {team.Create(t.Context(), pod("shop", nil, map[string]string{"weir.dev/inject": "disabled"})), inject},
		"a pod says nothing":                        {team.Create(t.Context(), pod("shop", nil, nil)), ""},
		"a pod of a namespace that did not opt in":  {team.Create(t.Context(), pod("office", map[string]string{"weir.dev/inject": "disabled"}, nil)), ""},
		"the namespace is deleted with its objects": {namespaces.Delete(t.Context(), owned), ""},
	} {
		if (tc.err == nil) != (tc.want == "") || tc.err != nil && !strings.Contains(tc.err.Error(), tc.want) {
			t.Errorf("%s: error %v, want %q", name, tc.err, tc.want)
		}
	}
}
