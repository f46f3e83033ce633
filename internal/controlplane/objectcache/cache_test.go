package objectcache

import (
	"encoding/json"
	"reflect"
	"runtime"
	"testing"
	"unique"
	"unsafe"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/weir-dev/weir/api/v1alpha1"
)

// decoded returns a policy as it comes from the API server.
func decoded(t *testing.T, name string) *v1alpha1.RateLimitPolicy {
	t.Helper()
	const text = `{"metadata":{"namespace":"shop","labels":{"team":"red"},"managedFields":[{"manager":"kubectl"}],
		"annotations":{"kubectl.kubernetes.io/last-applied-configuration":"{}","note":"mine"}},
		"spec":{"podSelector":{"matchLabels":{"app":"checkout"}},"limits":[{"name":"all","rates":[{"limit":7,"window":"10s"}]}]},
		"status":{"conditions":[{"type":"Accepted","status":"True","message":"the policy is valid"},
			{"type":"Programmed","status":"Unknown"},{"type":"Learning","status":"False"}],"limits":[{"name":"all"}]}}`
	p := &v1alpha1.RateLimitPolicy{}
	if err := json.Unmarshal([]byte(text), p); err != nil {
		t.Fatal(err)
	}
	p.Name = name
	return p
}

func TestACachedPolicyIsWhatItWas(t *testing.T) {
	want := decoded(t, "a")
	want.ManagedFields = nil
	delete(want.Annotations, corev1.LastAppliedConfigAnnotation)
	got, err := trim(decoded(t, "a"))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("cached (-want +got):\n%s", diff)
	}
	if odd, err := trim("a tombstone"); odd != "a tombstone" || err != nil {
		t.Errorf("a value that is not an object became %v, %v", odd, err)
	}
}

// TestCachedPoliciesShareStrings: a string that thousands of policies have is kept once.
func TestCachedPoliciesShareStrings(t *testing.T) {
	strings := func(p *v1alpha1.RateLimitPolicy) map[string]string {
		c := p.Status.Conditions[0]
		return map[string]string{
			"namespace": p.Namespace, "label": p.Labels["team"], "selector": p.Spec.PodSelector.MatchLabels["app"],
			"limit": p.Spec.Limits[0].Name, "window": string(p.Spec.Limits[0].Rates[0].Window),
			"condition": c.Type, "status": string(c.Status), "message": c.Message,
		}
	}
	var handles []unique.Handle[string] // which keep them from being collected between the two
	for _, s := range strings(decoded(t, "a")) {
		handles = append(handles, unique.Make(s))
	}
	a, b := decoded(t, "a"), decoded(t, "b")
	for _, p := range []*v1alpha1.RateLimitPolicy{a, b} {
		if _, err := trim(p); err != nil {
			t.Fatal(err)
		}
	}
	for name, s := range strings(a) {
		if other := strings(b)[name]; unsafe.StringData(s) != unsafe.StringData(other) {
			t.Errorf("%s %q is kept twice", name, s)
		}
	}
	runtime.KeepAlive(handles)
}

// TestCachedSlicesHaveNoRoom: a decoder makes room for four elements where there are three.
func TestCachedSlicesHaveNoRoom(t *testing.T) {
	p := decoded(t, "a")
	if cap(p.Status.Conditions) == len(p.Status.Conditions) {
		t.Error("the decoder leaves no room, so compact may go")
	}
	if _, err := trim(p); err != nil {
		t.Fatal(err)
	}
	var visit func(path string, v reflect.Value)
	visit = func(path string, v reflect.Value) {
		switch v.Kind() {
		case reflect.Slice:
			if v.Cap() > v.Len() {
				t.Errorf("%s has room for %d elements and has %d", path, v.Cap(), v.Len())
			}
			for i := range v.Len() {
				visit(path, v.Index(i))
			}
		case reflect.Struct:
			for i := range v.NumField() {
				visit(path+"."+v.Type().Field(i).Name, v.Field(i))
			}
		default:
		}
	}
	visit("policy", reflect.ValueOf(p).Elem())
}

func TestACachedPodSharesItsLabels(t *testing.T) {
	key, value := unique.Make("app"), unique.Make("checkout")
	trimmed, err := TrimPod(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{string([]byte("app")): string([]byte("checkout"))}}})
	if err != nil {
		t.Fatal(err)
	}
	for k, v := range trimmed.(*corev1.Pod).Labels {
		if unsafe.StringData(k) != unsafe.StringData(key.Value()) || unsafe.StringData(v) != unsafe.StringData(value.Value()) {
			t.Errorf("the label %s: %s is kept twice", k, v)
		}
	}
	runtime.KeepAlive([]unique.Handle[string]{key, value})
}
