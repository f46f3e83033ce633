package default_test

import (
	"os"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/weir-dev/weir/api/v1alpha1"
	"github.com/weir-dev/weir/internal/testing/rendered"
)

// TestTheNetworkPolicyAdmitsWhatIsServed compares it with what each component listens on:
// everything but the probes, which come from the node.
func TestTheNetworkPolicyAdmitsWhatIsServed(t *testing.T) {
	installed, policies := render(t, "."), render(t, "../networkpolicy")
	for _, name := range []string{"weir-controller", "weir-webhook"} {
		template, policy := component(t, installed, name), as[networkingv1.NetworkPolicy](t, policies, "NetworkPolicy/"+name)
		if s, err := metav1.LabelSelectorAsSelector(&policy.Spec.PodSelector); err != nil || !s.Matches(labels.Set(template.Labels)) {
			t.Errorf("it does not select %s (%v)", name, err)
		}
		var admitted, served []string
		for _, rule := range policy.Spec.Ingress {
			for _, port := range rule.Ports {
				admitted = append(admitted, port.Port.StrVal)
			}
		}
		for _, port := range template.Spec.Containers[0].Ports {
			if port.Name != "health" {
				served = append(served, port.Name)
			}
		}
		slices.Sort(admitted)
		slices.Sort(served)
		if !slices.Equal(admitted, served) {
			t.Errorf("it admits %q, %s serves %q", admitted, name, served)
		}
	}
}

// example returns the NetworkPolicy of a file that is not applied with the others.
func example(t *testing.T, file, name string) *networkingv1.NetworkPolicy {
	t.Helper()
	text, err := os.ReadFile("../networkpolicy/" + file)
	if err != nil {
		t.Fatal(err)
	}
	objects, err := rendered.Decode(text)
	if err != nil {
		t.Fatal(err)
	}
	return as[networkingv1.NetworkPolicy](t, objects, "NetworkPolicy/"+name)
}

func TestTheExamplesSelectInjectedPods(t *testing.T) {
	for file, name := range map[string]string{"injected-pods.example.yaml": "only-through-weir", "injected-pods-egress.example.yaml": "from-weir"} {
		policy := example(t, file, name)
		selector, err := metav1.LabelSelectorAsSelector(&policy.Spec.PodSelector)
		if err != nil {
			t.Fatal(err)
		}
		if !selector.Matches(labels.Set{v1alpha1.EnforcerLabel: "true"}) || selector.Matches(labels.Set{}) {
			t.Errorf("%s: %s does not select exactly the pods with a sidecar", file, selector)
		}
	}
}

// TestTheExampleLeadsToTheController compares it with where the controller serves the fleet.
func TestTheExampleLeadsToTheController(t *testing.T) {
	policy, template := example(t, "injected-pods-egress.example.yaml", "from-weir"), component(t, render(t, "."), "weir-controller")
	rule := policy.Spec.Egress[0]
	if s, err := metav1.LabelSelectorAsSelector(rule.To[0].PodSelector); err != nil || !s.Matches(labels.Set(template.Labels)) {
		t.Errorf("its first rule does not select the controller (%v)", err)
	}
	if s, err := metav1.LabelSelectorAsSelector(rule.To[0].NamespaceSelector); err != nil || !s.Matches(labels.Set{corev1.LabelMetadataName: "weir-system"}) {
		t.Errorf("its first rule does not select the controller's namespace (%v)", err)
	}
	fleet := slices.IndexFunc(template.Spec.Containers[0].Ports, func(p corev1.ContainerPort) bool { return p.Name == "fleet" })
	if got, want := rule.Ports[0].Port.IntVal, template.Spec.Containers[0].Ports[fleet].ContainerPort; got != want {
		t.Errorf("it admits port %d, the controller serves sidecars on %d", got, want)
	}
}

func TestTheTrialRedisIsWhereTheSamplesLook(t *testing.T) {
	objects := render(t, "../trial-redis")
	service := as[corev1.Service](t, objects, "Service/redis")
	sample, err := os.ReadFile("../samples/redis.yaml")
	if err != nil {
		t.Fatal(err)
	}
	policies, err := rendered.Decode(sample)
	if err != nil {
		t.Fatal(err)
	}
	policy := as[v1alpha1.RateLimitPolicy](t, policies, "RateLimitPolicy/redis")
	if got, want := string(policy.Spec.Store.Redis.Address), service.Name+"."+service.Namespace+".svc:6379"; got != want {
		t.Errorf("the sample looks at %q, the trial Redis is at %q", got, want)
	}
}
