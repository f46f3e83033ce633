package default_test

import (
	"bytes"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/yaml"
	podsecurity "k8s.io/pod-security-admission/api"
	"k8s.io/pod-security-admission/policy"
)

// manifests are the rendered objects by kind and name.
type manifests map[string]*unstructured.Unstructured

// render returns what kubectl apply -k config/default would apply.
func render(t *testing.T) manifests {
	t.Helper()
	kubectl := filepath.Join(os.Getenv("KUBEBUILDER_ASSETS"), "kubectl")
	out, err := exec.Command(kubectl, "kustomize", ".").Output()
	if err != nil {
		t.Fatalf("%v (KUBEBUILDER_ASSETS must name the directory of kubectl, see `make assets`)", err)
	}
	rendered := manifests{}
	for decoder := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(out), 4096); ; {
		var object unstructured.Unstructured
		if err := decoder.Decode(&object); errors.Is(err, io.EOF) {
			return rendered
		} else if err != nil {
			t.Fatal(err)
		}
		rendered[object.GetKind()+"/"+object.GetName()] = &object
	}
}

func as[T any](t *testing.T, m manifests, name string) *T {
	t.Helper()
	object, ok := m[name]
	if !ok {
		t.Fatalf("%s is not rendered", name)
	}
	into := new(T)
	if err := runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(object.Object, into, true); err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return into
}

func TestEverythingIsInstalled(t *testing.T) {
	rendered := render(t)
	for _, name := range []string{
		"Namespace/weir-system",
		"CustomResourceDefinition/concurrencypools.weir.dev", "CustomResourceDefinition/federatedbudgets.weir.dev", "CustomResourceDefinition/ratelimitpolicies.weir.dev",
		"ServiceAccount/weir-controller",
		"ClusterRole/weir-controller", "ClusterRoleBinding/weir-controller",
		"Role/weir-controller", "RoleBinding/weir-controller",
		"ClusterRole/weir-policy-viewer", "ClusterRole/weir-policy-editor",
		"Deployment/weir-controller", "PodDisruptionBudget/weir-controller",
		"Service/weir-webhook", "Service/weir-fleet", "Service/weir-hub",
		"MutatingWebhookConfiguration/weir-injector", "ValidatingWebhookConfiguration/weir-validator",
	} {
		if rendered[name] == nil {
			t.Errorf("%s is missing", name)
		}
	}
}

func TestTheControllerIsRestricted(t *testing.T) {
	deployment := as[appsv1.Deployment](t, render(t), "Deployment/weir-controller")
	evaluator, err := policy.NewEvaluator(policy.DefaultChecks(), nil)
	if err != nil {
		t.Fatal(err)
	}
	level := podsecurity.LevelVersion{Level: podsecurity.LevelRestricted, Version: podsecurity.LatestVersion()}
	template := deployment.Spec.Template
	for _, result := range evaluator.EvaluatePod(level, &template.ObjectMeta, &template.Spec) {
		if !result.Allowed {
			t.Errorf("restricted pod security forbids the controller: %s: %s", result.ForbiddenReason, result.ForbiddenDetail)
		}
	}
}

func TestSelectorsFindTheController(t *testing.T) {
	rendered := render(t)
	deployment := as[appsv1.Deployment](t, rendered, "Deployment/weir-controller")
	template := deployment.Spec.Template
	follower := labels.Set(template.Labels)
	leader := labels.Merge(follower, labels.Set{"weir.dev/leader": "true"})

	service := func(name string) *corev1.Service { return as[corev1.Service](t, rendered, "Service/"+name) }
	webhook, fleet, hub := service("weir-webhook"), service("weir-fleet"), service("weir-hub")
	if !labels.SelectorFromSet(webhook.Spec.Selector).Matches(follower) {
		t.Error("the webhooks' Service does not select every replica")
	}
	for _, of := range []*corev1.Service{fleet, hub} {
		if s := labels.SelectorFromSet(of.Spec.Selector); s.Matches(follower) || !s.Matches(leader) {
			t.Errorf("Service %s does not select exactly the leader", of.Name)
		}
	}
	budget := as[policyv1.PodDisruptionBudget](t, rendered, "PodDisruptionBudget/weir-controller")
	if s, err := metav1.LabelSelectorAsSelector(budget.Spec.Selector); err != nil || !s.Matches(follower) {
		t.Errorf("the disruption budget does not select the controller (%v)", err)
	}

	ports := map[string]bool{}
	for _, port := range template.Spec.Containers[0].Ports {
		ports[port.Name] = true
	}
	for _, service := range []*corev1.Service{webhook, fleet, hub} {
		for _, port := range service.Spec.Ports {
			if !ports[port.TargetPort.StrVal] {
				t.Errorf("Service %s targets port %q; which the controller does not have", service.Name, port.TargetPort.String())
			}
		}
	}
}
