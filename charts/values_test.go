//go:build helm

package charts_test

import (
	"slices"
	"strings"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/weir-dev/weir/internal/rendered"
)

func as[T any](t *testing.T, objects rendered.Objects, name string) *T {
	t.Helper()
	object, err := rendered.As[T](objects, name)
	if err != nil {
		t.Fatal(err)
	}
	return object
}

// TestValuesReachTheController sets everything that concerns the Deployment at once.
func TestValuesReachTheController(t *testing.T) {
	objects := install(
		t,
		"--set", "images.controller.repository=registry.example/a/weir-controller,images.controller.tag=v1",
		"--set", "images.sidecar.repository=registry.example/a/weir-sidecar,images.sidecar.digest=sha256:"+strings.Repeat("a", 64),
		"--set", "images.pullPolicy=IfNotPresent,images.pullSecrets[0].name=registry",
		"--set", "controller.replicas=3,controller.clusterName=eu-west,controller.priorityClassName=",
		"--set", "controller.federationSANs={hub.example.com,192.0.2.1},controller.extraArgs={--log-level=1}",
		"--set", "controller.nodeSelector.pool=system,controller.tolerations[0].key=system,controller.tolerations[0].operator=Exists",
		"--set", "controller.resources.limits.memory=1Gi",
	)
	deployment := as[appsv1.Deployment](t, objects, "Deployment/weir-controller")
	pod := deployment.Spec.Template.Spec
	container := pod.Containers[0]
	wantArgs := []string{"--sidecar-image=$(SIDECAR_IMAGE)", "--cluster-name=eu-west", "--federation-sans=hub.example.com,192.0.2.1", "--log-level=1"}
	for what, ok := range map[string]bool{
		"image":         container.Image == "registry.example/a/weir-controller:v1",
		"sidecar":       container.Env[0] == corev1.EnvVar{Name: "SIDECAR_IMAGE", Value: "registry.example/a/weir-sidecar@sha256:" + strings.Repeat("a", 64)},
		"pull policy":   container.ImagePullPolicy == corev1.PullIfNotPresent,
		"pull secrets":  slices.Equal(pod.ImagePullSecrets, []corev1.LocalObjectReference{{Name: "registry"}}),
		"replicas":      *deployment.Spec.Replicas == 3,
		"priority":      pod.PriorityClassName == "",
		"arguments":     slices.Equal(container.Args, wantArgs),
		"node selector": pod.NodeSelector["pool"] == "system",
		"tolerations":   len(pod.Tolerations) == 1 && pod.Tolerations[0].Key == "system",
		"resources":     container.Resources.Limits.Memory().String() == "1Gi" && container.Resources.Requests.Memory().String() == "128Mi",
	} {
		if !ok {
			t.Errorf("%s: not as the values say: %+v", what, deployment.Spec)
		}
	}
}

func TestValuesReachTheWebhooks(t *testing.T) {
	objects := install(t, "--set", "webhook.failurePolicy=Ignore,webhook.timeoutSeconds=3")
	for _, webhook := range as[admissionregistrationv1.MutatingWebhookConfiguration](t, objects, "MutatingWebhookConfiguration/weir-injector").Webhooks {
		if *webhook.FailurePolicy != admissionregistrationv1.Ignore || *webhook.TimeoutSeconds != 3 {
			t.Errorf("%s: failurePolicy %s, timeoutSeconds %d; want Ignore, 3", webhook.Name, *webhook.FailurePolicy, *webhook.TimeoutSeconds)
		}
	}
}

func TestTheHubIsReachableWhenAsked(t *testing.T) {
	objects := install(t, "--set", "hub.serviceType=LoadBalancer,hub.serviceAnnotations.internal=yes")
	service := as[corev1.Service](t, objects, "Service/weir-hub")
	if service.Spec.Type != corev1.ServiceTypeLoadBalancer || service.Annotations["internal"] != "yes" {
		t.Errorf("type %q, annotations %v", service.Spec.Type, service.Annotations)
	}
}

func TestPartsAreLeftOut(t *testing.T) {
	if objects := install(t, "--set", "controller.replicas=1"); objects["PodDisruptionBudget/weir-controller"] != nil {
		t.Error("the disruption budget of a single replica would hold up every drain")
	}
	for name := range install(t, "--set", "crds.install=false") {
		if strings.HasPrefix(name, "CustomResourceDefinition/") {
			t.Errorf("%s is installed although crds.install is false", name)
		}
	}
}

// TestWrongValuesAreRefused shows that the schema names the value.
func TestWrongValuesAreRefused(t *testing.T) {
	for _, tc := range []struct{ set, says string }{
		{"webhook.failurePolicy=Sometimes", "/webhook/failurePolicy"},
		{"controller.replicas=0", "/controller/replicas"},
		{"controller.replicas=two", "/controller/replicas"},
		{"controller.replica=3", "replica"},
		{"controller.clusterName=EU West", "/controller/clusterName"},
		{"controller.extraArgs={log-level=1}", "/controller/extraArgs/0"},
		{"images.sidecar.digest=latest", "/images/sidecar/digest"},
		{"images.controller.repository=", "/images/controller/repository"},
		{"images.pullPolicy=Sometimes", "/images/pullPolicy"},
		{"networkPolicy.enabled=maybe", "/networkPolicy/enabled"},
		{"hub.serviceType=Public", "/hub/serviceType"},
		{"networkPolicies.enabled=true", "networkPolicies"},
	} {
		t.Run(tc.set, func(t *testing.T) {
			_, err := rendered.Helm(chart, namespace, "--set", tc.set)
			if err == nil || !strings.Contains(err.Error(), tc.says) || !strings.Contains(err.Error(), "schema") {
				t.Errorf("got %v, want an error of the schema that names %s", err, tc.says)
			}
		})
	}
}
