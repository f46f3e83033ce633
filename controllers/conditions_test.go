package controllers

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"

	"github.com/weir-dev/weir/api/v1alpha1"
	"github.com/weir-dev/weir/internal/controlplane/budget"
	"github.com/weir-dev/weir/internal/controlplane/condition"
	"github.com/weir-dev/weir/internal/controlplane/coordinator"
)

// events collects Events as text.
type events struct {
	regarding []runtime.Object
	events    []string
}

func (t *events) Eventf(regarding, _ runtime.Object, eventtype, reason, action, note string, args ...any) {
	t.regarding = append(t.regarding, regarding)
	t.events = append(t.events, fmt.Sprintf("%s %s %s: %s", eventtype, reason, action, fmt.Sprintf(note, args...)))
}

func TestRecord(t *testing.T) {
	accepted, programmed := condition.True("Accepted", "Accepted", "valid"), condition.True("Programmed", "Programmed", "2 of 2")
	reconciling, idle := condition.False("Programmed", "Reconciling", "1 of 2"), condition.False("Programmed", "NoEnforcers", "no pod")
	all := func(c ...metav1.Condition) []metav1.Condition { return c }
	tests := map[string]struct {
		had, has []metav1.Condition
		want     []string
	}{
		"the first verdicts": {
			all(condition.Unknown("Accepted", "Pending", ""), condition.Unknown("Programmed", "Pending", "")), all(accepted, reconciling),
			[]string{"Normal Reconciling Reconcile-4: 1 of 2"},
		},
		"the first verdicts of most objects": {
			all(condition.Unknown("Accepted", "Pending", ""), condition.Unknown("Programmed", "Pending", "")), all(accepted, idle), nil,
		},
		"the same without a default": {nil, all(accepted, idle), nil},
		"a first verdict that somebody has to act upon": {
			all(condition.Unknown("Accepted", "Pending", "")), all(condition.False("Accepted", "Invalid", "spec.limits")),
			[]string{"Warning Invalid Reconcile-4: spec.limits"},
		},
		"what is accepted at last": {all(condition.False("Accepted", "Invalid", "")), all(accepted), []string{"Normal Accepted Reconcile-4: valid"}},
		"pods that are gone":       {all(accepted, programmed), all(accepted, idle), []string{"Warning NoEnforcers Reconcile-4: no pod"}},
		"a turn":                   {all(accepted, reconciling), all(accepted, programmed), []string{"Normal Programmed Reconcile-4: 2 of 2"}},
		"another reason under the same status": {
			all(programmed), all(condition.True("Programmed", "PartiallyProgrammed", "2 of 3; a 100% cure")),
			[]string{"Warning PartiallyProgrammed Reconcile-4: 2 of 3; a 100% cure"},
		},
		"the same reason under another status": {
			all(condition.True("Programmed", "PartiallyProgrammed", "")), all(condition.False("Programmed", "PartiallyProgrammed", "0 of 3")),
			[]string{"Warning PartiallyProgrammed Reconcile-4: 0 of 3"},
		},
		"what is refused":                     {all(accepted, programmed), all(condition.False("Accepted", "Invalid", "spec.limits")), []string{"Warning Invalid Reconcile-4: spec.limits"}},
		"a hub that is lost":                  {all(condition.True("Connected", "Connected", "")), all(condition.False("Connected", "Partitioned", "gone")), []string{"Warning Partitioned Reconcile-4: gone"}},
		"keys without room":                   {all(accepted, programmed), all(accepted, programmed, condition.True("KeysFull", "NoRoom", "of a")), []string{"Warning NoRoom Reconcile-4: of a"}},
		"keys without room in other places":   {all(condition.True("KeysFull", "NoRoom", "of a")), all(condition.True("KeysFull", "NoRoomInPods", "of b")), []string{"Warning NoRoomInPods Reconcile-4: of b"}},
		"a count in a message is not news":    {all(reconciling), all(condition.False("Programmed", "Reconciling", "1 of 3")), nil},
		"nor is what cannot be judged":        {all(condition.True("Connected", "Connected", "")), all(condition.Unknown("Connected", "Starting", "")), nil},
		"nor what follows traffic and stores": {nil, all(condition.False("WithinBound", "BoundExceeded", ""), condition.False("StoreReachable", "Unreachable", ""), condition.True("Saturated", "AtMax", "")), nil},
	}
	policy := &v1alpha1.RateLimitPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "checkout", UID: "uid", Generation: 4, ResourceVersion: "7"}}
	about := &corev1.ObjectReference{APIVersion: "weir.dev/v1alpha1", Kind: "RateLimitPolicy", Namespace: "shop", Name: "checkout", UID: "uid"}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			var to events
			record(&to, policy, "RateLimitPolicy", tc.had, tc.has)
			if diff := cmp.Diff(tc.want, to.events); diff != "" {
				t.Errorf("events (-want +got):\n%s", diff)
			}
			for _, regarding := range to.regarding {
				if diff := cmp.Diff(runtime.Object(about), regarding); diff != "" {
					t.Errorf("what changes with each write makes each Event another (-want +got):\n%s", diff)
				}
			}
		})
	}
}

func TestNotesFitAnEvent(t *testing.T) {
	for _, length := range []int{0, maxNote - 1, maxNote, maxNote + 1, 3 * maxNote} {
		message := strings.Repeat("é", length/2) + strings.Repeat("x", length%2)
		got := note(message)
		if len(got) > maxNote || !utf8.ValidString(got) || !strings.HasPrefix(message, got) || len(got) < min(length, maxNote-1) {
			t.Errorf("of %d bytes %d are recorded", length, len(got))
		}
	}
}

func TestEventfulConditionsExist(t *testing.T) {
	conditions := conditionsOf(newScope())
	for _, kind := range eventful[:2] {
		if !slices.ContainsFunc(conditions, func(c metav1.Condition) bool { return c.Type == kind }) {
			t.Errorf("policies have no condition %s", kind)
		}
	}
}

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

// TestReadiness compares the conditions of each state with a golden file. The suite in
// test/conformance has tools judge that file by their own code.
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
