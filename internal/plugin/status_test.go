package plugin

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/weir-dev/weir/api/v1alpha1"
)

// create writes an object and its status to the API server until the test ends.
func create(t *testing.T, o client.Object, setStatus func()) {
	t.Helper()
	if err := server.Create(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := server.Delete(context.Background(), o, client.GracePeriodSeconds(0)); err != nil {
			t.Error(err)
		}
	})
	setStatus()
	if err := server.Status().Update(t.Context(), o); err != nil {
		t.Fatal(err)
	}
}

// createPod creates a pod that runs.
func createPod(t *testing.T, pod *corev1.Pod) {
	t.Helper()
	create(t, pod, func() { pod.Status.Phase = corev1.PodRunning })
}

// sample reads an object of config/samples into a namespace.
func sample(t *testing.T, file, namespace string, into client.Object) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", "config", "samples", file))
	if err != nil {
		t.Fatal(err)
	}
	if err := yaml.UnmarshalStrict(text, into); err != nil {
		t.Fatal(err)
	}
	into.SetNamespace(namespace)
}

// createNamespace creates the namespace of all tests, unless it is there.
func createNamespace(t *testing.T) {
	t.Helper()
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop", Labels: map[string]string{v1alpha1.InjectionLabel: v1alpha1.Enabled}}}
	if err := server.Create(t.Context(), ns); err != nil && !apierrors.IsAlreadyExists(err) {
		t.Fatal(err)
	}
}

// shop creates a namespace with pods, a policy that they run and a pool that is new.
func shop(t *testing.T) {
	t.Helper()
	createNamespace(t)
	createPod(t, sidecarIn(t, running("checkout-1")))
	createPod(t, sidecarIn(t, running("checkout-2", v1alpha1.ModeAnnotation+"="+v1alpha1.ModeBypass)))
	createPod(t, running("checkout-3"))
	done := running("checkout-4")
	create(t, done, func() { done.Status.Phase = corev1.PodSucceeded })
	other := running("other")
	other.Labels["app"] = "other"
	createPod(t, other)

	var policy v1alpha1.RateLimitPolicy
	sample(t, "quickstart.yaml", "shop", &policy)
	create(t, &policy, func() {
		policy.Status.Conditions = []metav1.Condition{{
			Type: v1alpha1.ProgrammedCondition, Status: metav1.ConditionFalse, Reason: v1alpha1.PartiallyProgrammedReason,
			ObservedGeneration: 1, LastTransitionTime: metav1.Now(),
		}}
	})
	var pool v1alpha1.ConcurrencyPool
	sample(t, "pool-quickstart.yaml", "shop", &pool)
	create(t, &pool, func() {
		pool.Status.Shares = []v1alpha1.PodShare{{Pod: "checkout-1", Share: 40, InFlight: 3}}
		pool.Status.Conditions = []metav1.Condition{{
			Type: v1alpha1.ProgrammedCondition, Status: metav1.ConditionTrue, Reason: v1alpha1.PartiallyProgrammedReason,
			ObservedGeneration: 1, LastTransitionTime: metav1.Now(),
		}}
	})
}

// run runs the command and returns what it writes.
func run(t *testing.T, args ...string) (stdout, stderr string) {
	t.Helper()
	var out, errs strings.Builder
	if err := Execute(t.Context(), append(args, "--kubeconfig", kubeconfig), &out, &errs); err != nil {
		t.Fatal(err)
	}
	return out.String(), errs.String()
}

// TestStatus compares the output of status with the page that documents it.
func TestStatus(t *testing.T) {
	shop(t)
	page, err := os.ReadFile(filepath.Join("..", "..", "docs", "kubectl.md"))
	if err != nil {
		t.Fatal(err)
	}
	table, _ := run(t, "status", "-n", "shop")
	var trimmed strings.Builder
	for line := range strings.Lines(table) {
		trimmed.WriteString(strings.TrimRight(line, " \n") + "\n")
	}
	if want := "```\n$ kubectl weir status -n shop\n" + trimmed.String() + "```\n"; !strings.Contains(string(page), want) {
		t.Errorf("docs/kubectl.md lacks:\n%s", want)
	}
	if all, _ := run(t, "status", "-A"); all != table {
		t.Errorf("status -A is\n%swant\n%s", all, table)
	}

	text, _ := run(t, "status", "-n", "shop", "-o", "json")
	var list statusList
	if err := json.Unmarshal([]byte(text), &list); err != nil {
		t.Fatal(err)
	}
	want := statusRow{
		Namespace: "shop", Object: "concurrencypool/checkout", Pod: "checkout-1", Mode: "Enforce", Generation: ptr.To[int64](1),
		Capture: "redirect", Store: "Controller", Share: ptr.To[int64](40), Limited: metav1.ConditionTrue,
	}
	if got := list.Items[0]; figure(got.Generation) != figure(want.Generation) || figure(got.Share) != figure(want.Share) {
		t.Errorf("the first row is %+v", got)
	} else if got.Generation, got.Share = want.Generation, want.Share; got != want {
		t.Errorf("the first row is %+v, want %+v", got, want)
	}
	inYAML, _ := run(t, "status", "-n", "shop", "-o", "yaml")
	converted, err := yaml.YAMLToJSON([]byte(inYAML))
	if err != nil {
		t.Fatal(err)
	}
	var same statusList
	if err := json.Unmarshal(converted, &same); err != nil || len(same.Items) != len(list.Items) || len(list.Items) != 6 {
		t.Errorf("YAML has %d rows, JSON %d, want 6 (%v)", len(same.Items), len(list.Items), err)
	}
}

func TestStatusOfNothing(t *testing.T) {
	stdout, stderr := run(t, "status", "-n", "default")
	if stdout != "" || !strings.Contains(stderr, "-A looks in all namespaces") {
		t.Errorf("status printed %q and %q", stdout, stderr)
	}
	if stdout, _ = run(t, "status", "-n", "default", "-o", "json"); !strings.Contains(stdout, `"items": []`) {
		t.Errorf("status -o json printed %s", stdout)
	}
}

func TestStatusNamesTheCure(t *testing.T) {
	for name, args := range map[string][]string{
		"--context": {"status", "--kubeconfig", kubeconfig, "--context", "absent"},
		"use table, json or yaml; kubectl weir status --help": {"status", "-o", "wide"},
		"reading the kubeconfig":                              {"status", "--kubeconfig", filepath.Join(t.TempDir(), "absent")},
		`no command "absent": use one of kubectl weir --help`: {"absent"},
		`no command "statsu": use status`:                     {"statsu"},
		"unknown flag: --all; kubectl weir top --help":        {"top", "--all"},
		"--request-timeout is -1s: use 0":                     {"status", "--kubeconfig", kubeconfig, "--request-timeout", "-1s"},
		`"filename" not set; use: kubectl weir test -f`:       {"test"},
	} {
		var out, errs strings.Builder
		if err := Execute(t.Context(), args, &out, &errs); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%v: error %v, want one with %q", args, err, name)
		}
	}
}

// A policy that selects nothing, and one whose selector is wrong, have a row each.
func TestRowsWithoutPods(t *testing.T) {
	var none, wrong v1alpha1.RateLimitPolicy
	none.Namespace, none.Name = "shop", "none"
	none.Spec.PodSelector.MatchLabels = map[string]string{"app": "absent"}
	wrong.Namespace, wrong.Name = "shop", "wrong"
	wrong.Spec.PodSelector.MatchExpressions = []metav1.LabelSelectorRequirement{{Key: "app", Operator: "Like"}}
	f := &fleet{pods: []corev1.Pod{*running("checkout")}, policies: []v1alpha1.RateLimitPolicy{wrong, none}}
	rows := f.rows()
	if len(rows) != 2 || rows[0].Reason != "spec.podSelector selects no pod" || !strings.HasPrefix(rows[1].Reason, "spec.podSelector: ") {
		t.Errorf("rows are %+v", rows)
	}
}
