package resolve_test

import (
	"errors"
	"maps"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/weir-dev/weir/internal/controlplane/resolve"
	"github.com/weir-dev/weir/internal/controlplane/translate"
	"github.com/weir-dev/weir/pkg/policy"
)

func names(s *policy.Snapshot) []string {
	if s == nil {
		return nil
	}
	var names []string
	for _, p := range s.Policies {
		names = append(names, p.Namespace+"/"+p.Name)
	}
	return names
}

// resolved is what a pod of namespace shop enforces.
func resolved(t *testing.T, r resolve.ByPod, pod, uid string) (*policy.Snapshot, error) {
	t.Helper()
	of, err := r.Namespace(t.Context(), "shop")
	if err != nil {
		t.Fatal(err)
	}
	return of(t.Context(), pod, uid)
}

func TestByPod(t *testing.T) {
	app := map[string]string{"app": "checkout"}
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "checkout-0", UID: "uid-0", Labels: app}}
	objects := []client.Object{
		pod,
		ratelimit("shop", "b", app, 10),
		ratelimit("shop", "a", nil, 10),
		ratelimit("shop", "other", map[string]string{"app": "other"}, 10),
		ratelimit("bank", "c", app, 10),
	}
	tests := map[string]struct {
		pod, uid string
		more     []client.Object
		want     []string
		refused  func(error) bool // nil: there is no error
	}{
		"the policies of the namespace that select the pod": {
			pod: "checkout-0", uid: "uid-0", want: []string{"shop/a", "shop/b"},
		},
		"a pod the cache does not know yet gets nothing, rather than no policy": {
			pod: "checkout-1", uid: "uid-1", refused: apierrors.IsNotFound,
		},
		"a name that was used again is not the pod that asks": {
			pod: "checkout-0", uid: "uid-before",
			refused: func(err error) bool {
				other, ok := errors.AsType[*resolve.OtherPodError](err)
				return ok && other.Error() == "pod shop/checkout-0 has UID uid-0, not uid-before: the name was used again"
			},
		},
		"a policy that cannot be translated is named beside the rest": {
			pod: "checkout-0", uid: "uid-0", more: []client.Object{ratelimit("shop", "broken", app, 0)},
			want:    []string{"shop/a", "shop/b"},
			refused: func(err error) bool { return errors.As(err, new(*translate.PartialError)) },
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			resolver := resolve.ByPod{ByLabels: resolve.ByLabels{Cluster: "c", Cache: cache(t, append(tc.more, objects...)...)}}
			snapshot, err := resolved(t, resolver, tc.pod, tc.uid)
			if tc.refused == nil && err != nil || tc.refused != nil && !tc.refused(err) {
				t.Errorf("error is %v, which is not what is wanted", err)
			}
			if diff := cmp.Diff(tc.want, names(snapshot)); diff != "" {
				t.Errorf("policies (-want +got):\n%s", diff)
			}
			if snapshot != nil && snapshot.Cluster != "c" {
				t.Errorf("counters are named after cluster %q, want c", snapshot.Cluster)
			}
		})
	}
}

// TestPodsThatTheSamePoliciesSelectShareASnapshot also where their labels differ, as those
// of a StatefulSet do.
func TestPodsThatTheSamePoliciesSelectShareASnapshot(t *testing.T) {
	labeled := func(name string, labels map[string]string) client.Object {
		return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name, UID: "uid", Labels: labels}}
	}
	all := cache(t,
		labeled("web-0", map[string]string{"app": "web", "index": "0"}),
		labeled("web-1", map[string]string{"app": "web", "index": "1"}),
		labeled("api-0", map[string]string{"app": "api", "index": "0"}),
		labeled("job", map[string]string{"app": "job"}),
		ratelimit("shop", "a", map[string]string{"app": "web"}, 10),
		ratelimit("shop", "b", map[string]string{"app": "api"}, 10),
		pooled("one", metav1.Unix(1, 0).Time, map[string]string{"app": "job"}),
	)
	of, err := resolve.ByPod{ByLabels: resolve.ByLabels{Cluster: "c", Cache: all}, Secrets: resolve.NewSecrets(all), Keys: new(resolve.Keys)}.Namespace(t.Context(), "shop")
	if err != nil {
		t.Fatal(err)
	}
	snapshots := map[string]*policy.Snapshot{}
	for pod, want := range map[string][]string{"web-0": {"shop/a"}, "web-1": {"shop/a"}, "api-0": {"shop/b"}, "job": nil} {
		snapshot, err := of(t.Context(), pod, "uid")
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, names(snapshot)); diff != "" {
			t.Errorf("policies of %s (-want +got):\n%s", pod, diff)
		}
		snapshots[pod] = snapshot
	}
	if snapshots["web-0"] != snapshots["web-1"] {
		t.Error("the same policies were translated twice")
	}
	if snapshots["job"].Pool == nil || snapshots["api-0"].Pool != nil {
		t.Errorf("the pool of job is %v, of api-0 %v", snapshots["job"].Pool, snapshots["api-0"].Pool)
	}
}

// TestEveryLabelThatASelectorLooksAtMatters: a label that is empty is not one that is missing, and a value
// of one label not that of another.
func TestEveryLabelThatASelectorLooksAtMatters(t *testing.T) {
	of := func(name string, requirements ...metav1.LabelSelectorRequirement) client.Object {
		p := ratelimit("shop", name, nil, 10)
		p.Spec.PodSelector.MatchExpressions = requirements
		return p
	}
	pods := map[string]struct {
		labels map[string]string
		want   []string
	}{
		"none":    {nil, []string{"shop/lacks"}},
		"empty":   {map[string]string{"tier": ""}, []string{"shop/has"}},
		"front":   {map[string]string{"tier": "front"}, []string{"shop/front", "shop/has"}},
		"swapped": {map[string]string{"app": "front"}, []string{"shop/lacks"}},
		"web":     {map[string]string{"app": "web"}, []string{"shop/lacks", "shop/web"}},
		"both":    {map[string]string{"app": "web", "tier": "front", "other": "x"}, []string{"shop/front", "shop/has", "shop/web"}},
	}
	objects := []client.Object{
		of("has", metav1.LabelSelectorRequirement{Key: "tier", Operator: metav1.LabelSelectorOpExists}),
		of("lacks", metav1.LabelSelectorRequirement{Key: "tier", Operator: metav1.LabelSelectorOpDoesNotExist}),
		of("front", metav1.LabelSelectorRequirement{Key: "tier", Operator: metav1.LabelSelectorOpIn, Values: []string{"front"}}),
		ratelimit("shop", "web", map[string]string{"app": "web"}, 10),
		pooled("one", metav1.Unix(1, 0).Time, map[string]string{"pool": "yes"}),
	}
	for name, pod := range pods {
		for _, pooled := range []bool{false, true} {
			all := map[string]string{}
			maps.Copy(all, pod.labels)
			if pooled {
				all["pool"], name = "yes", name+"-pooled"
			}
			objects = append(objects, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name, UID: "uid", Labels: all}})
		}
	}
	all := cache(t, objects...)
	resolver, err := resolve.ByPod{ByLabels: resolve.ByLabels{Cluster: "c", Cache: all}, Secrets: resolve.NewSecrets(all), Keys: new(resolve.Keys)}.Namespace(t.Context(), "shop")
	if err != nil {
		t.Fatal(err)
	}
	for name, pod := range pods {
		for suffix, pooled := range map[string]bool{"": false, "-pooled": true} {
			snapshot, err := resolver(t.Context(), name+suffix, "uid")
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(pod.want, names(snapshot)); diff != "" {
				t.Errorf("policies of %s%s (-want +got):\n%s", name, suffix, diff)
			}
			if (snapshot.Pool != nil) != pooled {
				t.Errorf("the pool of %s%s is %v", name, suffix, snapshot.Pool)
			}
		}
	}
}
