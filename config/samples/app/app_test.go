package app_test

import (
	"os"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/weir-dev/weir/api/v1alpha1"
	"github.com/weir-dev/weir/internal/controlplane/inject"
	"github.com/weir-dev/weir/internal/testing/rendered"
)

// object reads one object of a file.
func object[T any](t *testing.T, file, name string) *T {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	objects, err := rendered.Decode(data)
	if err != nil {
		t.Fatal(err)
	}
	o, err := rendered.As[T](objects, name)
	if err != nil {
		t.Fatal(err)
	}
	return o
}

// TestANewcomerSeesARefusal holds the steps of the README together: the first policy
// selects the app, its sidecar takes the port that the Service leads to, and the clients
// ask for more than is admitted and are not limited themselves.
func TestANewcomerSeesARefusal(t *testing.T) {
	enabled := inject.NamespaceFacts{Labels: map[string]string{v1alpha1.InjectionLabel: v1alpha1.Enabled}}
	checkout := object[appsv1.Deployment](t, "checkout.yaml", "Deployment/checkout").Spec.Template
	policy := object[v1alpha1.RateLimitPolicy](t, "../quickstart.yaml", "RateLimitPolicy/quickstart")
	selector, err := metav1.LabelSelectorAsSelector(&policy.Spec.PodSelector)
	if err != nil || !selector.Matches(labels.Set(checkout.Labels)) {
		t.Errorf("the policy does not select the app (%v)", err)
	}
	_, report := inject.Inject(&corev1.Pod{ObjectMeta: checkout.ObjectMeta, Spec: checkout.Spec}, enabled, inject.Config{KubernetesMinor: 34})
	if report.Capture != inject.CaptureRedirect || len(report.Ports) != 1 || len(report.Warnings) != 0 {
		t.Errorf("the app's pods: %+v", report)
	}
	service := object[corev1.Service](t, "checkout.yaml", "Service/checkout")
	if !labels.SelectorFromSet(service.Spec.Selector).Matches(labels.Set(checkout.Labels)) || service.Spec.Ports[0].TargetPort.StrVal != report.Ports[0].Name {
		t.Errorf("the Service leads elsewhere: %+v", service.Spec)
	}
	load := object[appsv1.Deployment](t, "load.yaml", "Deployment/load").Spec.Template
	if _, report := inject.Inject(&corev1.Pod{ObjectMeta: load.ObjectMeta, Spec: load.Spec}, enabled, inject.Config{}); report.Reason != inject.DisabledByPod {
		t.Errorf("the clients' pods: %+v", report)
	}
}
