package default_test

import (
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	podsecurity "k8s.io/pod-security-admission/api"
	"k8s.io/pod-security-admission/policy"

	"github.com/weir-dev/weir/internal/rendered"
)

// render returns what kubectl apply -k of a directory of config would apply.
func render(t *testing.T, directory string) rendered.Objects {
	t.Helper()
	objects, err := rendered.Kustomize(directory)
	if err != nil {
		t.Fatal(err)
	}
	return objects
}

func as[T any](t *testing.T, objects rendered.Objects, name string) *T {
	t.Helper()
	object, err := rendered.As[T](objects, name)
	if err != nil {
		t.Fatal(err)
	}
	return object
}

func TestEverythingIsInstalled(t *testing.T) {
	objects := render(t, ".")
	for _, name := range []string{
		"Namespace/weir-system",
		"CustomResourceDefinition/concurrencypools.weir.dev", "CustomResourceDefinition/federatedbudgets.weir.dev", "CustomResourceDefinition/ratelimitpolicies.weir.dev",
		"ServiceAccount/weir-controller",
		"ClusterRole/weir-controller", "ClusterRoleBinding/weir-controller",
		"Role/weir-controller", "RoleBinding/weir-controller",
		"ClusterRole/weir-policy-viewer", "ClusterRole/weir-policy-editor", "ClusterRole/weir-policy-resetter",
		"Deployment/weir-controller", "PodDisruptionBudget/weir-controller",
		"Service/weir-webhook", "Service/weir-fleet", "Service/weir-hub",
		"MutatingWebhookConfiguration/weir-injector", "ValidatingWebhookConfiguration/weir-validator",
		"ValidatingAdmissionPolicy/weir-reset", "ValidatingAdmissionPolicyBinding/weir-reset",
	} {
		if objects[name] == nil {
			t.Errorf("%s is missing", name)
		}
	}
}

// controller is the Deployment that config/default installs.
func controller(t *testing.T) *appsv1.Deployment {
	t.Helper()
	return as[appsv1.Deployment](t, render(t, "."), "Deployment/weir-controller")
}

func TestPodsAreRestricted(t *testing.T) {
	evaluator, err := policy.NewEvaluator(policy.DefaultChecks(), nil)
	if err != nil {
		t.Fatal(err)
	}
	level := podsecurity.LevelVersion{Level: podsecurity.LevelRestricted, Version: podsecurity.LatestVersion()}
	for _, deployment := range []*appsv1.Deployment{controller(t), as[appsv1.Deployment](t, render(t, "../trial-redis"), "Deployment/redis")} {
		template := deployment.Spec.Template
		for _, result := range evaluator.EvaluatePod(level, &template.ObjectMeta, &template.Spec) {
			if !result.Allowed {
				t.Errorf("restricted pod security forbids %s: %s: %s", deployment.Name, result.ForbiddenReason, result.ForbiddenDetail)
			}
		}
	}
}

func TestSelectorsFindTheController(t *testing.T) {
	objects := render(t, ".")
	deployment := as[appsv1.Deployment](t, objects, "Deployment/weir-controller")
	template := deployment.Spec.Template
	follower := labels.Set(template.Labels)
	leader := labels.Merge(follower, labels.Set{"weir.dev/leader": "true"})

	service := func(name string) *corev1.Service { return as[corev1.Service](t, objects, "Service/"+name) }
	webhook, fleet, hub := service("weir-webhook"), service("weir-fleet"), service("weir-hub")
	if !labels.SelectorFromSet(webhook.Spec.Selector).Matches(follower) {
		t.Error("the webhooks' Service does not select every replica")
	}
	for _, of := range []*corev1.Service{fleet, hub} {
		if s := labels.SelectorFromSet(of.Spec.Selector); s.Matches(follower) || !s.Matches(leader) {
			t.Errorf("Service %s does not select exactly the leader", of.Name)
		}
	}
	budget := as[policyv1.PodDisruptionBudget](t, objects, "PodDisruptionBudget/weir-controller")
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
