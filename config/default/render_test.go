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

	"github.com/weir-dev/weir/internal/testing/rendered"
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
		"ServiceAccount/weir-controller", "ServiceAccount/weir-webhook",
		"ClusterRole/weir-controller", "ClusterRoleBinding/weir-controller", "ClusterRole/weir-webhook", "ClusterRoleBinding/weir-webhook",
		"Role/weir-controller", "RoleBinding/weir-controller", "Role/weir-webhook", "RoleBinding/weir-webhook",
		"ClusterRole/weir-policy-viewer", "ClusterRole/weir-policy-editor", "ClusterRole/weir-pool-editor", "ClusterRole/weir-budget-editor", "ClusterRole/weir-policy-resetter",
		"Deployment/weir-controller", "PodDisruptionBudget/weir-controller",
		"Deployment/weir-webhook", "PodDisruptionBudget/weir-webhook",
		"Service/weir-webhook", "Service/weir-fleet", "Service/weir-hub",
		"MutatingWebhookConfiguration/weir-injector", "ValidatingWebhookConfiguration/weir-validator",
		"ValidatingAdmissionPolicy/weir-reset", "ValidatingAdmissionPolicyBinding/weir-reset",
	} {
		if objects[name] == nil {
			t.Errorf("%s is missing", name)
		}
	}
}

// component returns the template of the pods of a Deployment.
func component(t *testing.T, objects rendered.Objects, name string) *corev1.PodTemplateSpec {
	t.Helper()
	return &as[appsv1.Deployment](t, objects, "Deployment/"+name).Spec.Template
}

func TestPodsAreRestricted(t *testing.T) {
	evaluator, err := policy.NewEvaluator(policy.DefaultChecks(), nil)
	if err != nil {
		t.Fatal(err)
	}
	level := podsecurity.LevelVersion{Level: podsecurity.LevelRestricted, Version: podsecurity.LatestVersion()}
	installed := render(t, ".")
	for name, template := range map[string]*corev1.PodTemplateSpec{
		"the controller": component(t, installed, "weir-controller"), "the webhooks": component(t, installed, "weir-webhook"),
		"Redis": component(t, render(t, "../trial-redis"), "redis"),
	} {
		for _, result := range evaluator.EvaluatePod(level, &template.ObjectMeta, &template.Spec) {
			if !result.Allowed {
				t.Errorf("restricted pod security forbids %s: %s: %s", name, result.ForbiddenReason, result.ForbiddenDetail)
			}
		}
	}
}

func TestSelectorsFindTheirComponent(t *testing.T) {
	objects := render(t, ".")
	controllers, webhooks := component(t, objects, "weir-controller"), component(t, objects, "weir-webhook")
	follower, replica := labels.Set(controllers.Labels), labels.Set(webhooks.Labels)
	leader := labels.Merge(follower, labels.Set{"weir.dev/leader": "true"})

	service := func(name string) *corev1.Service { return as[corev1.Service](t, objects, "Service/"+name) }
	webhook, fleet, hub := service("weir-webhook"), service("weir-fleet"), service("weir-hub")
	if s := labels.SelectorFromSet(webhook.Spec.Selector); !s.Matches(replica) || s.Matches(leader) {
		t.Error("the webhooks' Service does not select every replica of them alone")
	}
	for _, of := range []*corev1.Service{fleet, hub} {
		if s := labels.SelectorFromSet(of.Spec.Selector); s.Matches(follower) || !s.Matches(leader) {
			t.Errorf("Service %s does not select exactly the leader", of.Name)
		}
	}
	for name, pods := range map[string]labels.Set{"weir-controller": follower, "weir-webhook": replica} {
		budget := as[policyv1.PodDisruptionBudget](t, objects, "PodDisruptionBudget/"+name)
		if s, err := metav1.LabelSelectorAsSelector(budget.Spec.Selector); err != nil || !s.Matches(pods) {
			t.Errorf("the disruption budget %s does not select its pods (%v)", name, err)
		}
	}
	for of, services := range map[*corev1.PodTemplateSpec][]*corev1.Service{controllers: {fleet, hub}, webhooks: {webhook}} {
		ports := map[string]bool{}
		for _, port := range of.Spec.Containers[0].Ports {
			ports[port.Name] = true
		}
		for _, service := range services {
			for _, port := range service.Spec.Ports {
				if !ports[port.TargetPort.StrVal] {
					t.Errorf("Service %s targets port %q, which its pods do not have", service.Name, port.TargetPort.String())
				}
			}
		}
	}
}
