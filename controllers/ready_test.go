package controllers

import (
	"bytes"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/weir-dev/weir/api/v1alpha1"
	"github.com/weir-dev/weir/internal/controlplane/budget"
	"github.com/weir-dev/weir/internal/controlplane/coordinator"
)

var update = flag.Bool("update", false, "rewrite testdata/readiness.yaml")

// A judged object is what a tool that deploys it sees.
type judged struct {
	APIVersion        string `json:"apiVersion"`
	Kind              string `json:"kind"`
	metav1.ObjectMeta `json:"metadata"`
	Status            struct {
		ObservedGeneration int64              `json:"observedGeneration,omitempty"`
		Conditions         []metav1.Condition `json:"conditions"`
	} `json:"status"`
}

func judge(kind, name string, observed int64, conditions []metav1.Condition) (j judged) {
	j.APIVersion, j.Kind, j.Name, j.Generation = v1alpha1.GroupVersion.String(), kind, name, generation
	j.Status.ObservedGeneration, j.Status.Conditions = observed, conditions
	return j
}

// defaults returns the conditions that the API server writes into a new object.
func defaults(t *testing.T, plural string) (conditions []metav1.Condition) {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("..", "config", "crd", "bases", "weir.dev_"+plural+".yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var crd apiextensionsv1.CustomResourceDefinition
	if err := yaml.UnmarshalStrict(data, &crd); err != nil {
		t.Fatal(err)
	}
	status := crd.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["status"]
	if err := yaml.UnmarshalStrict(status.Properties["conditions"].Default.Raw, &conditions); err != nil {
		t.Fatal(err)
	}
	return conditions
}

// TestReadiness keeps a file of what tools see in each state. That they judge it rightly is
// tested with their own code, in test/conformance.
func TestReadiness(t *testing.T) {
	of := func(name string, changes ...func(*scope)) judged {
		return judge("RateLimitPolicy", name, generation, statusOf(newScope(changes...)).Conditions)
	}
	pool := func(name string, changes ...func(*poolScope)) judged {
		return judge("ConcurrencyPool", name, generation, poolStatusOf(newPoolScope(changes...)).Conditions)
	}
	member := func(name string, changes ...func(*budgetScope)) judged {
		return judge("FederatedBudget", name, generation, budgetStatusOf(newBudgetScope(changes...)).Conditions)
	}
	stale := of("edited", enforcers("a"), acknowledged(generation, "a"))
	stale.Generation++
	all := []judged{
		judge("RateLimitPolicy", "new", 0, defaults(t, "ratelimitpolicies")),
		stale,
		of("invalid", func(s *scope) { s.invalid = errors.New("spec.limits[0].rates[0].window: write 1s") }),
		of("budget-to-come", func(s *scope) { s.unmet = errors.New("there is no FederatedBudget shop/world") }),
		of("no-pods"),
		of("rolling-out", enforcers("a", "b"), acknowledged(generation, "a"), acknowledged(generation-1, "b")),
		of("one-pod-without-a-sidecar", enforcers("a"), acknowledged(generation, "a"), uninjected("c")),
		of("one-pod-with-a-host-port", enforcers("a"), acknowledged(generation, "a"), func(s *scope) { s.pods.exposed = []string{"a"} }),
		of("ready", enforcers("a"), acknowledged(generation, "a")),
		judge("ConcurrencyPool", "new", 0, defaults(t, "concurrencypools")),
		pool("conflicted", func(s *poolScope) { s.conflict = "the pool shop/older selects the same pods" }),
		pool("no-pods", func(s *poolScope) { s.pods, s.observation = pods{}, coordinator.PoolObservation{} }),
		pool("ready"),
		judge("FederatedBudget", "new", 0, defaults(t, "federatedbudgets")),
		member("not-a-member", func(s *budgetScope) { s.cluster = "ap-south" }),
		member("partitioned", ofHub, cutOff(budget.Partitioned, "no route")),
		member("ready"),
	}
	var got bytes.Buffer
	for _, object := range all {
		text, err := yaml.Marshal(object)
		if err != nil {
			t.Fatal(err)
		}
		got.WriteString("---\n")
		got.Write(text)
	}
	golden := filepath.Join("testdata", "readiness.yaml")
	if *update {
		if err := os.WriteFile(golden, got.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got.String()); diff != "" {
		t.Errorf("conditions (-want +got); review them, then run go test ./controllers -run TestReadiness -update\n%s", diff)
	}
}
